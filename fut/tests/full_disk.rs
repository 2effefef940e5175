//! A full disk, a file that must not grow: reported once, unwritten records are counted, the program continues.

mod common;
#[path = "common/skipped.rs"]
mod skipped;

use std::{path::Path, process::Command};

use common::{code, opened, words};
use fut::{
    Init, Recording,
    drain::{Drain, DrainSummary},
    shm::{Arena, Geometry},
};

fut::events! {
    fn happened(number: u64, more: u64);
}

const EVENTS: u64 = 100_000;

/// All that were emitted are in the trace, which is whole, or counted.
fn accounted(path: &Path, summary: &DrainSummary, markers: u64) {
    assert!(summary.unwritten > 0 && summary.records > 0, "{summary:?}");
    assert_eq!(summary.records + summary.unwritten + summary.lost, EVENTS + markers);
    assert_eq!(summary.bytes, std::fs::metadata(path).unwrap().len());
    let trace = opened(path);
    let numbers: Vec<u64> = words(&trace, code(&trace, "happened")).into_iter().map(|w| w.0).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "the first ones, in order");
    assert!(summary.records - numbers.len() as u64 <= markers);
}

struct Unmounted<'a>(&'a Path);

impl Drop for Unmounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_costs_what_does_not_fit_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return skipped::skipped("needs the right to mount a tmpfs");
    }
    let _unmounted = Unmounted(&disk);
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var(fut::ENV_ARENA_DIR, folder.path()) };
    assert!(matches!(fut::init(), Init::Recording));
    let arena = Arena::open(&folder.path().join(format!("{}.arena", std::process::id()))).unwrap();
    let path = disk.join("user.fut");
    let mut drain = Drain::new(arena, &path).unwrap();
    let mut failures = 0;
    for number in 0..EVENTS {
        happened(number, 0);
        if number % 1000 == 0 {
            failures += u64::from(drain.poll().is_err());
        }
    }
    assert_eq!(failures, 1, "told once");
    let (summary, written) = drain.close();
    written.unwrap();
    // The LWP of the test goes on; it has attached.
    accounted(&path, &summary, 1);
}

/// In a separate process: the limit and the signal that would kill it apply to the whole process.
#[test]
fn a_file_that_must_not_grow_does_not_kill_the_program() {
    if std::env::var_os("FUT_TEST_LIMITED").is_none() {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_file_that_must_not_grow_does_not_kill_the_program"])
            .env("FUT_TEST_LIMITED", "1")
            .status();
        assert!(status.unwrap().success());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, Geometry { packets: 16, rings: 4 }).unwrap();
    let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is valid.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
    std::thread::spawn(|| {
        for number in 0..EVENTS {
            happened(number, 0);
            if number % 1000 == 0 {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        }
    })
    .join()
    .unwrap();
    let (summary, written) = recording.close();
    assert_eq!(written.unwrap_err().raw_os_error(), Some(libc::EFBIG));
    accounted(&path, &summary, 2);
}
