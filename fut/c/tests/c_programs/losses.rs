//! Events that are lost are counted; those at the end of a thread are not lost.

use std::{ffi::OsStr, fs, process::Command};

use crate::{
    drained,
    skipped::skipped,
    support::{Bench, Link, Merged, run},
    text,
};

#[test]
fn events_in_destructors_of_a_thread_are_in_the_trace() {
    let Some(bench) = Bench::new() else { return };
    let program = bench.program("fut/c/tests/programs/destructors.c", Link::Shared, &["-pthread"]);
    let check = |merged: Merged| {
        let events = |name: &str| merged.events(&[name], &["args"]);
        assert_eq!(events("body").len(), 5);
        let rounds = events("destructor");
        let round = |number: &str| rounds.iter().filter(|line| line.ends_with(number)).count();
        assert_eq!((round("[1]"), round("[2]")), (10, 10));
        assert_eq!(events("LWP_DETACH").len(), 10, "every thread gives its buffer back");
        assert!(merged.lines("losses", &["detail"]).is_empty());
    };
    let trace = bench.path("own.fut");
    assert_eq!(text(&run(&program, &[trace.as_os_str()], &[]).stdout), "0");
    check(bench.merged(&trace));
    let arenas = bench.path("arenas");
    fs::create_dir(&arenas).unwrap();
    run(&program, &[], &[(fut::ENV_ARENA_DIR, arenas.as_os_str())]);
    check(bench.merged(&drained(&bench, &arenas)[0]));
}

#[test]
fn events_that_a_full_disk_has_no_room_for_count_as_lost() {
    let Some(bench) = Bench::new() else { return };
    let disk = bench.path("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return skipped("needs the right to mount a tmpfs");
    }
    let _unmounted = crate::trace_file::Unmounted(&disk);
    let calls = bench.program("fut/c/tests/programs/calls.c", Link::Shared, &[]);
    let trace = disk.join("full.fut");
    let name = format!("name:{}", trace.display());
    let output = run(&calls, &[&name, "setup:0", "probes:100000", "endup", "lost"].map(OsStr::new), &[]);
    let printed = text(&output.stdout);
    let end = format!("setup 0\nendup -{}\nlost ", libc::ENOSPC);
    let lost: usize = printed.strip_prefix(&end).expect(printed).parse().unwrap();
    let kept = bench.merged(&trace).events(&["here"], &["args"]).len();
    // The other records of the packets that are missing: the end of the recording, and of its LWP.
    assert!(kept < 100_000 && (100_000..100_003).contains(&(kept + lost)), "{kept} + {lost}");
}
