//! The main job on the real kernel: Sumtime runs, both sides are recorded, and the super-trace holds together.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    kernel,
    sigmund::{Reported, Sigmund, program, said},
};

const TRACE: &str = "RUN.supertrace";

/// Height of Sumtime's tree, and how many threads that is.
const HEIGHT: u32 = 10;
const NODES: u64 = (2 << HEIGHT) - 1;

/// Sumtime under the recorder, on more LWPs than this machine may have CPUs: `RUN` and `RUN.supertrace`.
pub(crate) fn recorded() -> (Sigmund, Reported) {
    let sigmund = Sigmund::new();
    let said = record_sumtime(&sigmund);
    (sigmund, said)
}

fn record_sumtime(sigmund: &Sigmund) -> Reported {
    let height = HEIGHT.to_string();
    let said =
        sigmund.run(["record", "--force", "-o", "RUN", "--", program(), "sumtime", &height, "4", "60000"]);
    assert_eq!((said.status, said.stdout.as_str()), (0, "sumtime: 1024 leaves\n"), "{said:?}");
    said
}

#[test]
fn both_witnesses_agree_on_the_cpu_of_999_user_events_in_1000() {
    let Some(alone) = kernel::as_root() else { return };
    let (sigmund, _) = recorded();
    drop(alone);
    let count = |key| sigmund.fact(TRACE, key).parse::<f64>().unwrap();
    let (agree, disagree, single) =
        (count("witness_agree"), count("witness_disagree"), count("witness_single"));
    // Two for each node of the tree at the very least.
    assert!(agree > 2.0 * NODES as f64, "{agree} agree");
    // Of all user events: one that has a single witness does not count as agreeing.
    let agreeing = agree / (agree + disagree + single);
    assert!(agreeing >= 0.999, "{agree} agree, {disagree} disagree, {single} have one witness only");
}

/// Longer recordings, so that one event in ten thousand is several, and more LWPs than CPUs. A switch that the kernel did
/// not trace (some guests leave out those of their own agent) is counted apart: the event behind it has no second witness.
/// What is left are LWPs that were moved between the stamp and the look at the CPU.
#[test]
fn the_witnesses_disagree_on_no_more_than_one_user_event_in_10000_and_each_has_its_reason() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    for lwps in ["4", "8"] {
        let sumtime = [program(), "sumtime", "12", lwps, "20000"];
        sigmund.run(["record", "--force", "-o", "RUN", "--"].iter().chain(&sumtime)).found();
        let count = |key| sigmund.fact(TRACE, key).parse::<i64>().unwrap();
        let (agree, disagree, single) =
            (count("witness_agree"), count("witness_disagree"), count("witness_single"));
        assert!(agree > 2 * 8191, "{agree} agree");
        let listed = ["check", TRACE, "--all", "--only", "disagreements", "--format", "tsv"];
        let listed = sigmund.run(listed).stdout;
        let causes: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.rsplit('\t').next()).collect();
        assert_eq!(causes.len() as i64, disagree, "all that the merge counted are found: {listed}");
        let of = |cause| causes.iter().filter(|found| **found == cause).count() as i64;
        let (moved, off_cpu) = (of("moved"), of("off-cpu"));
        assert_eq!(moved + off_cpu, disagree, "each has its reason: {listed}");
        let told = format!("{agree} agree, {moved} moved, {off_cpu} off-CPU, {single} have one witness only");
        assert!((moved + single) * 10_000 <= agree, "{told}");
        // Even with the untraced switches it is nearly as many.
        assert!((moved + off_cpu + single) * 2_000 <= agree, "{told}");
    }
}

