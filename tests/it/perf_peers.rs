//! `--breakdown`, `--latency` and `--locks` beside what perf's own tools say of one recording of perf.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    perf_recording::{
        CallSum, Calls, Delays, WORK, calls_of_perf, delays_of_perf, perf, recorded, recorded_with,
    },
    sigmund::Sigmund,
    skipped::skipped,
};

/// LWPs that were created and ended in the recording, and whose states are all known; of whose events perf wrote none
/// twice, since it counts both; and that nobody woke when they were about to leave their CPU, but had not yet: perf forgets such a
/// wakeup as they leave it.
const WHOLE: &str = "
    SELECT l.lwp FROM lwps l WHERE l.dur_tick IS NOT NULL
    AND l.lwp IN (SELECT target_lwp FROM events WHERE name = 'sched_process_fork')
    AND l.lwp NOT IN (SELECT lwp FROM lwp_states WHERE state = 'unknown' AND lwp IS NOT NULL)
    AND l.lwp NOT IN (SELECT lwp FROM events WHERE lwp IS NOT NULL GROUP BY lwp, ts_tick, name HAVING count(*) > 1)
    AND l.lwp NOT IN (SELECT w.target_lwp FROM events w JOIN lwp_states s ON s.lwp = w.target_lwp AND s.state = 'running'
        AND s.ts_tick <= w.ts_tick AND w.ts_tick < s.ts_tick + s.dur_tick WHERE w.name = 'sched_waking')";

/// The rows of an answer, each by the names of its columns.
fn rows(sigmund: &Sigmund, question: &[&str]) -> Vec<BTreeMap<String, String>> {
    let answer = sigmund.run([&["-f", "p.supertrace"], question, &["--format", "tsv"]].concat());
    assert!(answer.status < 2, "{question:?}: {answer:?}");
    let mut lines = answer.stdout.lines().map(|line| line.split('\t').map(String::from));
    let columns: Vec<String> = lines.next().unwrap().collect();
    lines.map(|cells| columns.iter().cloned().zip(cells).collect()).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> i64 {
    row[column].parse().unwrap_or_else(|error| panic!("{column}: {error}: {row:?}"))
}

/// ```text
/// 28371 exceptions:page_fault_user:
/// ```
fn faults_of_perf(text: &str) -> BTreeMap<(i64, String), i64> {
    let mut faults = BTreeMap::new();
    for line in text.lines() {
        let fault = line.trim().trim_end_matches(':').split_once(" exceptions:page_fault_");
        if let Some((tid, whose)) = fault {
            *faults.entry((tid.trim().parse().unwrap(), whose.to_string())).or_default() += 1;
        }
    }
    faults
}

#[test]
fn system_calls_faults_and_run_queue_latencies_are_those_of_perf() {
    let sigmund = Sigmund::new();
    let path = sigmund.path("perf.data");
    if recorded(&path).is_none() {
        return skipped("perf record of all CPUs is not possible here");
    }
    let tools = [&["trace", "-s"][..], &["sched", "timehist"], &["script", "-F", "tid,event"]];
    let [Some(trace), Some(timehist), Some(script)] = tools.map(|tool| perf(tool, &path)) else {
        return skipped("perf trace, perf sched or perf script cannot read its recording here");
    };
    sigmund.run(["merge", "perf.data", "-o", "p.supertrace"]).found();
    let whole: BTreeSet<i64> =
        sigmund.sql("p.supertrace", WHOLE).iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(whole.len() > 50, "{whole:?}");

    let (mut calls, mut faults) = (Calls::new(), BTreeMap::new());
    for row in rows(&sigmund, &["--breakdown", "--by", "lwp"]) {
        let of = (number(&row, "lwp"), row["which"].clone());
        match row["what"].as_str() {
            "syscall" => {
                let total_ms = number(&row, "total_tick") as f64 / 1e6;
                let sum = CallSum { count: number(&row, "count"), errors: number(&row, "errors"), total_ms };
                calls.insert(of, sum);
            }
            "fault" => drop(faults.insert(of, number(&row, "count"))),
            _ => {}
        }
    }
    let mut compared = 0;
    for (of, expected) in calls_of_perf(&trace).iter().filter(|((lwp, _), _)| whole.contains(lwp)) {
        let found = calls.get(of).copied().unwrap_or_default();
        // It counts the return from a call whose entry is not there, for no time: a thread begins with one. Its
        // milliseconds have three digits.
        let is_same = (0..=1).contains(&(expected.count - found.count))
            && found.errors == expected.errors
            && (found.total_ms - expected.total_ms).abs() <= 0.0011;
        assert!(is_same, "{of:?}: {found:?}, not {expected:?}");
        compared += 1;
    }
    assert!(compared > 100, "{trace}");

    let expected = faults_of_perf(&script);
    for lwp in &whole {
        for whose in ["user", "kernel"] {
            let of = (*lwp, whose.to_string());
            assert_eq!(faults.get(&of), expected.get(&of), "faults of {of:?}");
        }
    }
    assert!(whole.iter().any(|lwp| faults.contains_key(&(*lwp, "user".to_string()))), "{faults:?}");

    let mut delays = Delays::new();
    for row in rows(&sigmund, &["--latency", "--by", "lwp", "--worst", "1000000"]) {
        // It leaves out what is less than a microsecond.
        if row["kind"] == "wakeup" && number(&row, "latency_tick") >= 1000 {
            let of_lwp = delays.entry(number(&row, "lwp")).or_default();
            of_lwp.push(number(&row, "latency_tick") as f64 / 1e6);
        }
    }
    let expected = delays_of_perf(&timehist);
    let (mut compared, none) = (0, Vec::new());
    for lwp in whole {
        let mut expected = expected.get(&lwp).unwrap_or(&none).clone();
        expected.sort_by(f64::total_cmp);
        let mut found = delays.get(&lwp).unwrap_or(&none).clone();
        found.sort_by(f64::total_cmp);
        // It counts a wait when its thread leaves the CPU that it got; not that of one that ends there.
        assert!(
            (0..=1).contains(&(found.len() as i64 - expected.len() as i64)),
            "LWP {lwp}: {found:?}, not {expected:?}"
        );
        for delay in &expected {
            let is_same = |found: &f64| (-1e-9..0.001 + 1e-9).contains(&(found - delay));
            assert!(found.iter().any(is_same), "LWP {lwp}: {found:?}, not {expected:?}");
        }
        compared += expected.len();
    }
    assert!(compared > 100, "{timehist}");
}

/// Waits of one thread for a CPU.
#[derive(Clone, Copy, Debug)]
struct RunQueue {
    waits: usize,
    mean_ms: f64,
    longest_ms: f64,
}

/// ```text
///   sh:28371              |      0.000 ms |       12 | avg:   4.230 ms | max:  26.111 ms | max start:  …
/// ```
fn run_queues_of_perf(text: &str) -> BTreeMap<i64, RunQueue> {
    let of_line = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [task, _, waits, mean, longest, ..] = cells[..] else { return None };
        let milliseconds = |cell: &str, name| -> Option<f64> {
            cell.strip_prefix(name)?.strip_suffix("ms")?.trim().parse().ok()
        };
        let run_queue = RunQueue {
            waits: waits.parse().ok()?,
            mean_ms: milliseconds(mean, "avg:")?,
            longest_ms: milliseconds(longest, "max:")?,
        };
        Some((task.rsplit_once(':')?.1.parse().ok()?, run_queue))
    };
    text.lines().filter_map(of_line).collect()
}

