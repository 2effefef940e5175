//! Failures are failures: the exit status is what `--help` says, and each message names its own cause.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    kernel,
    sigmund::{Reported, Sigmund},
};

/// A small disk, mounted in the folder of a test.
pub(crate) struct Disk(PathBuf);

impl Disk {
    pub(crate) fn mount(sigmund: &Sigmund, size: &str) -> Disk {
        let disk = Disk(sigmund.path("disk"));
        fs::create_dir(&disk.0).unwrap();
        let options = format!("size={size},mode=700");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(&disk.0).status();
        assert!(mount.unwrap().success());
        disk
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

const SUMTIME: [&str; 5] = [env!("CARGO_BIN_EXE_sigmund"), "sumtime", "12", "2", "10"];

fn recorded(sigmund: &Sigmund, options: &[&str], words: &[&str]) -> Reported {
    sigmund.run(["record"].iter().chain(options).chain(&["--"]).chain(words))
}

/// The text is said, and nobody is told to do what is done already.
#[track_caller]
fn failed_for(said: Reported, words: &[&str]) {
    assert!(!said.stderr.contains("link `fut`") && !said.stderr.contains("the recorder is gone"), "{said:?}");
    said.complained(words);
}

#[test]
fn a_disk_that_is_full_of_user_events_is_a_failure() {
    let Some(_alone) = kernel::as_root() else { return };
    for merge in [&["--no-merge"][..], &[]] {
        let sigmund = Sigmund::new();
        let _disk = Disk::mount(&sigmund, "1m");
        let options = [&["--user-only", "-o", "disk"], merge].concat();
        let said = recorded(&sigmund, &options, &SUMTIME);
        assert!(said.stdout.contains("4096 leaves"), "the program does not notice: {said:?}");
        let words = ["disk/user-", "No space left on device", " events could not be written: No space left"];
        failed_for(said, &words);
    }
}

#[test]
fn a_disk_that_has_no_room_for_the_kernel_side_is_a_failure() {
    let Some(_alone) = kernel::as_root() else { return };
    for merge in [&["--no-merge"][..], &[]] {
        let sigmund = Sigmund::new();
        let _disk = Disk::mount(&sigmund, "256k");
        let options = [&["-o", "disk"], merge].concat();
        let said = recorded(&sigmund, &options, &SUMTIME);
        assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
        failed_for(said, &["the kernel side is not written: disk/kernel.", "No space left on device"]);
    }
}

#[test]
fn each_failure_names_its_own_cause_and_leaves_nothing() {
    let Some(_alone) = kernel::as_root() else { return };
    let failures: [(&[&str], &[&str], &[&str]); 6] = [
        (
            &["--kernel-event", "sched:no_such"],
            &["true"],
            &["--kernel-event sched:no_such: this kernel has no such event", "events/sched lists"],
        ),
        (
            &["--kernel-event", "no_such:event"],
            &["true"],
            &["--kernel-event no_such:event: this kernel has no such event"],
        ),
        (
            &["--kernel-event", "sched_switch"],
            &["true"],
            &["--kernel-event sched_switch: expected SYSTEM:EVENT"],
        ),
        (
            &["--filter", "sched:no_such: a == 1"],
            &["true"],
            &["--filter sched:no_such: this kernel has no such event"],
        ),
        (&[], &["/no/such/program"], &["cannot start /no/such/program: No such file or directory"]),
        (&["--user", "no-such-user"], &["true"], &["--user no-such-user"]),
    ];
    for (options, program, words) in failures {
        let sigmund = Sigmund::new();
        let said = recorded(&sigmund, &[&["-o", "RUN"], options].concat(), program);
        assert_eq!(said.stderr.matches("error: ").count(), 1, "{said:?}");
        assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
        failed_for(said, words);
        assert!(!sigmund.path("RUN").exists() && !sigmund.path("RUN.supertrace").exists());
    }
}

#[test]
fn who_records_nothing_is_told_to_link_fut_and_who_could_not_is_not() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let said = recorded(&sigmund, &["--user-only", "-o", "RUN"], &["true"]);
    assert_eq!(said.stderr.matches("link `fut`").count(), 1, "{said:?}");
    said.found();

    // It has too little address space for the buffers that the recorder gives it.
    let Some(prlimit) = Some("prlimit").filter(|tool| kernel::has_tool(tool)) else { return };
    let words = [&[prlimit, "--as=1500000000"], &SUMTIME[..]].concat();
    let said = recorded(&sigmund, &["--user-only", "-o", "LIMITED"], &words);
    assert!(said.stdout.contains("4096 leaves"), "{said:?}");
    assert_eq!(said.stderr.matches("fut: this program is not recorded: ").count(), 1, "{said:?}");
    assert!(said.stderr.contains("no address space") && said.stderr.contains("RLIMIT_AS"), "{said:?}");
    assert!(said.stderr.contains("no user events: the program could not be recorded"), "{said:?}");
    assert!(!said.stderr.contains("link `fut`"), "{said:?}");
    said.found();
}

/// The table in `sigmund --help`, and each status of it.
#[test]
fn the_exit_status_is_what_help_says() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let help = sigmund.run(["--help"]).found();
    let of_record = sigmund.run(["record", "--help"]).found();
    let codes = |help: &str| -> Vec<String> {
        let (_, table) = help.split_once("Exit status:\n").unwrap_or_else(|| panic!("{help}"));
        let code = |line: &str| line.strip_prefix("  ")?.split_once("  ").map(|(code, _)| code.to_string());
        table.lines().filter_map(code).filter(|code| code.parse::<i32>().is_ok()).collect()
    };
    assert_eq!(codes(&help), ["0", "1", "2", "3"], "{help}");
    assert_eq!(codes(&of_record), ["0", "2"], "{of_record}");

