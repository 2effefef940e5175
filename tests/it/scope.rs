//! Whom `sigmund record` records, and for how long.

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    kernel,
    sigmund::{Sigmund, program},
};

const TRACE: &str = "RUN.supertrace";

/// A shell that starts a child every few milliseconds; ended when dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Busy {
        let script = "while :; do /bin/true; done";
        Busy(Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // It may have been ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn events(sigmund: &Sigmund, condition: &str) -> i64 {
    sigmund.number(TRACE, &format!("SELECT count(*) FROM events WHERE {condition}"))
}

#[test]
fn a_process_that_runs_is_recorded_until_the_time_is_over_and_goes_on() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, mut busy) = (Sigmund::new(), Busy::start());
    let pid = busy.0.id().to_string();
    let start = Instant::now();
    let said = sigmund.run(["record", "--pid", &pid, "--for", "400ms", "-o", "RUN"]);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(start.elapsed() >= Duration::from_millis(400));
    assert!(busy.0.try_wait().unwrap().is_none(), "the process goes on");
    assert!(said.stderr.contains("no events of the process itself"), "{said:?}");
    assert_eq!(sigmund.fact(TRACE, "command"), "sh -c while :; do /bin/true; done");
    // System calls of it, and of the children that it made meanwhile.
    assert!(events(&sigmund, &format!("name = 'sys_enter' AND lwp = {pid}")) > 10);
    assert!(events(&sigmund, &format!("name = 'sys_enter' AND lwp <> {pid}")) > 10);
    let span = sigmund.number(TRACE, "SELECT max(ts_ns) - min(ts_ns) FROM events");
    assert!((300_000_000..2_000_000_000).contains(&span), "{span} ns");
}

#[test]
fn a_process_that_ends_ends_its_recording() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, mut busy) = (Sigmund::new(), Busy::start());
    let pid = busy.0.id().to_string();
    let running = sigmund.start(["record", "--no-merge", "--pid", &pid, "-o", "RUN"]);
    thread::sleep(Duration::from_millis(300));
    busy.0.kill().unwrap();
    busy.0.wait().unwrap();
    let said = running.finish();
    assert_eq!(said.status, 0, "{said:?}");
    let missing = sigmund.run(["record", "--pid", &pid, "-o", "OTHER"]);
    assert_eq!(missing.status, 2);
    assert!(missing.stderr.contains(&format!("process {pid}")), "{missing:?}");
    assert!(!sigmund.path("OTHER").exists());
}

#[test]
fn the_whole_machine_is_recorded_with_the_system_calls_of_everybody() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, busy) = (Sigmund::new(), Busy::start());
    let said = sigmund.run(["record", "-a", "--for", "0.3", "-o", "RUN"]);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(!said.stderr.contains("no event of its own"), "{said:?}");
    let pid = busy.0.id();
    assert!(events(&sigmund, &format!("name = 'sys_enter' AND lwp = {pid}")) > 10);
    assert!(events(&sigmund, "name = 'sched_switch'") > 100);
    assert!(sigmund.number(TRACE, "SELECT count(*) FROM lwp_states WHERE state = 'running'") > 100);
    assert!(sigmund.fact(TRACE, "recorder_cpu").ends_with(" % of one CPU"));
}

// CPU 0  | program | stranger | other stranger | program |
//                  ^ recorded ^ not            ^ recorded
#[test]
fn only_the_program_is_recorded_and_both_witnesses_still_agree() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, busy) = (Sigmund::new(), Busy::start());
    let args = ["record", "--only", "-o", "RUN", "--", program(), "sumtime", "9", "4", "60000"];
    let said = sigmund.run(args);
    assert_eq!(said.status, 0, "{said:?}");
    assert_eq!(events(&sigmund, &format!("name = 'sys_enter' AND lwp = {}", busy.0.id())), 0);
    let both = "target_lwp IN (SELECT lwp FROM lwps WHERE carries_threads)";
    assert!(events(&sigmund, &format!("name = 'sched_switch' AND {both}")) > 10);
    let count = |key| sigmund.fact(TRACE, key).parse::<f64>().unwrap();
    let (agree, disagree) = (count("witness_agree"), count("witness_disagree"));
    let agreeing = agree / (agree + disagree + count("witness_single"));
    assert!(agree > 1000.0 && agreeing >= 0.999, "{agree} agree, {disagree} disagree: {said:?}");
    // What was left out on purpose is nothing that is missing.
    assert!(!said.stderr.contains("than the switches say"), "{said:?}");
    assert!(!said.stderr.contains("no switch says when"), "{said:?}");
}

#[test]
fn a_program_is_asked_to_end_when_the_time_is_over() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let start = Instant::now();
    let said = sigmund.run(["record", "--for", "200ms", "-o", "RUN", "--", "sleep", "60"]);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(sigmund.fact(TRACE, "ended"), "signal 2");
}

#[test]
fn what_cannot_be_asked_for_is_refused_before_anything_is_made() {
    let sigmund = Sigmund::new();
    let wrong: [&[&str]; 6] = [
        &["record"],
        &["record", "--pid", "1", "ls"],
        &["record", "--all", "--only"],
        &["record", "--all", "--for", "soon"],
        &["record", "--filter", "sched_switch", "ls"],
        &["record", "--kernel-clock", "sundial", "ls"],
    ];
    for args in wrong {
        let said = sigmund.run(args);
        assert_eq!(said.status, 2, "{args:?}: {said:?}");
        assert_eq!(std::fs::read_dir(sigmund.folder()).unwrap().count(), 0, "{args:?}");
    }
}

#[test]
fn a_condition_that_the_kernel_refuses_leaves_nothing_behind() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let said = sigmund.run(["record", "--filter", "sched:sched_switch: nothing == 1", "-o", "RUN", "true"]);
    assert_eq!(said.status, 2);
    assert!(said.stderr.contains("sched_switch/filter"), "{said:?}");
    assert_eq!(std::fs::read_dir(sigmund.folder()).unwrap().count(), 0);
}

#[test]
fn a_condition_is_checked_by_the_kernel() {
    let Some(alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let filter = "raw_syscalls:sys_enter: id == 1";
    let args = ["record", "--filter", filter, "--kernel-sub-buffer", "16", "-o", "RUN", "--", "echo", "word"];
    let said = sigmund.run(args);
    drop(alone);
    assert_eq!((said.status, said.stdout.as_str()), (0, "word\n"), "{said:?}");
    assert_eq!(events(&sigmund, "name = 'sys_enter' AND args[1] <> 1"), 0);
    assert!(events(&sigmund, "name = 'sys_enter'") >= 1);
    assert!(events(&sigmund, "name = 'sys_exit'") > 10);
}
