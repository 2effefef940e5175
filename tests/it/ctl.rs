//! `sigmund ctl` and `sigmund snapshot` beside a program that is being recorded.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    kernel::{self, Process},
    sigmund::{Reported, Running, Sigmund, program, said},
};

const TRACE: &str = "RUN.supertrace";

/// Sumtime with far more work than it is given time for, recorded; what it is, and whether it can be asked yet.
struct Recorded {
    sigmund: Sigmund,
    recorder: Running,
    sumtime: Process,
}

impl Recorded {
    fn start(options: &[&str]) -> Recorded {
        let recorded = Recorded::start_unasked(options, None);
        let start = Instant::now();
        while recorded.ctl(&["status"]).status != 0 {
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", recorded.ctl(&["status"]));
            std::thread::sleep(Duration::from_millis(5));
        }
        recorded
    }

    fn start_unasked(options: &[&str], control: Option<&str>) -> Recorded {
        let sigmund = Sigmund::new();
        let mut command = sigmund.command();
        control.into_iter().for_each(|value| _ = command.env("FUT_CONTROL", value));
        command.args(["record", "--user-only", "-o", "RUN"]).args(options).arg("--");
        command.args([program(), "sumtime", "16", "4", "200000"]);
        let recorder = Running::of(command);
        let sumtime = kernel::program_of(recorder.pid(), "sumtime");
        Recorded { sigmund, recorder, sumtime }
    }

    fn pid(&self) -> String {
        self.sumtime.number().to_string()
    }

    fn ctl(&self, words: &[&str]) -> Reported {
        self.sigmund.run(["ctl", &self.pid()].iter().chain(words))
    }

    /// A table, cell by cell, without its head.
    fn table(&self, verb: &str) -> Vec<Vec<String>> {
        let said = self.ctl(&[verb, "--format", "tsv"]);
        // 1: it is empty, as the threads of a program that just begins.
        assert!(said.status < 2, "{said:?}");
        said.stdout.lines().skip(1).map(|line| line.split('\t').map(String::from).collect()).collect()
    }

    /// Waits until the program has created this many more threads.
    fn goes_on(&self, threads: u64) {
        let last =
            || self.table("threads").iter().map(|row| row[0].parse::<u64>().unwrap()).max().unwrap_or(0);
        let (start, first) = (Instant::now(), last());
        while last() < first + threads {
            assert!(start.elapsed() < Duration::from_secs(20), "it stands still");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the program, and waits until what was recorded is merged.
    fn finish(self) -> Sigmund {
        self.sumtime.kill();
        self.recorder.finish().found();
        self.sigmund
    }
}

#[test]
fn what_is_switched_off_is_not_in_the_trace_from_then_on() {
    let _alone = kernel::alone();
    let recorded = Recorded::start(&[]);
    let state_of = |name: &str| {
        let events = recorded.table("list");
        events.into_iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("no event {name}"))[2].clone()
    };
    recorded.goes_on(20);
    assert_eq!(state_of("node_begin"), "on");
    let said = recorded.ctl(&["disable", "node_*"]);
    assert!(said.stderr.contains("2 events matched, 2 switched off"), "{said:?}");
    said.found();
    assert_eq!((state_of("node_begin").as_str(), state_of("USER_THREAD_NEW").as_str()), ("off", "on"));
    let said = recorded.ctl(&["keys", "scheduler,lwp"]);
    assert!(said.stderr.contains("the key mask is 0x3"), "{said:?}");
    assert!(said.found().contains("program"));
    recorded.goes_on(200);
    let sigmund = recorded.finish();
    let behind = "SELECT count(*) FROM events WHERE name = 'USER_THREAD_NEW'
        AND ts_tick > (SELECT max(ts_tick) FROM events WHERE name LIKE 'node_%')";
    assert!(sigmund.number(TRACE, "SELECT count(*) FROM node_begin") > 10);
    assert!(sigmund.number(TRACE, behind) > 100, "nodes are created, and not recorded as such");
}

#[test]
fn status_and_threads_say_what_the_program_is_at() {
    let _alone = kernel::alone();
    let recorded = Recorded::start(&[]);
    recorded.goes_on(20);
    let status = recorded.ctl(&["status"]).found();
    for line in ["mode               discard", "drained_by         the recorder", "lost_without_ring  0"] {
        assert!(status.contains(line), "expected {line:?} in {status}");
    }
    let json = recorded.ctl(&["status", "--format", "json"]).found();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["pid"].to_string(), recorded.pid());
    let lwps = json["lwps"].as_array().unwrap();
    assert!(
        lwps.iter().filter(|lwp| lwp["name"].as_str().unwrap().starts_with("lwp/")).count() == 4,
        "{json}"
    );
    assert!(lwps.iter().all(|lwp| lwp["lost"] == 0 && lwp["in_use"].as_u64() <= Some(64)), "{json}");
    // The root waits for its left child until the end, as soon as it has made both.
    let start = Instant::now();
    let mut threads = recorded.table("threads");
    while threads[0][2] != "blocked" && start.elapsed() < Duration::from_secs(20) {
        threads = recorded.table("threads");
    }
    assert_eq!(threads[0][..3], ["1", "main", "blocked"], "{:?}", threads[0]);
    assert_eq!(threads[0][4..], ["join", "thread 2", "2", "left/15"], "{:?}", threads[0]);
    recorded.finish();
}