/// LWPs' time on CPUs by the super-trace against their own `CLOCK_THREAD_CPUTIME_ID`, summed over several recordings: a
/// fault that shows itself in every second one is seen.
///
/// What explains a difference is counted, and subtracted. That clock leaves out what a hypervisor stole and what
/// interrupts took, as `/proc/stat` says, and the switches do not. And where the kernel did not trace a switch, the
/// super-trace says that it is unknown what an LWP did.
#[test]
fn lwps_time_on_cpus_is_their_own_cpu_time_within_1_percent_in_all_recordings_together() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let (mut on_cpu, mut unknown, mut cpu_time, mut not_counted) = (0.0, 0.0, 0.0, 0.0);
    let mut each = Vec::new();
    for _ in 0..RECORDINGS {
        let before = stolen_and_interrupts_ns();
        record_sumtime(&sigmund);
        let taken = stolen_and_interrupts_ns() - before;
        let query = "SELECT sum(attached_on_cpu_ns), sum(cpu_time_ns), count(*) FROM lwps
            WHERE name LIKE 'lwp/%' AND carries_threads";
        let sums = sigmund.sql(TRACE, query);
        let ns = |column: usize| sums[0][column].parse::<f64>().unwrap();
        assert_eq!(ns(2), 4.0, "{sums:?}");
        let query = "SELECT coalesce(sum(dur_ns), 0) FROM lwp_states WHERE state = 'unknown'
            AND lwp IN (SELECT lwp FROM lwps WHERE name LIKE 'lwp/%' AND carries_threads)";
        let unseen = sigmund.sql(TRACE, query)[0][0].parse::<f64>().unwrap();
        each.push(format!(
            "{:.0} of {:.0}, {unseen:.0} unknown, {taken:.0} stolen or in interrupts",
            ns(0),
            ns(1)
        ));
        on_cpu += ns(0);
        cpu_time += ns(1);
        unknown += unseen;
        not_counted += taken;
    }
    let told = format!("ns on CPUs of ns of CPU time, in each recording: {each:#?}");
    assert!(on_cpu - not_counted <= 1.01 * cpu_time, "more by the switches, {told}");
    assert!(on_cpu + unknown >= 0.99 * cpu_time, "less by the switches, {told}");
    // Otherwise they would explain anything.
    assert!(unknown <= 0.1 * cpu_time, "{told}");
}

const RECORDINGS: usize = 6;

/// What hypervisors have stolen from all CPUs, and what their interrupts took, since the start: `irq`, `softirq` and
/// `steal` of `/proc/stat`, in 1/100 s (proc_stat(5)).
fn stolen_and_interrupts_ns() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let columns = stat.lines().next().unwrap_or_default().split_whitespace().skip(6).take(3);
    columns.map(|ticks| ticks.parse::<f64>().unwrap() * 1e7).sum()
}

/// `(tid, ns at the start, ns at the end)` of each LWP that the run's manifest has readings of.
fn cpu_times(sigmund: &Sigmund) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let text = fs::read_to_string(sigmund.path("RUN/run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["lwp_cpu_times_omitted"], 0);
    let ns = |reading: &serde_json::Value| {
        assert!(reading.is_null() || reading["before"].as_u64() <= reading["after"].as_u64(), "{reading}");
        reading["ns"].as_u64()
    };
    let times = manifest["lwp_cpu_times"].as_array().unwrap();
    times
        .iter()
        .map(|times| (times["tid"].as_u64().unwrap(), ns(&times["begin"]), ns(&times["end"])))
        .collect()
}

#[test]
fn the_cpu_time_of_each_lwp_is_in_the_run_and_what_the_kernel_adds_is_recorded_when_asked_for() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    // Long enough for some readings of LWPs that come after the first.
    let sumtime = [program(), "sumtime", "12", "4", "60000"];
    let options = ["record", "--witness", "runtime", "-o", "RUN", "--"];
    sigmund.run(options.iter().chain(&sumtime)).found();
    let times = cpu_times(&sigmund);
    // The main LWP was there at the start, as what waited at the gate.
    assert!(times.iter().any(|(_, begin, end)| begin.is_some() && end > begin), "{times:?}");
    assert!(
        times.iter().filter(|(_, begin, end)| begin.is_none() && end.is_some()).count() >= 4,
        "{times:?}"
    );
    let added = "SELECT count(*) FROM events WHERE name = 'sched_stat_runtime'";
    assert!(sigmund.number(TRACE, added) > 100);
}

