//! One real recording of perf, merged, beside what perf's own tools make of it: the system calls of each thread (`perf trace
//! -s`), and how long each thread that was woken waited for a CPU (`perf sched timehist`).

#[path = "../../fut/tests/common/skipped.rs"]
mod skipped;
mod supertrace;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::{Command, Stdio},
};

use self::{skipped::skipped, supertrace::Merged};

const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_wakeup_new,\
    sched:sched_migrate_task,sched:sched_process_fork,sched:sched_process_exit,\
    raw_syscalls:sys_enter,raw_syscalls:sys_exit";

/// Many short processes that sleep, and wait for each other.
const WORK: &str = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); sleep 0.003 & ls / | cat >/dev/null; wait; done";

/// The output of a tool of perf about a recording.
fn perf(arguments: &[&str], data: &Path) -> Option<String> {
    let output =
        Command::new("perf").args(arguments).arg("-i").arg(data).stdin(Stdio::null()).output().ok()?;
    // `perf trace` writes its summary to the standard error output.
    let text = [output.stdout, output.stderr].concat();
    output.status.success().then(|| String::from_utf8_lossy(&text).into_owned())
}

/// Records the work, with all CPUs and threads; `None` if that is not possible here.
fn recorded(path: &Path) -> Option<()> {
    let status = Command::new("perf")
        .args(["record", "-q", "-a", "-N", "-m", "4M", "-k", "CLOCK_MONOTONIC", "-e", EVENTS, "-o"])
        .arg(path)
        .args(["--", "sh", "-c", WORK])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success()).then_some(())
}

/// Of threads and system calls: how many returned, and for how many milliseconds.
type Calls = BTreeMap<(i64, String), (i64, f64)>;

/// ```text
///  sh (28371), 498 events, 0.5%
///    syscall            calls  errors  total       min       avg       max       stddev
///    wait4                 36     18   117.751     0.001     3.271    11.431     24.38%
/// ```
fn calls_of_perf(text: &str) -> Calls {
    let (mut calls, mut tid) = (Calls::new(), None);
    for line in text.lines() {
        let thread =
            line.split_once(" events, ").and_then(|(head, _)| head.rsplit_once('(')?.1.split_once(')'));
        if let Some((number, _)) = thread {
            tid = number.parse::<i64>().ok();
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, count, _, total, _, _, _, deviation] = words[..] else { continue };
        let numbers = count.parse().ok().zip(total.parse().ok()).filter(|_| deviation.ends_with('%'));
        if let (Some(tid), Some(numbers)) = (tid, numbers) {
            calls.insert((tid, name.to_string()), numbers);
        }
    }
    calls
}

fn calls_of_table(merged: &Merged) -> Calls {
    let table = merged.read("syscalls");
    let (lwps, lengths) = (table.numbers("lwp"), table.numbers("dur_tick"));
    let mut calls = Calls::new();
    for (row, words) in table.lines(&["name", "end_reason"]).iter().enumerate() {
        if let (Some((name, "returned")), Some(lwp)) = (words.split_once(' '), lwps[row]) {
            let (count, total) = calls.entry((lwp, name.to_string())).or_default();
            *count += 1;
            *total += lengths[row].unwrap_or(0) as f64 / 1e6;
        }
    }
    calls
}

/// Of each thread: how long it waited for a CPU after its wakeups, in milliseconds, if that was a microsecond or more.
type Delays = BTreeMap<i64, Vec<f64>>;

/// ```text
///            time    cpu  task name                       wait time  sch delay   run time
///    30621.172579 [0000]  sh[28371]                           0.190      0.013      0.526
/// ```
fn delays_of_perf(text: &str) -> Delays {
    let mut delays = Delays::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, cpu, .., task, _, delay, _] = words[..] else { continue };
        // `sh[28371]`, or `prog[28372/28371]` of a thread that is not the first of its process.
        let tid = task
            .rsplit_once('[')
            .and_then(|(_, tid)| tid.trim_end_matches(']').split('/').next()?.parse().ok());
        if let (Some(tid), Ok(delay), true) = (tid, delay.parse::<f64>(), cpu.starts_with('['))
            && delay >= 0.001
        {
            delays.entry(tid).or_default().push(delay);
        }
    }
    delays
}

fn delays_of_table(merged: &Merged) -> Delays {
    let table = merged.read("wakeups");
    let mut delays = Delays::new();
    for (lwp, latency) in table.numbers("lwp").into_iter().zip(table.numbers("latency_tick")) {
        if let (Some(lwp), Some(latency)) = (lwp, latency.filter(|latency| *latency >= 1000)) {
            delays.entry(lwp).or_default().push(latency as f64 / 1e6);
        }
    }
    delays
}

