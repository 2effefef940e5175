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

/// At most so many nanoseconds lie between the two clock readings at one tracepoint.
const APART: i64 = 600;

/// At most one wait in so many may be missing.
const MOST_MISSING: i64 = 20;

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

/// The waits of hackbench in nanoseconds, by sigmund, and how many of the machine it does not count because a switch is missing.
fn found(sigmund: &Sigmund) -> (Vec<i64>, i64) {
    sigmund.run(["merge", "perf.data", "-o", "p.supertrace", "--force"]).found();
    let query = "SELECT latency_ns FROM latency(\"by\" => 'lwp', worst => 10000000) WHERE name = 'hackbench'";
    let said = sigmund.run(["sql", "p.supertrace", query, "--format", "csv"]);
    let missing =
        said.stderr.split_once(" waits are not counted").and_then(|(before, _)| before.rsplit(' ').next());
    let missing = missing.map_or(0, |missing| missing.parse().unwrap());
    (said.found().lines().skip(1).map(|wait| wait.parse().unwrap()).collect(), missing)
}

/// The counts of bpftrace, the waits that sigmund finds, and how many it says are missing; `None` if perf lost events.
fn both(sigmund: &Sigmund) -> Option<Option<(Histogram, Vec<i64>, i64)>> {
    let path = sigmund.path("perf.data");
    let expected = counted(&path)?;
    let said = perf(&["report", "--stats"], &path)?;
    if said.lines().any(|line| line.trim_start().starts_with("LOST")) {
        return Some(None);
    }
    let (found, missing) = found(sigmund);
    Some(Some((expected, found, missing)))
}

#[test]
fn run_queue_waits_are_those_of_bpftrace() {
    let sigmund = Sigmund::new();
    let mut whole = None;
    // If the machine is busy, perf may lose events. And in some virtual machines perf gets no event of some switches from the idle task,
    // in one recording more than in another: these are known, and limited.
    for _ in 0..8 {
        let Some(tried) = both(&sigmund) else {
            return skipped("bpftrace, perf record or hackbench is not possible here");
        };
        whole = tried.or(whole);
        let is_good =
            |(_, found, missing): &(Histogram, Vec<i64>, i64)| *missing * MOST_MISSING < found.len() as i64;
        if whole.as_ref().is_some_and(is_good) {
            break;
        }
    }
    let Some((expected, found, missing)) = whole else { return skipped("perf loses events here") };
    let (count, all) = (found.len() as i64, expected.values().sum::<i64>());
    assert!(all > 500, "{expected:?}");
    assert!(missing * MOST_MISSING < count, "{missing} of {count} are missing");
    // The first wait of hackbench itself is that of the program that became it.
    let tolerated = all / 100 + 3;
    assert!(
        (count - tolerated..=count + tolerated + missing).contains(&all),
        "{count} and {missing}, not {expected:?}"
    );
    // At each tracepoint they read the clock one after the other, so a wait near the limit of a bucket may be in the next one.
    for limit in expected.keys().copied() {
        let shorter = expected.range(..limit).map(|(_, count)| count).sum::<i64>();
        let below = |limit: i64| found.iter().filter(|wait| **wait < limit).count() as i64;
        assert!(
            (below(limit - APART) - tolerated..=below(limit + APART) + tolerated + missing)
                .contains(&shorter),
            "below {limit} ns: {} of {count}, not {shorter} of {expected:?}; {missing} are missing",
            below(limit)
        );
    }
}