#[test]
fn an_lwps_time_on_cpus_is_exactly_its_active_and_its_unmounted_time() {
    let Some(alone) = kernel::as_root() else { return };
    let (sigmund, _) = recorded();
    drop(alone);
    let query = "SELECT name, on_cpu_tick, active_tick, unmounted_tick FROM lwps WHERE carries_threads";
    let lwps = sigmund.sql(TRACE, query);
    // Four, and the main LWP, which waits for them.
    assert_eq!(lwps.len(), 5, "{lwps:?}");
    for lwp in &lwps {
        let tick = |column: usize| lwp[column].parse::<i64>().unwrap();
        assert_eq!(tick(1), tick(2) + tick(3), "{lwp:?}");
        assert!(tick(2) > 0 || !lwp[0].starts_with("lwp/"), "{lwp:?} never carried a thread");
    }
    let active = sigmund.number(TRACE, "SELECT sum(dur_tick) FROM active");
    assert_eq!(active, sigmund.number(TRACE, "SELECT sum(active_tick) FROM lwps"));
    assert_eq!(active, sigmund.number(TRACE, "SELECT sum(active_tick) FROM threads"));
}

#[test]
fn trace_cmd_counts_the_same_kernel_events() {
    let Some(alone) = kernel::as_root() else { return };
    if !kernel::has_tool("trace-cmd") {
        return;
    }
    let (sigmund, _) = recorded();
    drop(alone);
    let mut command = Command::new("trace-cmd");
    command.arg("report").arg(sigmund.path("RUN/kernel.dat"));
    let report = said(command).found();
    let mut counted = BTreeMap::new();
    for name in report.lines().filter_map(reported_name) {
        *counted.entry(name.to_string()).or_insert(0_u64) += 1;
    }
    let ours = sigmund.counts(TRACE, "SELECT name, count(*) FROM events WHERE level = 'KERN' GROUP BY name");
    assert_eq!(ours, counted);
    assert!(ours["sched_switch"] > 100 && ours["sys_enter"] > 100, "{ours:?}");
}

/// The event's name in `program: sigmund-3036  [001] 14862979248858: sys_exit:  NR 45 = 1`; a task's name may have
/// anything in it.
fn reported_name(line: &str) -> Option<&str> {
    let brackets = line.match_indices(" [").map(|(at, _)| &line[at + 2..]);
    let mut after_cpu = brackets.filter_map(|rest| {
        let (cpu, rest) = rest.split_once(']')?;
        (!cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit())).then_some(rest)
    });
    let (_time, rest) = after_cpu.next()?.split_once(": ")?;
    Some(rest.split_once(':')?.0)
}

#[test]
fn nothing_of_sumtime_is_lost_and_every_invariant_holds() {
    let Some(alone) = kernel::as_root() else { return };
    let (sigmund, _) = recorded();
    drop(alone);
    assert_eq!(sigmund.number(TRACE, "SELECT sum(lost_events) FROM lwps"), 0);
    assert_eq!(sigmund.number(TRACE, "SELECT sum(lost_events) FROM cpus"), 0);
    let lost = "SELECT * FROM losses WHERE kind IN ('dropped', 'damaged', 'truncated', 'unfinished', 'not-recorded')";
    assert_eq!(sigmund.sql(TRACE, lost), Vec::<Vec<String>>::new());
    let checked = sigmund.run(["check", TRACE]).found();
    // Sumtime names no spans and takes no locks.
    let none = ["span", "Span", "lock"];
    let is_checked =
        |line: &&str| line.starts_with("not applicable") && !none.iter().any(|word| line.contains(word));
    assert_eq!(checked.lines().find(is_checked), None, "{checked}");
    assert!(!checked.contains("broken  "), "{checked}");
}