    let status = |words: &[&str]| sigmund.run(words).status;
    // 0, however the program ended.
    assert_eq!(recorded(&sigmund, &["--user-only", "-o", "RUN"], &SUMTIME).status, 0);
    assert_eq!(recorded(&sigmund, &["--user-only", "-o", "FALSE"], &["false"]).status, 0);
    assert_eq!(status(&["check", "RUN.supertrace"]), 0);
    assert_eq!(status(&["-f", "RUN.supertrace", "--event", "node_begin", "--list-events"]), 0);
    assert_eq!(status(&["-f", "RUN.supertrace", "--event", "node_begin", "--to", "0ns", "--list-events"]), 1);
    assert_eq!(status(&["-f", "RUN.supertrace", "--event", "no_such_event", "--list-events"]), 2);
    assert_eq!(status(&["sql", "RUN.supertrace", "SELECT 1 WHERE false"]), 1);
    for wrong in [
        &["no-such-command"][..],
        &["record"],
        &["record", "--follow", "none", "true"],
        &["sql", "RUN.supertrace", "SELEC"],
        &["check", "NO.supertrace"],
        &["merge", "NO", "-o", "OUT.supertrace"],
        // It is there.
        &["record", "--user-only", "-o", "RUN", "--", "true"],
    ] {
        assert_eq!(status(wrong), 2, "{wrong:?}");
    }
    // Damaged, and merged as far as it can be read.
    let user = crate::sigmund::user_traces(&sigmund.path("RUN")).remove(0);
    let bytes = fs::read(&user).unwrap();
    fs::write(&user, &bytes[..bytes.len() - 100]).unwrap();
    assert_eq!(status(&["merge", "RUN", "-o", "CUT.supertrace"]), 2);
    assert!(Path::new(&sigmund.path("CUT.supertrace")).is_dir());
}

#[test]
fn who_names_a_super_trace_or_a_trace_first_is_told_how_to_ask() {
    let sigmund = Sigmund::new();
    fs::create_dir(sigmund.path("a.supertrace")).unwrap();
    fs::write(sigmund.path("trace.dat"), "").unwrap();
    for (args, tip) in [
        (["a.supertrace", "--states"], Some("sigmund -f a.supertrace --summary")),
        (["trace.dat", "--states"], Some("sigmund merge trace.dat makes a super-trace")),
        (["merg", "--states"], None),
    ] {
        let said = sigmund.run(args);
        assert!(said.stderr.contains("unrecognized subcommand"), "{said:?}");
        assert_eq!(
            tip.is_some(),
            said.stderr.contains("  tip: sigmund merge ") || said.stderr.contains(" after -f: "),
            "{said:?}"
        );
        assert!(said.stderr.contains(tip.unwrap_or_default()), "{said:?}");
    }
    let after = sigmund.run(["--states", "--thread", "1", "a.supertrace"]);
    assert!(after.stderr.contains("  tip: give the super-trace of a question after -f"), "{after:?}");
}
