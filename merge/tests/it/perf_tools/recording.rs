//! A perf recording, and the output of perf's tools for it. Tests of the merge and of the command compare with these.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
};

const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_wakeup_new,\
    sched:sched_migrate_task,sched:sched_process_fork,sched:sched_process_exit,\
    raw_syscalls:sys_enter,raw_syscalls:sys_exit,exceptions:page_fault_user,exceptions:page_fault_kernel";

/// Many short processes that sleep, and wait for each other.
pub(crate) const WORK: &str =
    "i=0; while [ $i -lt 40 ]; do i=$((i+1)); sleep 0.003 & ls / | cat >/dev/null; wait; done";

/// The output of a perf tool for a recording.
pub(crate) fn perf(arguments: &[&str], data: &Path) -> Option<String> {
    let output =
        Command::new("perf").args(arguments).arg("-i").arg(data).stdin(Stdio::null()).output().ok()?;
    // `perf trace` writes its summary to the standard error output.
    let text = [output.stdout, output.stderr].concat();
    output.status.success().then(|| String::from_utf8_lossy(&text).into_owned())
}

/// Records the work on all CPUs, with all threads; `None` if that is not possible here. If perf loses records, because
/// the machine is busy, the recording is repeated a few times.
pub(crate) fn recorded(path: &Path) -> Option<()> {
    recorded_with(path, EVENTS, WORK)
}

/// Records these events while a command of the shell runs.
pub(crate) fn recorded_with(path: &Path, events: &str, work: &str) -> Option<()> {
    const TRIES: usize = 8;
    for _ in 0..TRIES {
        record(path, events, work)?;
        let is_lost = |line: &str| line.trim_start().starts_with("LOST");
        if !perf(&["report", "--stats"], path)?.lines().any(is_lost) {
            break;
        }
    }
    Some(())
}

fn record(path: &Path, events: &str, work: &str) -> Option<()> {
    let status = Command::new("perf")
        .args(["record", "-q", "-a", "-N", "-m", "16M", "-k", "CLOCK_MONOTONIC", "-e", events, "-o"])
        .arg(path)
        .args(["--", "sh", "-c", work])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success()).then_some(())
}

/// The calls of each thread and system call.
pub(crate) type Calls = BTreeMap<(i64, String), CallSum>;

/// Calls that returned.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CallSum {
    pub(crate) count: i64,
    /// Calls that returned an error.
    pub(crate) errors: i64,
    /// Their total duration.
    pub(crate) total_ms: f64,
}

/// ```text
///  sh (28371), 498 events, 0.5%
///    syscall            calls  errors  total       min       avg       max       stddev
///    wait4                 36     18   117.751     0.001     3.271    11.431     24.38%
/// ```
pub(crate) fn calls_of_perf(text: &str) -> Calls {
    let (mut calls, mut tid) = (Calls::new(), None);
    for line in text.lines() {
        let thread =
            line.split_once(" events, ").and_then(|(head, _)| head.rsplit_once('(')?.1.split_once(')'));
        if let Some((number, _)) = thread {
            tid = number.parse::<i64>().ok();
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, count, errors, total, _, _, _, deviation] = words[..] else { continue };
        if let (Some(tid), Ok(count), Ok(errors), Ok(total_ms), true) =
            (tid, count.parse(), errors.parse(), total.parse(), deviation.ends_with('%'))
        {
            calls.insert((tid, name.to_string()), CallSum { count, errors, total_ms });
        }
    }
    calls
}

/// The run-queue latency of each thread after its wakeups, in milliseconds, if it was a microsecond or more.
pub(crate) type Delays = BTreeMap<i64, Vec<f64>>;

/// ```text
///            time    cpu  task name                       wait time  sch delay   run time
///    30621.172579 [0000]  sh[28371]                           0.190      0.013      0.526
/// ```
pub(crate) fn delays_of_perf(text: &str) -> Delays {
    let mut delays = Delays::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, cpu, .., task, _, delay, _] = words[..] else { continue };
        // `sh[28371]`, or `prog[28372/28371]` for a thread that is not the leader of its process.
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
