//! A flight recorder writes a snapshot on request over its socket; its forked child has its own socket.

use std::{fs::File, io::Write, path::Path};

use fut::{
    Init,
    control::{self, AskError, Process, Request, State},
};

mod common;

use common::{code, opened, words};

fut::events! {
    fn tick(number: u64);
}

#[test]
fn snapshots_come_over_the_socket_and_a_child_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in [
        ("XDG_RUNTIME_DIR", folder.path().as_os_str()),
        (fut::ENV_ARENA_DIR, folder.path().as_os_str()),
        (fut::ENV_MODE, "overwrite".as_ref()),
        (fut::ENV_PACKETS, "4".as_ref()),
    ] {
        // SAFETY: no other thread of this process reads the environment yet.
        unsafe { std::env::set_var(name, value) };
    }
    assert!(matches!(fut::init(), Init::Recording));
    (0..100_000).for_each(tick);
    let pid = std::process::id();
    snapshot_to(pid, &folder.path().join("parent.fut"), 100_000);
    not_to_a_place_that_is_none(folder.path());
    let sample = Process::find(pid).unwrap().ask(&Request::List).unwrap();
    let tick = sample.rows.iter().find(|row| row[0] == "tick".into()).unwrap();
    assert!(
        matches!(tick[5], control::Cell::Number(count) if (2 * 2729..=4 * 2729).contains(&count)),
        "{tick:?}"
    );
    a_child_has_its_own(pid, folder.path());
    assert!(Process::find(pid).unwrap().ask(&Request::Status).is_ok(), "the parent still answers");
}

/// The trace ends with the tick before `end`, and has no gap.
fn snapshot_to(pid: u32, path: &Path, end: u64) {
    let file = File::create_new(path).unwrap();
    let reply = Process::find(pid).unwrap().snapshot(&file).unwrap();
    assert_eq!(reply.number("lost"), Some(0));
    let trace = opened(path);
    let numbers: Vec<u64> = words(&trace, code(&trace, "tick")).into_iter().map(|w| w.0).collect();
    assert!(numbers.len() > 2000, "{} ticks", numbers.len());
    assert!(numbers.iter().copied().eq(end - numbers.len() as u64..end), "{:?}", numbers.first());
    assert!(reply.number("records").unwrap() >= numbers.len() as u64);
    assert_eq!(reply.number("bytes"), Some(path.metadata().unwrap().len()));
}

fn not_to_a_place_that_is_none(folder: &Path) {
    let us = || Process::find(std::process::id()).unwrap();
    let error = us().ask(&Request::Snapshot).unwrap_err().to_string();
    assert!(error.contains("expected the descriptor of a file"), "{error}");
    let path = folder.join("full.fut");
    File::create_new(&path).unwrap().write_all(b"mine").unwrap();
    let full = File::options().append(true).open(&path).unwrap();
    assert!(us().snapshot(&full).unwrap_err().to_string().contains("expected an empty regular file"));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    // Nobody reads from it, and it would be full soon.
    let (_reads, writes) = std::io::pipe().unwrap();
    let pipe = File::from(std::os::fd::OwnedFd::from(writes));
    assert!(us().snapshot(&pipe).unwrap_err().to_string().contains("expected an empty regular file"));
    // One that was opened for reading only: the error is the kernel's.
    let empty = folder.join("empty.fut");
    File::create_new(&empty).unwrap();
    let error = us().snapshot(&File::open(&empty).unwrap()).unwrap_err();
    assert!(matches!(error, AskError::Refused { .. }), "{error}");
}

fn a_child_has_its_own(parent: u32, folder: &Path) {
    let (mut child_reads, parent_writes) = std::io::pipe().unwrap();
    let (mut parent_reads, mut child_writes) = std::io::pipe().unwrap();
    // SAFETY: the child records events, reads and writes pipes, and ends with `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        drop(parent_writes);
        // A program that drops root's rights can only be controlled by root. Without them, this call fails without
        // effect. SAFETY: takes numbers.
        unsafe { libc::setresuid(65534, 65534, 65534) };
        (0..50_000).for_each(tick);
        child_writes.write_all(b"r").unwrap();
        // Until the parent closes its end.
        let _ = std::io::Read::read(&mut child_reads, &mut [0]);
        // SAFETY: ends the child at once; the test harness in it must not go on.
        unsafe { libc::_exit(0) };
    }
    std::io::Read::read_exact(&mut parent_reads, &mut [0]).unwrap();
    let child = child as u32;
    let State::Listening(ours) = control::state() else { panic!("{:?}", control::state()) };
    let theirs = ours.with_file_name(format!("{child}.sock"));
    assert!(ours.ends_with(format!("{parent}.sock")) && theirs.exists());
    let status = Process::find(child).unwrap().ask(&Request::Status).unwrap();
    assert_eq!(status.number("pid"), Some(child.into()));
    snapshot_to(child, &folder.join("child.fut"), 50_000);
    drop(parent_writes);
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    unsafe { libc::waitpid(child as i32, &raw mut status, 0) };
    assert_eq!(status, 0);
    assert!(matches!(Process::find(child), Err(AskError::NoSuchProcess(_))));
    assert!(!theirs.exists(), "whoever finds a socket that is left removes it");
}
