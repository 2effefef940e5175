//! The file of a program that records itself: what becomes of it, and of an older file of its name.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
    process::Command,
};

use crate::{
    skipped::skipped,
    support::{Bench, Link, run},
};

const CALLS: &str = "fut/c/tests/programs/calls.c";

/// `CALL:ARGUMENT`, for `calls.c`.
fn call(name: &str, argument: impl AsRef<OsStr>) -> OsString {
    let mut call = OsString::from(name);
    call.push(":");
    call.push(argument);
    call
}

/// The results that `calls.c` prints, and its messages.
fn results(bench: &Bench, calls: &[OsString]) -> (Vec<String>, String) {
    let program = bench.path("calls-Shared");
    let program = if program.exists() { program } else { bench.program(CALLS, Link::Shared, &[]) };
    let calls: Vec<&OsStr> = calls.iter().map(OsString::as_os_str).collect();
    let output = run(&program, &calls, &[]);
    let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (lines(&output.stdout).lines().map(String::from).collect(), lines(&output.stderr))
}

fn here(bench: &Bench, trace: &Path) -> Vec<String> {
    bench.merged(trace).events(&["here"], &["args"])
}

/// The names of the files in the folder of the test, without the program.
fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with("calls"));
    names.sort();
    names
}

#[test]
fn an_older_file_is_replaced_only_if_recording_begins() {
    let Some(bench) = Bench::new() else { return };
    let trace = bench.path("a.fut");
    let again = [call("name", &trace), "setup".into(), call("probe", "1"), "endup".into(), "setup".into()];
    let already = format!("setup -{}", libc::EALREADY);
    let (printed, said) = results(&bench, &again);
    assert_eq!(printed, ["setup 0", "endup 0", already.as_str()]);
    assert!(said.contains("has recorded already"), "{said}");
    assert_eq!(here(&bench, &trace), ["here [1]"], "the finished trace");

    fs::write(&trace, "older").unwrap();
    let calls = [call("address-space", "200000000"), call("name", &trace), call("setup", "0")];
    let (printed, _) = results(&bench, &calls);
    assert!(printed[0].starts_with("setup -"), "{printed:?}");
    assert_eq!(fs::read(&trace).unwrap(), b"older");
    let _ = fs::remove_dir_all(bench.path("a.supertrace"));
    assert_eq!(files(&bench.path("")), ["a.fut"]);

    let (printed, _) = results(&bench, &[call("name", &trace), "setup".into(), call("probe", "2")]);
    assert_eq!((printed, here(&bench, &trace)), (vec!["setup 0".into()], vec!["here [2]".into()]));
    let _ = fs::remove_dir_all(bench.path("a.supertrace"));
    assert_eq!(files(&bench.path("")), ["a.fut"], "the older file is gone");
}

#[test]
fn another_name_of_the_trace_leaves_it_where_it_is() {
    let Some(bench) = Bench::new() else { return };
    let folder = bench.path("");
    let (trace, link, hard) = (bench.path("b.fut"), bench.path("link.fut"), bench.path("hard.fut"));
    for (name, end) in [
        ("b.fut".into(), "./b.fut".into()),
        ("b.fut".into(), trace.clone()),
        (trace.clone(), "b.fut".into()),
        ("b.fut".into(), "link.fut".into()),
    ] {
        if !link.exists() {
            symlink("b.fut", &link).unwrap();
        }
        let calls = [
            call("chdir", &folder),
            call("name", &name),
            "setup".into(),
            call("probe", "1"),
            call("endup", &end),
        ];
        assert_eq!(results(&bench, &calls).0, ["chdir 0", "setup 0", "endup 0"], "{}", end.display());
        assert_eq!(here(&bench, &trace), ["here [1]"], "{}", end.display());
    }
    let ln = format!("ln {} {}", trace.display(), hard.display());
    let calls =
        [call("name", &trace), "setup".into(), call("probe", "2"), call("shell", ln), call("endup", &hard)];
    assert_eq!(results(&bench, &calls).0, ["setup 0", "endup 0"]);
    assert_eq!(here(&bench, &hard), ["here [2]"]);
}