#[test]
fn run_queue_latencies_are_those_of_perf_sched_latency() {
    let sigmund = Sigmund::new();
    let path = sigmund.path("perf.data");
    // It begins with sched_wakeup, even where sched_waking is there.
    let events = "sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_migrate_task,\
        sched:sched_process_fork,sched:sched_process_exit";
    if recorded_with(&path, events, WORK).is_none() {
        return skipped("perf record of all CPUs is not possible here");
    }
    let Some(text) = perf(&["sched", "latency", "-p"], &path) else {
        return skipped("perf sched latency cannot read its recording here");
    };
    sigmund.run(["merge", "perf.data", "-o", "p.supertrace"]).found();
    let whole: BTreeSet<i64> = sigmund
        .sql("p.supertrace", &WHOLE.replace("sched_waking", "sched_wakeup"))
        .iter()
        .map(|row| row[0].parse().unwrap())
        .collect();
    // Of preemptions, it counts those that the kernel records as R, and not those as R+, from inside of the kernel.
    let runnable = "SELECT lwp, ts_tick FROM sched_switch WHERE prev_state = 0";
    let runnable: BTreeSet<Vec<String>> = sigmund.sql("p.supertrace", runnable).into_iter().collect();
    let mut found: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for row in rows(&sigmund, &["--latency", "--by", "lwp", "--worst", "1000000"]) {
        if row["kind"] == "wakeup" || runnable.contains(&vec![row["lwp"].clone(), row["ts_tick"].clone()]) {
            found.entry(number(&row, "lwp")).or_default().push(number(&row, "latency_tick"));
        }
    }
    let (expected, mut compared, none) = (run_queues_of_perf(&text), 0, Vec::new());
    for lwp in whole {
        let (Some(expected), found) = (expected.get(&lwp), found.get(&lwp).unwrap_or(&none)) else {
            continue;
        };
        let sum: i64 = found.iter().sum();
        let longest = found.iter().max().copied().unwrap_or_default();
        let is_same = |ticks: f64, ms: f64| (ticks / 1e6 - ms).abs() <= 0.000_51;
        assert!(
            found.len() == expected.waits
                && is_same(sum as f64 / found.len() as f64, expected.mean_ms)
                && is_same(longest as f64, expected.longest_ms),
            "LWP {lwp}: {found:?}, not {expected:?}"
        );
        compared += 1;
    }
    assert!(compared > 50, "{text}");
}

