//! `--breakdown` and `--latency` beside what perf's own tools say of one recording of perf.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    perf_recording::{CallSum, Calls, Delays, calls_of_perf, delays_of_perf, perf, recorded},
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