#[test]
fn a_trace_that_could_not_be_moved_can_be_moved_later() {
    let Some(bench) = Bench::new() else { return };
    let (trace, moved) = (bench.path("n.fut"), bench.path("m.fut"));
    let calls = [
        call("name", &trace),
        "setup".into(),
        call("probe", "1"),
        call("endup", "/nonexistent/y"),
        call("endup", &moved),
        "endup".into(),
    ];
    let (printed, said) = results(&bench, &calls);
    assert_eq!(printed, ["setup 0", &format!("endup -{}", libc::ENOENT), "endup 0", "endup 0"]);
    assert!(said.contains("/nonexistent/y: "), "{said}");
    assert!(!trace.exists());
    assert_eq!(here(&bench, &moved), ["here [1]"]);
}

#[test]
fn a_relative_name_is_that_of_the_folder_in_which_recording_began() {
    let Some(bench) = Bench::new() else { return };
    let moved = bench.path("moved.fut");
    let calls = [
        call("chdir", bench.path("")),
        call("name", "rel.fut"),
        "setup".into(),
        call("probe", "1"),
        call("chdir", "/"),
        call("endup", &moved),
    ];
    assert_eq!(results(&bench, &calls).0, ["chdir 0", "setup 0", "chdir 0", "endup 0"]);
    assert_eq!(here(&bench, &moved), ["here [1]"]);
}

#[test]
fn a_name_that_is_not_utf_8_is_kept() {
    let Some(bench) = Bench::new() else { return };
    let trace = bench.path("").join(OsStr::from_bytes(b"na\xffme.fut"));
    let end = bench.path("").join(OsStr::from_bytes(b"e\xffnd.fut"));
    let begin = [call("name", &trace), "setup".into(), call("probe", "1")];
    assert_eq!(results(&bench, &begin).0, ["setup 0"]);
    assert!(trace.exists());
    let calls = [&begin[..], &[call("endup", &end)]].concat();
    assert_eq!(results(&bench, &calls).0, ["setup 0", "endup 0"]);
    assert!(end.exists() && !trace.exists());
}

#[test]
fn a_forked_child_records_to_its_own_file_and_not_to_that_of_its_parent() {
    let Some(bench) = Bench::new() else { return };
    let (parents, childs) = (bench.path("parent.fut"), bench.path("child.fut"));
    let calls = [
        call("name", &parents),
        "setup".into(),
        call("probe", "1"),
        "fork".into(),
        "setup".into(),
        call("name", bench.path("").join("./parent.fut")),
        "setup".into(),
        call("name", &childs),
        "setup".into(),
        call("probe", "2"),
        "endup".into(),
        "parent".into(),
        call("probe", "3"),
        "endup".into(),
    ];
    let (printed, said) = results(&bench, &calls);
    let busy = format!("setup -{}", libc::EBUSY);
    assert_eq!(printed, ["setup 0", &busy, &busy, "setup 0", "endup 0", "endup 0"]);
    assert!(said.contains("fut_set_filename"), "{said}");
    assert_eq!(here(&bench, &parents), ["here [1]", "here [3]"]);
    assert_eq!(here(&bench, &childs), ["here [2]"]);
}

pub(crate) struct Unmounted<'a>(pub(crate) &'a Path);

impl Drop for Unmounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_trace_that_does_not_fit_on_another_file_system_stays_and_so_does_the_file_there() {
    let Some(bench) = Bench::new() else { return };
    let (trace, disk) = (bench.path("t.fut"), bench.path("disk"));
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return skipped("needs the right to mount a tmpfs");
    }
    let _unmounted = Unmounted(&disk);
    let target = disk.join("older.fut");
    fs::write(&target, "older").unwrap();
    let record = |probes: &str| {
        let calls =
            [call("name", &trace), call("setup", "0"), call("probes", probes), call("endup", &target)];
        results(&bench, &calls).0
    };
    assert_eq!(record("100000"), ["setup 0", &format!("endup -{}", libc::ENOSPC)]);
    assert_eq!(fs::read(&target).unwrap(), b"older");
    assert_eq!(files(&disk), ["older.fut"]);
    assert!(trace.exists());
    assert_eq!(record("100"), ["setup 0", "endup 0"]);
    assert_eq!(
        (here(&bench, &target).len(), files(&disk), trace.exists()),
        (100, vec!["older.fut".into()], false)
    );
}