/// LWPs whose creation and end lie in the recording, and of which all switches were traced: some guests' kernels leave some
/// out, and perf takes the next one for it.
fn created_and_ended(merged: &Merged) -> BTreeSet<i64> {
    let events = merged.read("events");
    let created = events.lines(&["name"]).into_iter().zip(events.numbers("target_lwp"));
    let created: BTreeSet<i64> =
        created.filter(|(name, _)| name == "sched_process_fork").filter_map(|(_, lwp)| lwp).collect();
    let lwps = merged.read("lwps");
    let ended =
        lwps.numbers("lwp").into_iter().zip(lwps.numbers("dur_tick")).filter(|(_, life)| life.is_some());
    let states = merged.read("lwp_states");
    let states = states.numbers("lwp").into_iter().zip(states.lines(&["state"]));
    let unknown: BTreeSet<i64> =
        states.filter(|(_, state)| state == "unknown").filter_map(|(lwp, _)| lwp).collect();
    let lived = ended.filter_map(|(lwp, _)| lwp);
    // perf writes some samples twice, and counts both.
    let places = events.numbers("lwp").into_iter().zip(events.numbers("ts_tick"));
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for (what, (lwp, tick)) in events.lines(&["name"]).into_iter().zip(places) {
        let is_new = !what.starts_with("sys_") || seen.insert((what, lwp, tick));
        twice.extend(lwp.filter(|_| !is_new));
    }
    let is_whole = |lwp: &i64| created.contains(lwp) && !unknown.contains(lwp) && !twice.contains(lwp);
    lived.filter(is_whole).collect()
}

#[test]
fn system_calls_and_waits_for_cpus_are_those_that_perfs_own_tools_find() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    if recorded(&path).is_none() {
        return skipped("perf record of all CPUs is not possible here");
    }
    let (Some(trace), Some(timehist)) = (perf(&["trace", "-s"], &path), perf(&["sched", "timehist"], &path))
    else {
        return skipped("perf trace or perf sched cannot read its recording here");
    };
    let merged = Merged::of_file(&path).unwrap();
    assert_eq!(merged.table("losses", &["kind"]).iter().filter(|kind| *kind == "dropped").count(), 0);

    // When perf begins, its events are switched on one after the other: what threads are in then, is not comparable.
    let lived = created_and_ended(&merged);
    let (mut expected, mut found) = (calls_of_perf(&trace), calls_of_table(&merged));
    expected.retain(|(lwp, _), _| lived.contains(lwp));
    found.retain(|(lwp, _), _| lived.contains(lwp));
    assert!(expected.len() > 100, "{trace}");
    let mut without_entry: BTreeMap<i64, i64> = BTreeMap::new();
    for (of, (count, total)) in &expected {
        let (found_count, found_total) = found.get(of).copied().unwrap_or_default();
        *without_entry.entry(of.0).or_default() += count - found_count;
        // It says milliseconds, with three digits.
        assert!(
            (found_total - total).abs() <= 0.0011,
            "{of:?}: {found_count} in {found_total} ms, not {count} in {total}"
        );
    }
    // perf counts the return from a call whose entry is not there, for no time: a thread begins with one.
    let other = without_entry.iter().find(|(_, count)| !(0..=1).contains(*count));
    assert_eq!(other, None, "calls more than in the table");
    assert!(found.keys().all(|of| expected.contains_key(of)), "{found:?}");

    let (expected, found) = (delays_of_perf(&timehist), delays_of_table(&merged));
    let (mut compared, none) = (0, Vec::new());
    for lwp in lived {
        let (expected, found) = (expected.get(&lwp).unwrap_or(&none), found.get(&lwp).unwrap_or(&none));
        // perf counts a wait when its thread leaves the CPU that it got; and of one that has ended, it knows nothing then.
        let last = found.len() - expected.len().min(found.len());
        assert!(expected.len() <= found.len() && last <= 1, "LWP {lwp}: {found:?}, not {expected:?}");
        // It leaves out what is less than a microsecond.
        let is_same = |(found, expected): (&f64, &f64)| (-1e-9..0.001 + 1e-9).contains(&(found - expected));
        assert!(found.iter().zip(expected).all(is_same), "LWP {lwp}: {found:?}, not {expected:?}");
        compared += expected.len();
    }
    assert!(compared > 100, "{timehist}");
}