#[test]
fn a_flight_recorder_that_runs_is_recorded_with_the_kernel_beneath_it() {
    let Some(_alone) = kernel::as_root() else { return };
    let recorded = Recorded::start(&["--flight", "--user-buffer", "256"]);
    recorded.goes_on(100);
    let pid = recorded.pid();
    let said = recorded.sigmund.run(["record", "--pid", &pid, "--for", "300ms", "-o", "LIVE"]);
    assert_eq!(said.status, 0, "{said:?}");
    let count = |key: &str| recorded.sigmund.fact("LIVE.supertrace", key).parse::<u64>().unwrap();
    assert!(count("user_events") > 100 && count("kernel_events") > 100, "{said:?}");
    // The last events of the program lie within what was recorded of the kernel.
    assert!(count("witness_agree") > 100, "{said:?}");
    recorded.goes_on(10);
    recorded.finish();
}

// program   |u u u u u u u u u u u u u u|
// kernel              |========|            recorded for 200 ms in the middle, by another recorder
#[test]
fn what_the_kernel_side_covers_has_two_witnesses_and_nothing_else_has() {
    let Some(_alone) = kernel::as_root() else { return };
    let recorded = Recorded::start(&[]);
    recorded.goes_on(50);
    let said = recorded.sigmund.run(["record", "-a", "--for", "200ms", "--no-merge", "-o", "KERNEL"]);
    assert_eq!(said.status, 0, "{said:?}");
    recorded.goes_on(50);
    let sigmund = recorded.finish();
    let both = "BOTH.supertrace";
    sigmund.run(["merge", "KERNEL", "RUN", "-o", both]).found();

    let manifest = fs::read_to_string(sigmund.path("KERNEL/run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let stopped = manifest["kernel_side"]["stopped_tick"].as_i64().unwrap();
    let number = |query: &str| sigmund.number(both, query);
    let began = number("SELECT min(ts_tick) FROM raw_events WHERE level = 'KERN'");
    let user =
        |when: &str| number(&format!("SELECT count(*) FROM raw_events WHERE level = 'USER' AND {when}"));
    let before = user(&format!("ts_tick < {began}"));
    let after = user(&format!("ts_tick > {stopped}"));
    assert!(before > 50 && after > 50, "{before} before, {after} after");

    let fact = |key: &str| sigmund.fact(both, key).parse::<i64>().unwrap();
    let (agree, disagree) = (fact("witness_agree"), fact("witness_disagree"));
    // Some 800 of 200 ms: one at which its LWP is being moved is no fault of the border.
    assert!(agree > 50 && disagree <= 1 + agree / 1000, "{agree} agree, {disagree} do not");
    assert!(fact("witness_single") >= before + after);
    // Nothing is certain outside.
    let outside = |table: &str, only: &str| {
        number(&format!(
            "SELECT count(*) FROM {table}
             WHERE {only} AND (ts_tick < {began} OR ts_tick > {stopped} OR ts_tick + dur_tick > {stopped})"
        ))
    };
    assert_eq!(outside("raw_active", "true"), 0);
    assert_eq!(outside("raw_lwp_states", "state NOT IN ('unknown', 'exited')"), 0);
    assert_eq!(outside("raw_thread_states", "state IN ('active', 'stalled', 'in-kernel')"), 0);
    let gaps = "SELECT count(*) FROM raw_losses WHERE kind = 'not-recorded' AND cpu IS NOT NULL";
    assert!(number(&format!("{gaps} AND from_tick = {stopped} AND to_tick IS NULL")) > 0);
    sigmund.run(["check", both]).found();
}

#[test]
fn a_flight_recorder_is_asked_for_a_snapshot_and_goes_on() {
    let _alone = kernel::alone();
    let recorded = Recorded::start(&["--flight", "--user-buffer", "256"]);
    recorded.goes_on(100);
    let name = format!("snapshot-{}.fut", recorded.pid());
    let snapshot = |words: &[&str]| recorded.sigmund.run(["snapshot", &recorded.pid()].iter().chain(words));
    assert_eq!(snapshot(&[]).found(), format!("{name}\n"));
    assert_eq!(snapshot(&[]).found(), format!("snapshot-{}-2.fut\n", recorded.pid()));
    let said = snapshot(&["-o", "here.fut"]);
    assert!(said.stderr.contains(" events in "), "{said:?}");
    assert_eq!(said.found(), "here.fut\n");
    snapshot(&["-o", "here.fut"]).complained(&["here.fut", "exists"]);
    snapshot(&["-o", "nowhere/here.fut"]).complained(&["nowhere/here.fut"]);
    recorded.goes_on(10);
    let sigmund = &recorded.sigmund;
    for trace in [name.as_str(), "here.fut"] {
        sigmund.run(["merge", trace, "--force", "-o", "now.supertrace"]).found();
        let listed = sigmund.run(["-f", "now.supertrace", "--event", "node_begin", "--list-events"]).found();
        assert!(listed.lines().count() > 10, "{listed}");
        sigmund.run(["check", "now.supertrace"]).found();
    }
    recorded.finish();
}

#[test]
fn what_cannot_be_done_is_said_and_changes_nothing() {
    let _alone = kernel::alone();
    let recorded = Recorded::start(&[]);
    let before: Vec<_> =
        recorded.table("list").into_iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    let said = recorded.ctl(&["disable", "no_such_event"]);
    assert!(said.stderr.contains("nothing matched \"no_such_event\""), "{said:?}");
    said.found_nothing();
    recorded.ctl(&["disable", "[a-z]*"]).complained(&["pattern \"[a-z]*\"", "found '['"]);
    recorded.ctl(&["disable", "a\nb"]).complained(&["control characters"]);
    recorded.ctl(&["keys", "0xg"]).complained(&["expected a number as in 0x101"]);
    let refused = recorded.sigmund.run(["snapshot", &recorded.pid(), "-o", "no.fut"]);
    refused.complained(&["not a flight recorder", "record --flight"]);
    assert!(!recorded.sigmund.path("no.fut").exists());
    let after: Vec<_> =
        recorded.table("list").into_iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    assert_eq!(after, before);
    somebody_else_may_not(&recorded);

    let sigmund = recorded.finish();
    // PID_MAX_LIMIT is 2^22.
    sigmund.run(["ctl", "4194305", "list"]).complained(&["process 4194305: there is no such process"]);
    let us = std::process::id().to_string();
    sigmund.run(["ctl", &us, "list"]).complained(&[&us, "it does not record", "sigmund record"]);
    sigmund.run(["snapshot", &us, "-o", "no.fut"]).complained(&["it does not record"]);
    assert!(!sigmund.path("no.fut").exists());
}

fn somebody_else_may_not(recorded: &Recorded) {
    if !kernel::needs(kernel::is_root(), "being somebody else needs root") || !kernel::has_tool("setpriv") {
        return;
    }
    let folder = recorded.sigmund.folder();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    // They may not be allowed to go where the program was built.
    let theirs = folder.join("sigmund");
    fs::hard_link(program(), &theirs).or_else(|_| fs::copy(program(), &theirs).map(drop)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&theirs);
    command.args(["ctl", &recorded.pid(), "disable", "*"]).current_dir(folder).stdin(Stdio::null());
    said(command).complained(&["it belongs to user 0", "only that user and root"]);
}

#[test]
fn a_program_that_wants_no_control_has_none_and_is_recorded_all_the_same() {
    let _alone = kernel::alone();
    let recorded = Recorded::start_unasked(&[], Some("0"));
    // It records as soon as its runtime has LWPs, which are named.
    let lwps =
        || fs::read_dir(Path::new("/proc").join(recorded.pid()).join("task")).unwrap().flatten().count();
    let start = Instant::now();
    while lwps() < 5 {
        assert!(start.elapsed() < Duration::from_secs(20), "{} LWPs", lwps());
        std::thread::sleep(Duration::from_millis(5));
    }
    recorded.ctl(&["list"]).complained(&["it does not record", "FUT_CONTROL=0"]);
    std::thread::sleep(Duration::from_millis(100));
    let sigmund = recorded.finish();
    assert!(sigmund.number(TRACE, "SELECT count(*) FROM node_begin") > 10);
}

/// A stopped program answers nobody.
#[test]
fn a_signal_ends_a_snapshot_and_a_question_to_a_stopped_program_and_leaves_no_file() {
    let _alone = kernel::alone();
    let recorded = Recorded::start(&["--flight"]);
    recorded.sumtime.stop();
    let pid = recorded.pid();
    let snapshot = recorded.sigmund.start(["snapshot", &pid, "-o", "now.fut"]);
    let file = recorded.sigmund.path("now.fut");
    let start = Instant::now();
    while !file.exists() {
        assert!(start.elapsed() < Duration::from_secs(20), "it is made before the program is asked");
        std::thread::sleep(Duration::from_millis(2));
    }
    // Not SIGINT: what a shell runs in the background ignores it.
    kernel::send(snapshot.pid(), rustix::process::Signal::TERM);
    snapshot.finish().complained(&[&format!("process {pid}: cancelled before the answer")]);
    assert!(!file.exists());
    let asks = recorded.sigmund.start(["ctl", &pid, "status"]);
    kernel::send(asks.pid(), rustix::process::Signal::TERM);
    let said = asks.finish();
    assert!(start.elapsed() < Duration::from_secs(20), "{said:?}");
    assert_eq!((said.status, said.stdout.as_str()), (-1, ""), "{said:?}");
    recorded.sumtime.send(rustix::process::Signal::CONT);
    recorded.finish();
}
