//! `--latency` beside a histogram of run-queue waits that bpftrace makes in the kernel, of the same events at the same time.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde_json::Value;

use crate::{perf_recording::perf, sigmund::Sigmund, skipped::skipped};

/// Waits in a run queue, from a wakeup or from losing the CPU while runnable (0 and 256) until getting a CPU, of the threads of
/// hackbench. bpftrace's own `runqlat.bt` does not count those that were preempted (256).
const WAITS: &str = r#"
    tracepoint:sched:sched_waking, tracepoint:sched:sched_wakeup_new { @queued[args->pid] = nsecs; }
    tracepoint:sched:sched_switch
    {
        if (args->prev_state == 0 || args->prev_state == 256) { @queued[args->prev_pid] = nsecs; }
        if (strncmp(args->next_comm, "hackbench", 9) == 0) {
            $since = @queued[args->next_pid];
            if ($since) { @waits = hist(nsecs - $since); }
        }
        delete(@queued[args->next_pid]);
    }
    END { clear(@queued); }"#;

const RECORD: &str = "record -q -a -N -m 16M -k CLOCK_MONOTONIC -e sched:sched_switch,sched:sched_waking,\
    sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_migrate_task,sched:sched_process_fork,sched:sched_process_exit";

/// The number of waits by the power of two at or below their nanoseconds.
type Histogram = BTreeMap<i64, i64>;

/// Runs hackbench, recorded by perf and counted by bpftrace; `None` if that is not possible here.
fn counted(path: &Path) -> Option<Histogram> {
    let work = format!("/usr/bin/env perf {RECORD} -o {} -- hackbench -l 200 -g 1", path.display());
    let output = Command::new("bpftrace").args(["-f", "json", "-e", WAITS, "-c", &work]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let of_line = |line: &str| serde_json::from_str::<Value>(line).ok()?.pointer("/data/@waits").cloned();
    let buckets = text.lines().find_map(of_line)?;
    let bucket = |bucket: &Value| Some((bucket["min"].as_i64()?, bucket["count"].as_i64()?));
    buckets.as_array()?.iter().map(bucket).collect()
}

#[test]
fn run_queue_waits_are_those_of_bpftrace() {
    let sigmund = Sigmund::new();
    let path = sigmund.path("perf.data");
    let is_whole = || {
        let said = perf(&["report", "--stats"], &path)?;
        Some(!said.lines().any(|line| line.trim_start().starts_with("LOST")))
    };
    // If the machine is busy, perf may lose events.
    let mut tries = (0..8).map(|_| (counted(&path), is_whole()));
    let Some((Some(expected), Some(true))) = tries.find(|(_, is_whole)| *is_whole != Some(false)) else {
        return skipped("bpftrace, perf record or hackbench is not possible here, or perf loses events");
    };
    sigmund.run(["merge", "perf.data", "-o", "p.supertrace"]).found();
    let query = "SELECT log2_bucket(latency_ns), count(*) FROM latency(\"by\" => 'lwp', worst => 10000000)
        WHERE name = 'hackbench' GROUP BY 1";
    let numbers = |row: &Vec<String>| (row[0].parse().unwrap(), row[1].parse().unwrap());
    let found: Histogram = sigmund.sql("p.supertrace", query).iter().map(numbers).collect();

    let all = |of: &Histogram| of.values().sum::<i64>();
    assert!(all(&expected) > 500, "{expected:?}");
    // The first wait of hackbench itself is that of the program that became it.
    let tolerated = all(&expected) / 100 + 3;
    assert!((all(&found) - all(&expected)).abs() <= tolerated, "{found:?}, not {expected:?}");
    // They read the clock one after the other, so a wait at the limit of a bucket may be in the next one.
    for limit in expected.keys() {
        let shorter = |of: &Histogram| of.range(..limit).map(|(_, count)| count).sum::<i64>();
        let difference = (shorter(&found) - shorter(&expected)).abs();
        let near =
            [&expected, &found].map(|of| of.get(limit).unwrap_or(&0) + of.get(&(limit / 2)).unwrap_or(&0));
        assert!(
            difference <= tolerated + near.into_iter().max().unwrap_or(0) / 10,
            "below {limit} ns: {found:?}, not {expected:?}"
        );
    }
}