#[test]
fn every_thread_of_the_tree_is_there_from_its_beginning_to_its_end() {
    let Some(alone) = kernel::as_root() else { return };
    let (sigmund, _) = recorded();
    drop(alone);
    // The runtime's main thread is the root of the tree.
    assert_eq!(sigmund.number(TRACE, "SELECT count(*) FROM threads") as u64, NODES);
    assert_eq!(sigmund.number(TRACE, "SELECT count(*) FROM threads WHERE dur_tick IS NULL"), 0);
    for view in ["node_begin", "node_end"] {
        let query = format!("SELECT height, count(DISTINCT thread) FROM {view} GROUP BY height");
        let expected = (0..=HEIGHT).map(|height| (height.to_string(), 1 << (HEIGHT - height)));
        assert_eq!(sigmund.counts(TRACE, &query), expected.collect(), "{view}");
        assert_eq!(sigmund.number(TRACE, &format!("SELECT count(*) FROM {view}")) as u64, NODES);
    }
    let root = format!("SELECT sum FROM node_end WHERE height = {HEIGHT}");
    assert_eq!(sigmund.number(TRACE, &root), 1 << HEIGHT);
}

#[test]
fn a_recording_says_where_it_is_and_leaves_nothing_in_the_kernel() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, said) = recorded();
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    assert!(
        said.stderr.contains("RUN.supertrace: ") && said.stderr.contains("2047 user threads"),
        "{said:?}"
    );
    assert_eq!(sigmund.fact(TRACE, "kernel_side"), "tracefs");
    assert_eq!(sigmund.fact(TRACE, "ended"), "exit 0");
    let mut names: Vec<_> = fs::read_dir(sigmund.path("RUN"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(
        matches!(names.as_slice(), [a, b, c] if a == "kernel.dat" && b == "run.json" && c.ends_with(".fut")),
        "{names:?}"
    );
}

#[test]
fn a_kernel_side_that_was_cut_costs_its_end_and_not_the_user_side() {
    let Some(alone) = kernel::as_root() else { return };
    let (sigmund, _) = recorded();
    drop(alone);
    let count =
        |level| sigmund.number(TRACE, &format!("SELECT count(*) FROM events WHERE level = '{level}'"));
    let (kernel, user) = (count("KERN"), count("USER"));
    let path = sigmund.path("RUN/kernel.dat");
    let bytes = fs::read(&path).unwrap();
    // What describes the events is up to a half of it.
    fs::write(&path, &bytes[..bytes.len() / 8 * 7]).unwrap();
    let said = sigmund.run(["merge", "RUN", "-o", TRACE, "--force"]);
    said.complained(&["kernel.dat: ", "cpu ", "at byte ", "the end of the file"]);
    assert!((1..kernel).contains(&count("KERN")), "{} of {kernel} kernel events kept", count("KERN"));
    assert_eq!(count("USER"), user);
    assert!(sigmund.number(TRACE, "SELECT count(*) FROM losses WHERE kind = 'truncated'") > 0);
}

#[test]
fn ctrl_c_stops_the_program_and_completes_the_recording() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let recorder = sigmund.start(["record", "-o", "RUN", "--", "sleep", "100"]);
    let _sleep = kernel::program_of(recorder.pid(), "sleep");
    assert_eq!(kernel::held_by(recorder.pid()).len(), 3, "two instances and a folder of arenas");
    kernel::send(recorder.pid(), Signal::INT);
    let said = recorder.finish();
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    said.found();
    assert_eq!(sigmund.fact(TRACE, "ended"), "signal 2");
    assert!(sigmund.number(TRACE, "SELECT count(*) FROM events WHERE name = 'sched_switch'") > 0);
}

#[test]
fn what_a_killed_recorder_left_is_removed_at_the_next_start() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let recorder = sigmund.start(["record", "-o", "KILLED", "--", "sleep", "100"]);
    let killed = recorder.pid();
    let sleep = kernel::program_of(killed, "sleep");
    assert_eq!(kernel::held_by(killed).len(), 3, "two instances and a folder of arenas");
    kernel::send(killed, Signal::KILL);
    // It still has the recorder's output open.
    sleep.kill();
    recorder.finish();

    sigmund.run(["record", "-o", "RUN", "--", "true"]).found();
    assert_eq!(kernel::held_by(killed), Vec::<String>::new());
}