/// Waits of one thread for locks of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Contention {
    waits: i64,
    total_ns: f64,
    longest_ns: f64,
}

/// ```text
///  contended   total wait     max wait     avg wait          pid   comm
///
///         34    142.83 us     51.42 us      4.20 us         5978   sender
/// ```
fn contention_of_perf(text: &str) -> BTreeMap<i64, Contention> {
    let nanoseconds = |number: &str, unit: &str| {
        let scale = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]
            .into_iter()
            .find(|(name, _)| *name == unit)?
            .1;
        Some(number.parse::<f64>().ok()? * scale)
    };
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [waits, total, total_unit, longest, longest_unit, _, _, tid, ..] = words[..] else { return None };
        let contention = Contention {
            waits: waits.parse().ok()?,
            total_ns: nanoseconds(total, total_unit)?,
            longest_ns: nanoseconds(longest, longest_unit)?,
        };
        Some((tid.parse().ok()?, contention))
    };
    text.lines().filter_map(of_line).collect()
}

#[test]
fn waits_for_locks_of_the_kernel_are_those_of_perf() {
    let sigmund = Sigmund::new();
    let path = sigmund.path("perf.data");
    let events = "sched:sched_switch,lock:contention_begin,lock:contention_end";
    if recorded_with(&path, events, "exec hackbench -l 300 -g 1").is_none() {
        return skipped("perf record of lock:contention_begin, or hackbench, is not possible here");
    }
    let Some(text) = perf(&["lock", "contention", "-t"], &path) else {
        return skipped("perf lock contention cannot read its recording here");
    };
    sigmund.run(["merge", "perf.data", "-o", "p.supertrace"]).found();
    // A wait that is open where the recording ends has no end; perf leaves it out. What an interrupt waits for, perf counts for
    // whom it interrupted. An idle CPU is no LWP.
    let others = sigmund.sql(
        "p.supertrace",
        "SELECT coalesce(lwp, 0) FROM locks WHERE end_reason <> 'woken' OR lwp IS NULL
         UNION SELECT lwp FROM events WHERE name = 'contention_begin' AND context <> 'task'",
    );
    let others: BTreeSet<i64> = others.iter().map(|row| row[0].parse().unwrap()).collect();

    let mut found: BTreeMap<i64, Contention> = BTreeMap::new();
    for row in rows(&sigmund, &["--locks", "--by", "lwp"]) {
        assert!(row["kind"].starts_with("kernel-"), "{row:?}");
        if row["lwp"].is_empty() {
            continue;
        }
        let of_lwp = found.entry(number(&row, "lwp")).or_default();
        of_lwp.waits += number(&row, "contended");
        of_lwp.total_ns += number(&row, "wait_tick") as f64;
        of_lwp.longest_ns = of_lwp.longest_ns.max(number(&row, "longest_wait_tick") as f64);
    }
    let expected = contention_of_perf(&text);
    let mut compared = 0;
    for (lwp, expected) in expected.iter().filter(|(lwp, _)| !others.contains(lwp)) {
        let Some(found) = found.get(lwp) else { panic!("LWP {lwp}: {expected:?}, and none is found") };
        // It prints two decimals.
        let is_same = |found: f64, expected: f64| (found - expected).abs() <= expected * 0.006 + 5.0;
        assert!(
            found.waits == expected.waits
                && is_same(found.total_ns, expected.total_ns)
                && is_same(found.longest_ns, expected.longest_ns),
            "LWP {lwp}: {found:?}, not {expected:?}"
        );
        compared += found.waits;
    }
    assert!(compared > 10, "{text}");
    assert!(
        found.keys().all(|lwp| expected.contains_key(lwp) || others.contains(lwp)),
        "{found:?}, not {expected:?}"
    );
}
