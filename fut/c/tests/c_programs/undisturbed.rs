//! A program does the same whether it is recorded or not: its end, its signals, its limits.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    drained,
    skipped::skipped,
    support::{Bench, Link},
};

/// The output of a program that must end within 10 s, with status 0.
fn ended(program: &Path, arguments: &[&OsStr], environment: &[(&str, &OsStr)]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).env_remove(fut::ENV_ARENA_DIR).envs(environment.iter().copied());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let lives_on = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    assert!(!lives_on, "{}: lives on: {output:?}", program.display());
    assert!(output.status.success(), "{}: {output:?}", program.display());
    String::from_utf8(output.stdout).unwrap()
}

/// A folder in which the program makes its arena, as under a recorder.
fn arenas(bench: &Bench) -> std::path::PathBuf {
    let arenas = bench.path("arenas");
    std::fs::create_dir_all(&arenas).unwrap();
    arenas
}

#[test]
fn a_program_whose_main_thread_ends_first_ends_with_its_last_thread() {
    let Some(bench) = Bench::new() else { return };
    let program = bench.program("fut/c/tests/programs/main_ends.c", Link::Shared, &["-pthread"]);
    let (expected, trace) = ("other thread\nexit handler\n", bench.path("own.fut"));
    assert_eq!(ended(&program, &[], &[]), expected, "unrecorded");
    assert_eq!(ended(&program, &[trace.as_os_str()], &[]), expected);
    assert_eq!(bench.merged(&trace).events(&["here"], &["args"]), ["here [1]", "here [2]"]);
    let later = bench.path("later.fut");
    assert_eq!(ended(&program, &[later.as_os_str(), OsStr::new("later")], &[]), expected);
    assert_eq!(bench.merged(&later).events(&["here"], &["args"]), ["here [2]"]);

    let arenas = arenas(&bench);
    for control in ["1", "0"] {
        let recorded =
            [(fut::ENV_ARENA_DIR, arenas.as_os_str()), (fut::control::ENV_CONTROL, OsStr::new(control))];
        assert_eq!(ended(&program, &[], &recorded), expected);
    }
    let traces = drained(&bench, &arenas);
    assert_eq!(traces.len(), 2);
    assert_eq!(bench.merged(&traces[0]).events(&["here"], &["args"]), ["here [1]", "here [2]"]);
}

#[test]
fn a_signal_that_all_threads_block_stays_pending_for_the_one_that_waits() {
    let Some(bench) = Bench::new() else { return };
    let program = bench.program("fut/c/tests/programs/waits_for_signal.c", Link::Shared, &[]);
    let (expected, trace) = (format!("signal {}\n", libc::SIGTERM), bench.path("own.fut"));
    assert_eq!(ended(&program, &[trace.as_os_str()], &[]), expected);
    let arenas = arenas(&bench);
    assert_eq!(ended(&program, &[], &[(fut::ENV_ARENA_DIR, arenas.as_os_str())]), expected);
}

#[test]
fn a_limit_of_files_below_the_size_of_the_buffers_is_an_error_and_no_signal() {
    let Some(bench) = Bench::new() else { return };
    let program = bench.program("fut/c/tests/programs/calls.c", Link::Shared, &[]);
    let trace = bench.path("small.fut");
    let name = format!("name:{}", trace.display());
    let calls = |calls: &[&str]| {
        let calls: Vec<&OsStr> = calls.iter().map(OsStr::new).collect();
        ended(&program, &calls, &[])
    };
    let printed = calls(&["file-size:100000", &name, "setup", "probe:1", "endup"]);
    assert!(printed.starts_with("setup -") && printed.ends_with("endup 0\n"), "{printed}");
    assert!(!trace.exists());
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else {
        return skipped("needs a second file system at /dev/shm");
    };
    let moved = elsewhere.path().join("moved.fut");
    let target = format!("endup:{}", moved.display());
    // Moved to another file system, where the file must be smaller than the trace is.
    let printed = calls(&[&name, "setup:0", "probes:10000", "endup", "file-size:100000", &target]);
    assert_eq!(printed, format!("setup 0\nendup 0\nendup -{}\n", libc::EFBIG));
    assert!(trace.exists() && !moved.exists());
    let arenas = arenas(&bench);
    let recorded = [(fut::ENV_ARENA_DIR, arenas.as_os_str())];
    let limited = ["-c", "ulimit -f 100 && exec \"$0\" probe:1"].map(OsStr::new);
    let arguments = [&limited[..], &[program.as_os_str()]].concat();
    ended(Path::new("sh"), &arguments, &recorded);
}