#[test]
fn a_program_that_is_killed_leaves_its_events_to_the_last() {
    let Some(_alone) = kernel::as_root() else { return };
    assert!((0..TRIES).any(|_| killed_program_keeps_every_invariant()));
}

fn killed_program_keeps_every_invariant() -> bool {
    let sigmund = Sigmund::new();
    // Far more work than it is given time for.
    let recorder = sigmund.start(["record", "-o", "RUN", "--", program(), "sumtime", "12", "4", "400000"]);
    let sumtime = kernel::program_of(recorder.pid(), "sumtime");
    sumtime.wait_for_cpu_time(Duration::from_secs(1));
    sumtime.kill();
    recorder.finish().found();
    assert_eq!(sigmund.fact(TRACE, "ended"), "signal 9");
    assert_eq!(sigmund.number(TRACE, "SELECT sum(lost_events) FROM lwps"), 0);
    assert!(sigmund.number(TRACE, "SELECT count(*) FROM node_begin") > 100);
    // A leaf takes some milliseconds; so the last event is not long before the end of the LWPs.
    let gap_ms = "SELECT CAST((max(ts_ns) FILTER (WHERE name = 'sched_process_exit')
        - max(ts_ns) FILTER (WHERE level = 'USER')) / 1000000 AS BIGINT) FROM events";
    let gap_ms = sigmund.number(TRACE, gap_ms);
    assert!((0..200).contains(&gap_ms), "the last user event is {gap_ms} ms before the end");
    every_invariant_holds(&sigmund)
}

/// Recordings until one passes `sigmund check` whole.
const TRIES: usize = 10;

/// Whether `sigmund check` passes whole. In a trace so short, a single switch that the kernel did not trace (it leaves
/// some out on some guests) is more than one user event in a thousand; so a recording may fail that invariant, if the merge
/// has counted such a switch where witnesses disagree, but not each of [`TRIES`], and no recording any other invariant.
fn every_invariant_holds(sigmund: &Sigmund) -> bool {
    let disagree = sigmund.fact(TRACE, "witness_disagree").parse::<i64>().unwrap();
    let counted = "SELECT coalesce(sum(count), 0) FROM losses WHERE kind = 'contradiction'";
    let counted = sigmund.number(TRACE, counted);
    assert!(disagree <= counted, "{disagree} witnesses disagree, {counted} contradictions are counted");
    let check = sigmund.run(["check", TRACE]);
    let is_broken =
        |line: &&str| line.starts_with("broken") && !line.contains("from the probe and from sched_switch");
    assert_eq!(check.stdout.lines().find(is_broken), None, "{check:?}");
    check.status == 0
}

#[test]
fn however_a_program_dies_its_events_are_there_and_every_invariant_holds() {
    let Some(_alone) = kernel::as_root() else { return };
    // A SIGSEGV that somebody sends is caught by the standard library's handler; real ones are in fut/tests/kill.rs.
    let deaths = [
        (Signal::KILL, "signal 9", 150),
        (Signal::QUIT, "signal 3", 310),
        (Signal::ABORT, "signal 6", 230),
        (Signal::KILL, "signal 9", 400),
    ];
    for (signal, ended, after_ms) in deaths {
        assert!((0..TRIES).any(|_| dying_program_keeps_every_invariant(signal, ended, after_ms)), "{ended}");
    }
}

