//! Compares the merge of a real perf recording with perf's tools: the system calls of each thread (`perf trace -s`),
//! and the run-queue latency of each thread after its wakeups (`perf sched timehist`).

mod recording;
#[path = "../../../../fut/tests/common/skipped.rs"]
mod skipped;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    recording::{Calls, Delays, calls_of_perf, delays_of_perf, perf, recorded},
    skipped::skipped,
};
use crate::supertrace::Merged;

fn calls_of_table(merged: &Merged) -> Calls {
    let table = merged.read("syscalls");
    let (lwps, lengths, returned) = (table.numbers("lwp"), table.numbers("dur_tick"), table.numbers("ret"));
    let mut calls = Calls::new();
    for (row, words) in table.lines(&["name", "end_reason"]).iter().enumerate() {
        if let (Some((name, "returned")), Some(lwp)) = (words.split_once(' '), lwps[row]) {
            let sum = calls.entry((lwp, name.to_string())).or_default();
            sum.count += 1;
            sum.errors += i64::from(returned[row].is_some_and(|value| (-4095..0).contains(&value)));
            sum.total_ms += lengths[row].unwrap_or(0) as f64 / 1e6;
        }
    }
    calls
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

/// The LWPs whose creation and end are in the recording, and whose switches were all traced. The kernels of some guests
/// leave switches out; perf then takes the next switch instead.
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
    // perf writes some samples twice, and its tools count both.
    let places = events.numbers("lwp").into_iter().zip(events.numbers("ts_tick"));
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for (what, (lwp, tick)) in events.lines(&["name"]).into_iter().zip(places) {
        let is_new = !what.starts_with("sys_") || seen.insert((what, lwp, tick));
        twice.extend(lwp.filter(|_| !is_new));
    }
    let early = woken_early(merged);
    let is_whole = |lwp: &i64| {
        created.contains(lwp) && !unknown.contains(lwp) && !twice.contains(lwp) && !early.contains(lwp)
    };
    lived.filter(is_whole).collect()
}

/// The LWPs that somebody woke when they were about to leave their CPU, but had not yet: perf forgets such a wakeup as they leave it.
///
/// ```text
/// 8412.212150681  CPU 1: waking 23276        8412.212150806  CPU 0: 23276 leaves, asleep
/// 8412.212154667  CPU 1: wakeup 23276        8412.212184226  CPU 0: 23276 comes: perf has a delay of 0.000 ms
/// ```
fn woken_early(merged: &Merged) -> BTreeSet<i64> {
    let states = merged.read("lwp_states");
    let (lwps, begins, lengths) =
        (states.numbers("lwp"), states.numbers("ts_tick"), states.numbers("dur_tick"));
    let mut running: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for (row, state) in states.lines(&["state"]).iter().enumerate() {
        if let (Some(lwp), Some(begin), Some(length), "running") =
            (lwps[row], begins[row], lengths[row], state.as_str())
        {
            running.entry(lwp).or_default().push((begin, begin + length));
        }
    }
    let events = merged.read("events");
    let places = events.numbers("target_lwp").into_iter().zip(events.numbers("ts_tick"));
    let wakings = events.lines(&["name"]).into_iter().zip(places).filter(|(name, _)| name == "sched_waking");
    let is_early = |lwp: &i64, tick: i64| {
        running.get(lwp).is_some_and(|stays| stays.iter().any(|(from, to)| *from <= tick && tick < *to))
    };
    wakings.filter_map(|(_, (lwp, tick))| lwp.filter(|lwp| is_early(lwp, tick.unwrap_or(0)))).collect()
}

#[test]
fn system_calls_and_run_queue_latencies_are_the_same_as_by_perfs_tools() {
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

    // perf switches its events on one after the other: system calls open at that time are not comparable.
    let lived = created_and_ended(&merged);
    let (mut expected, mut found) = (calls_of_perf(&trace), calls_of_table(&merged));
    expected.retain(|(lwp, _), _| lived.contains(lwp));
    found.retain(|(lwp, _), _| lived.contains(lwp));
    assert!(expected.len() > 100, "{trace}");
    let mut without_entry: BTreeMap<i64, i64> = BTreeMap::new();
    for (of, expected) in &expected {
        let found = found.get(of).copied().unwrap_or_default();
        *without_entry.entry(of.0).or_default() += expected.count - found.count;
        // perf prints milliseconds with three digits.
        let is_same = (found.total_ms - expected.total_ms).abs() <= 0.0011 && found.errors == expected.errors;
        assert!(is_same, "{of:?}: {found:?}, not {expected:?}");
    }
    // perf counts a return without an entry as a call of no duration. Each new thread begins with one.
    let other = without_entry.iter().find(|(_, count)| !(0..=1).contains(*count));
    assert_eq!(other, None, "calls more than in the table");
    assert!(found.keys().all(|of| expected.contains_key(of)), "{found:?}");

    let (expected, found) = (delays_of_perf(&timehist), delays_of_table(&merged));
    let (mut compared, none) = (0, Vec::new());
    for lwp in lived {
        let (expected, found) = (expected.get(&lwp).unwrap_or(&none), found.get(&lwp).unwrap_or(&none));
        // perf counts a wait when the thread next leaves the CPU, and not if the thread has ended by then.
        let last = found.len() - expected.len().min(found.len());
        assert!(expected.len() <= found.len() && last <= 1, "LWP {lwp}: {found:?}, not {expected:?}");
        // perf leaves out waits of less than a microsecond.
        let is_same = |(found, expected): (&f64, &f64)| (-1e-9..0.001 + 1e-9).contains(&(found - expected));
        assert!(found.iter().zip(expected).all(is_same), "LWP {lwp}: {found:?}, not {expected:?}");
        compared += expected.len();
    }
    assert!(compared > 100, "{timehist}");
}
