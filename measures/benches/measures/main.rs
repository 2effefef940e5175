//! How long each measure takes on histories of ten million rows, and what that takes in memory; a table.
//!
//! `cargo bench -p sigmund-measures --bench measures [-- CASE ...]`; `SIGMUND_MEASURES_ROWS` is the number of rows.
//! Loading a super-trace is not part of it. The memory is that of the process: at first with the history, then the most
//! while the measure ran. `CPU ms` is the CPU time of all threads of this process, to 10 ms: what a busy machine changes less
//! than the time that passed.
//!
//! What it was before these measures used numbers, cursors and all CPUs (2026-11-23, d5d0692) and since, with 10^7 rows on two
//! vCPUs of an AMD EPYC that others used too. The load was 2.5 before and 4 to 6 after, so compare the CPU time. Of rows with
//! `*` the load was not noted; their CPU time is twice the time that passed, so both CPUs were free:
//!
//! | history         | measure           | by     |   ms before | after | CPU ms before | after |
//! |-----------------|-------------------|--------|-------------|-------|---------------|-------|
//! | machine         | states            | thread |        1408 |  326* |          1410 |   630 |
//! | machine         | states            | lwp    |        2085 |  545* |          2080 |  1090 |
//! | machine         | states            | name   |        1396 |  296* |          1400 |   590 |
//! | machine         | breakdown         | thread |        1058 |  312* |          1060 |   620 |
//! | machine         | breakdown         | lwp    |         953 |  305* |           950 |   610 |
//! | machine         | noise             | thread |         577 |   905 |           580 |   640 |
//! | calls           | functions         | -      |        1474 |  1057 |          1480 |   690 |
//! | free locks      | locks             | -      |         417 |   862 |           450 |   590 |
//! | contended locks | locks             | -      |        1817 |  2193 |          1840 |  2100 |
//! | contended locks | critical-sections | -      |         951 |  1316 |           930 |  1180 |
//! | one lock        | locks             | -      |        3036 |  2802 |          2800 |  2650 |
//! | one lock        | locks             | thread |        6150 |  6128 |          5310 |  5030 |
//!
//! `locks` is linear: of readers 136 ms for 10^6 rows and 1824 ms for 10^7, of recursive requests 129 and 1628 ms.

mod calls;
mod handovers;
mod locks;
mod machine;

use std::time::Instant;

use sigmund_measures::{By, History, Request, named};

/// Histories, and what is asked of each: a measure, by whom, and its subject.
type Case = (&'static str, fn(i64) -> History, &'static [(&'static str, Option<By>, Option<&'static str>)]);

const REQUEST: Option<&str> = Some("request");

const CASES: &[Case] = &[
    (
        "machine",
        machine::history,
        &[
            ("summary", None, None),
            ("states", Some(By::Thread), None),
            ("states", Some(By::Lwp), None),
            ("states", Some(By::Name), None),
            ("breakdown", Some(By::Thread), None),
            ("breakdown", Some(By::Lwp), None),
            ("functions", None, None),
            ("latency", Some(By::Thread), None),
            ("latency", Some(By::Lwp), None),
            ("quanta", Some(By::Thread), None),
            ("interrupts", None, None),
            ("noise", Some(By::Thread), None),
            ("noise", Some(By::Lwp), None),
            ("noise", Some(By::Thread), REQUEST),
            ("switch-cost", Some(By::Thread), None),
            ("switch-cost", Some(By::Lwp), None),
            ("explain", None, REQUEST),
            ("critical-path", None, REQUEST),
        ],
    ),
    (
        "handovers",
        handovers::history,
        &[("explain", None, REQUEST), ("critical-path", None, REQUEST), ("reactivity", None, None)],
    ),
    ("calls", calls::history, &[("functions", None, None), ("functions", Some(By::Thread), None)]),
    ("free locks", locks::free, LOCKS),
    ("contended locks", locks::contended, LOCKS),
    ("one lock", locks::one, LOCKS),
    ("readers", locks::readers, LOCKS),
    ("recursive", locks::recursive, LOCKS),
];

const LOCKS: &[(&str, Option<By>, Option<&str>)] = &[
    ("locks", None, None),
    ("locks", Some(By::Thread), None),
    ("critical-sections", None, None),
    ("critical-sections", Some(By::Thread), None),
];

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let rows = std::env::var("SIGMUND_MEASURES_ROWS").ok().and_then(|rows| rows.parse().ok());
    let rows: i64 = rows.unwrap_or(10_000_000);
    println!(
        "{:16} {:9} {:17} {:8} {:8} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "history", "rows", "measure", "by", "subject", "MB first", "MB most", "ms", "CPU ms", "answers"
    );
    for (name, history, questions) in CASES {
        if !asked.is_empty() && !asked.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let history = history(rows);
        for (measure, by, subject) in *questions {
            let request = Request { by: *by, subject: subject.map(str::to_string), ..Request::default() };
            let Some(asked) = named(measure) else { continue };
            let first = memory("VmRSS");
            // Resets the peak.
            let _ = std::fs::write("/proc/self/clear_refs", "5");
            let (start, cpu_start) = (Instant::now(), cpu_ms());
            let answer = asked.answer(&history, &request);
            let (took, cpu) = (start.elapsed().as_millis(), cpu_ms() - cpu_start);
            let answers = answer.map_or_else(|error| error, |answer| answer.rows.len().to_string());
            println!(
                "{name:16} {rows:9} {measure:17} {:8} {:8} {first:8} {:8} {took:8} {cpu:8} {answers:>7}",
                by.map_or("-", By::name),
                subject.unwrap_or("-"),
                memory("VmHWM"),
            );
        }
    }
}

/// The CPU time of this process in milliseconds; 0 where the kernel does not have it.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // utime and stime, fields 14 and 15 of proc_pid_stat(5), in hundredths of a second (USER_HZ); the name before them may
    // contain spaces.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let times = after_name.split_whitespace().skip(11).take(2);
    times.filter_map(|time| time.parse::<u64>().ok()).sum::<u64>() * 10
}

/// A figure of this process in megabytes; 0 where the kernel does not have it.
fn memory(figure: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(figure));
    let kilobytes = line.and_then(|line| line.trim_start_matches(':').trim().strip_suffix("kB"));
    kilobytes.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0) / 1000
}