fn dying_program_keeps_every_invariant(signal: Signal, ended: &str, after_ms: u64) -> bool {
    let sigmund = Sigmund::new();
    // A shell that runs the tests in the background has SIGQUIT ignored, by them and all that they start.
    let sumtime = ["env", "--default-signal=QUIT", program(), "sumtime", "12", "4", "400000"];
    let recorder = sigmund.start(["record", "-o", "RUN", "--"].iter().chain(&sumtime));
    let sumtime = kernel::program_of(recorder.pid(), "sumtime");
    std::thread::sleep(Duration::from_millis(after_ms));
    // On a busy machine it may not have begun yet.
    sumtime.wait_for_more_lwps_than(3);
    sumtime.wait_for_cpu_time(Duration::from_millis(80));
    sumtime.send(signal);
    recorder.finish().found();
    assert_eq!(sigmund.fact(TRACE, "ended"), ended);
    assert_eq!(sigmund.number(TRACE, "SELECT sum(lost_events) FROM lwps"), 0, "{ended}");
    let events = sigmund.number(TRACE, "SELECT count(*) FROM events WHERE level = 'USER'");
    assert!(events > 100, "{ended}: {events} events");
    every_invariant_holds(&sigmund)
}

#[test]
fn a_flight_recording_keeps_the_last_events_and_says_how_many_it_does_not() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let sumtime = [program(), "sumtime", "13", "4", "100"];
    let options = ["record", "--flight", "--user-buffer", "256", "-o", "RUN", "--"];
    let said = sigmund.run(options.iter().chain(&sumtime));
    assert_eq!((said.status, said.stdout.as_str()), (0, "sumtime: 8192 leaves\n"), "{said:?}");
    // The root ends last.
    assert_eq!(sigmund.number(TRACE, "SELECT count(*) FROM node_end WHERE height = 13"), 1);
    let begun = sigmund.number(TRACE, "SELECT count(*) FROM node_begin");
    assert!((1..16383).contains(&begun), "{begun} of 16383 nodes begin in it");
    assert_eq!(sigmund.number(TRACE, "SELECT sum(lost_events) FROM lwps"), 0);
    let overwritten = sigmund.sql(TRACE, "SELECT severity, detail FROM losses WHERE kind = 'overwritten'");
    assert!((1..=5).contains(&overwritten.len()), "{overwritten:?}");
    assert!(overwritten.iter().all(|row| row[0] == "note" && row[1].contains("bytes of records")));
    sigmund.run(["check", TRACE]).found();
}

/// `record ARGS -- sumtime` by somebody who is not root, in a folder of theirs.
fn recorded_by_an_ordinary_user(args: &[&str]) -> (Sigmund, Reported) {
    let sigmund = Sigmund::new();
    fs::set_permissions(sigmund.folder(), fs::Permissions::from_mode(0o777)).unwrap();
    // They may not be allowed to go where the program was built.
    let theirs = sigmund.path("sigmund");
    fs::hard_link(program(), &theirs).or_else(|_| fs::copy(program(), &theirs).map(drop)).unwrap();
    let mut command = Command::new(if kernel::is_root() { Path::new("setpriv") } else { &theirs });
    if kernel::is_root() {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&theirs);
    }
    command.arg("record").args(args).args(["-o", "RUN", "--"]).arg(&theirs);
    command.args(["sumtime", "6", "4", "60000"]).current_dir(sigmund.folder()).stdin(Stdio::null());
    (sigmund, said(command))
}

#[test]
fn an_ordinary_user_gets_the_switches_of_their_own_lwps_and_is_told() {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let allowed = paranoid.trim().parse::<i32>().is_ok_and(|level| level <= 2);
    if !kernel::needs(
        allowed,
        "perf_event_paranoid is above 2: ordinary users may record nothing of the kernel",
    ) {
        return;
    }
    let _alone = kernel::alone();
    let (sigmund, said) = recorded_by_an_ordinary_user(&[]);
    let told: Vec<&str> = said.stderr.lines().filter(|line| line.contains("kernel: ")).collect();
    assert_eq!(told.len(), 1, "{said:?}");
    assert!(told[0].contains("own LWPs") && told[0].contains("tracefs"), "{told:?}");
    said.found();
    assert_eq!(sigmund.fact(TRACE, "kernel_side"), "perf");
    let states = sigmund.counts(TRACE, "SELECT state, count(*) FROM thread_states GROUP BY state");
    assert!(states["active"] >= 127 && !states.contains_key("mounted"), "{states:?}");
    assert_eq!(sigmund.number(TRACE, "SELECT count(*) FROM threads WHERE active_tick > 0"), 127);
}

#[test]
fn without_the_kernel_side_threads_are_mounted_and_nobody_says_they_were_active() {
    let _alone = kernel::alone();
    let (sigmund, said) = recorded_by_an_ordinary_user(&["--user-only"]);
    let told: Vec<&str> = said.stderr.lines().filter(|line| line.contains("kernel: ")).collect();
    assert_eq!(told.len(), 1, "{said:?}");
    assert!(told[0].contains("not recorded") && told[0].contains("--user-only"), "{told:?}");
    said.found();
    let states = sigmund.counts(TRACE, "SELECT state, count(*) FROM thread_states GROUP BY state");
    assert!(states["mounted"] >= 127, "{states:?}");
    for unknown in ["active", "stalled", "in-kernel", "off-cpu"] {
        assert!(!states.contains_key(unknown), "{states:?}");
    }
    assert_eq!(sigmund.number(TRACE, "SELECT count(*) FROM active"), 0);
    let not_recorded = "SELECT count(*) FROM losses WHERE kind = 'not-recorded' AND level = 'KERN'";
    assert_eq!(sigmund.number(TRACE, not_recorded), 1);
}

#[test]
fn the_demo_shows_a_thread_with_a_story_and_leaves_the_run_and_the_super_trace() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let said = sigmund.run(["demo", "-o", "SHOW"]);
    let mut rest = said.stdout.as_str();
    for part in [
        "The run in numbers\n$ sigmund info SHOW/sumtime.supertrace\n",
        "\nThread ",
        " blocked ",
        "$ sigmund sql SHOW/sumtime.supertrace \"SELECT state, ",
        "new ",
        "exited ",
        "LWPs on that CPU during its longest stall\n$ sigmund sql ",
        "Its switches and its own events\n$ sigmund -f SHOW/sumtime.supertrace --thread ",
        "Its active time, of its life\n$ sigmund -f SHOW/sumtime.supertrace --thread ",
        " cycles\n",
        "Can the trace be trusted?\n$ sigmund check SHOW/sumtime.supertrace\nok  ",
        "\nSHOW/sumtime.supertrace: sound",
        "How long threads were in each state\n$ sigmund sql SHOW/sumtime.supertrace \"SELECT ",
        "active ",
    ] {
        let Some((_, after)) = rest.split_once(part) else { panic!("expected {part:?} in {rest}: {said:?}") };
        rest = after;
    }
    // It may be preempted before its first event, or after it.
    let listing = said.stdout.split_once("Its switches and its own events\n").unwrap().1;
    let listing = listing.split_once("Its active time, of its life\n").unwrap().0;
    assert!(listing.contains("sched_switch "), "{listing}: {said:?}");
    let begin = listing.find("node_begin ").unwrap_or_else(|| panic!("{listing}: {said:?}"));
    assert!(listing[begin..].contains("node_end "), "{listing}: {said:?}");
    let chosen = said.stdout.split_once("\nThread ").and_then(|(_, rest)| rest.split_once('(')).unwrap().0;
    let moved_and_stalled = sigmund.sql(
        "SHOW/sumtime.supertrace",
        "SELECT thread FROM threads WHERE migrations > 0 AND stalls > 0 AND thread IN \
            (SELECT thread FROM thread_states WHERE state = 'blocked')",
    );
    assert!(
        moved_and_stalled.is_empty() || moved_and_stalled.contains(&vec![chosen.to_string()]),
        "{chosen} is not one of {moved_and_stalled:?}"
    );
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    said.found();
    assert!(sigmund.path("SHOW/sumtime.run/kernel.dat").is_file());
    sigmund.run(["check", "SHOW/sumtime.supertrace"]).found();
    // What it says to type can be typed; a second demo takes the first one's place.
    sigmund.run(["demo", "-o", "SHOW", "--height", "3"]).found();
    assert_eq!(sigmund.number("SHOW/sumtime.supertrace", "SELECT count(*) FROM threads"), 15);
}
