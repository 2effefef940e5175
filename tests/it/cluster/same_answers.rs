//! The answers of a cluster are those of one process.

use sigmund_measures::{ALL, Measure, Subject};

use super::{long_trace, processes::Cluster};
use crate::{kernel, record::recorded, sigmund::Sigmund};

/// The rows of an answer in some order: that of a query without ORDER BY is not said.
fn rows(csv: &str) -> Vec<String> {
    let mut lines: Vec<String> = csv.lines().map(String::from).collect();
    if let Some(rows) = lines.get_mut(1..) {
        rows.sort();
    }
    lines
}

#[track_caller]
fn same(cluster: &Cluster, sigmund: &Sigmund, words: &[&str]) -> usize {
    let words = [words, &["--format", "csv"]].concat();
    let (one, cluster) = (sigmund.run(&words), cluster.run(sigmund, &words));
    assert!(one.status < 2, "{one:?}");
    assert_eq!(cluster.status, one.status, "{cluster:?}");
    assert_eq!(rows(&cluster.stdout), rows(&one.stdout), "{words:?}");
    let notes = |stderr: &str| stderr.lines().map(String::from).collect::<Vec<_>>();
    assert_eq!(notes(&cluster.stderr), notes(&one.stderr), "{words:?}");
    one.stdout.lines().count().saturating_sub(1)
}

/// Words that ask for a measure; of a trace that has what they name.
fn asking(measure: &Measure, subject: &str) -> Option<Vec<String>> {
    let flag = format!("--{}", measure.name);
    match measure.subject {
        Subject::Pair => None,
        Subject::None | Subject::Optional(_) | Subject::OptionalOrPair(_) => Some(vec![flag]),
        Subject::Required(_) | Subject::RequiredOrPair(_) => Some(vec![flag, subject.to_string()]),
    }
}

#[test]
fn queries() {
    let (cluster, sigmund) = (Cluster::start(&[]), long_trace());
    for query in [
        "SELECT name, count(*) AS n, max(ts_ns) FROM events GROUP BY name",
        "SELECT lwp, sum(dur_ns), avg(dur_tick) FROM lwp_states GROUP BY lwp ORDER BY lwp",
        "SELECT ts_tick, name, cpu FROM events WHERE ts_tick BETWEEN 1000000 AND 1003000 ORDER BY ts_tick, name",
        "SELECT ts_tick FROM events ORDER BY ts_tick DESC LIMIT 7",
        "SELECT a.lwp, count(*) FROM syscalls a JOIN wakeups b ON a.lwp = b.lwp AND a.ts_tick + 11 = b.ts_tick GROUP BY a.lwp",
        "SELECT count(*), sum(dur_tick) FROM overlap(syscalls, lwp_states, lwp)",
        "SELECT count(*), sum(dur_tick) FROM merged(syscalls)",
        "SELECT lwp, count(*), sum(dur_tick) FROM gaps(syscalls, lwp) GROUP BY lwp",
        "SELECT sum(self_tick) FROM self_time(lwp_states, lwp)",
        "SELECT state, duration(percentile(dur_ns, 99)) AS p99, count(*) FROM off_cpu GROUP BY state",
        "SELECT syscall, count(*) FROM off_cpu GROUP BY syscall",
        "SELECT to_ns(sum(dur_tick)), to_ticks(7), wall_time(min(ts_tick)), log2_bucket(max(dur_tick)) FROM lwp_states",
        "SELECT u64_bits(args[1]) AS bits, count(*) FROM events GROUP BY 1",
        "SELECT prev_state, count(*) FROM sched_switch GROUP BY prev_state",
        "SELECT thread, sum(latency_tick) FROM ready_latency GROUP BY thread",
        "SELECT count(*) FROM events WHERE lwp NOT IN (SELECT lwp FROM wakeups)",
        "SELECT count(*) FROM syscalls WHERE dur_tick > (SELECT avg(dur_tick) FROM lwp_states)",
        "SELECT ts_tick, row_number() OVER (PARTITION BY lwp ORDER BY ts_tick) AS n FROM wakeups ORDER BY ts_tick LIMIT 5",
        "SELECT 'waking' AS what, count(*) FROM wakeups UNION ALL SELECT 'calls', count(*) FROM syscalls WHERE dur_tick > 0",
        "SELECT e.name, s.state FROM states(thread => 5) s JOIN event_types e ON s.count > 0 ORDER BY 1, 2",
        "SELECT * FROM states(thread => 5)",
        "SELECT 6 * 7 AS answer",
        "SELECT * FROM info",
    ] {
        assert!(same(&cluster, &sigmund, &["sql", "t.supertrace", query]) > 0, "{query}");
    }
    // Each table and view.
    let catalog = sigmund.run(["sql", "t.supertrace", "--schema", "--format", "csv"]).found();
    let names = catalog.lines().skip(1).map(|line| line.split(',').next().unwrap());
    for name in names.filter(|name| !name.starts_with("raw_")) {
        let query = format!("SELECT * FROM \"{name}\" WHERE random() < 2 ORDER BY ts_tick LIMIT 50");
        let has_time = sigmund.run(["sql", "t.supertrace", &query]).status < 2;
        if has_time {
            same(
                &cluster,
                &sigmund,
                &["sql", "t.supertrace", &format!("SELECT count(*) FROM \"{name}\" WHERE ts_tick > 5000")],
            );
        } else {
            same(&cluster, &sigmund, &["sql", "t.supertrace", &format!("SELECT * FROM \"{name}\"")]);
        }
    }
}

/// Each side of the union has several partitions, and an executor takes one at a time.
#[test]
fn unions_on_executors_of_one_slot() {
    let (cluster, sigmund) = (Cluster::start_with("1", &[]), long_trace());
    for query in [
        "SELECT 'waking' AS what, count(*) AS n FROM wakeups WHERE cpu < 9 UNION ALL SELECT 'calls', count(*) FROM syscalls WHERE dur_tick > 0",
        "SELECT lwp, count(*) AS n FROM lwp_states GROUP BY lwp UNION ALL SELECT lwp, count(*) FROM syscalls GROUP BY lwp",
        "SELECT lwp, count(*) AS n FROM (SELECT lwp FROM events WHERE cpu < 9 UNION ALL SELECT lwp FROM wakeups) GROUP BY lwp",
    ] {
        assert!(same(&cluster, &sigmund, &["sql", "t.supertrace", query]) > 0, "{query}");
    }
    same(&cluster, &sigmund, &["--states", "--thread", "5", "-f", "t.supertrace"]);
}

#[test]
fn the_queries_of_the_docs_and_every_measure() {
    let Some(_alone) = kernel::as_root() else { return };
    let (cluster, (sigmund, _)) = (Cluster::start(&[]), recorded());
    std::fs::rename(sigmund.path("RUN.supertrace"), sigmund.path("server.supertrace")).unwrap();
    let docs = include_str!("../../../docs/sql.md");
    let queries = docs
        .lines()
        .filter_map(|line| line.strip_prefix("$ sigmund sql server.supertrace \"")?.strip_suffix('"'));
    let mut asked = 0;
    for query in queries {
        // Of rows that are equal in an order, either may be the last of five.
        let query = query.replace("\\\"", "\"").replace(" LIMIT 5", "");
        // Names that ours does not have are the same error on both sides.
        let one = sigmund.run(["sql", "server.supertrace", &query]);
        match one.status {
            2 => _ = cluster.run(&sigmund, &["sql", "server.supertrace", &query]).complained(&[]),
            _ => {
                same(&cluster, &sigmund, &["sql", "server.supertrace", &query]);
                asked += 1;
            }
        }
    }
    assert!(asked >= 3, "{asked}");
    for measure in ALL {
        let Some(words) = asking(measure, "sumtime") else { continue };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let one = sigmund.run([&words[..], &["-f", "server.supertrace"]].concat());
        match one.status {
            2 => {
                let there = cluster.run(&sigmund, &[&words[..], &["-f", "server.supertrace"]].concat());
                assert_eq!((there.status, &there.stderr), (2, &one.stderr), "{words:?}");
            }
            _ => _ = same(&cluster, &sigmund, &[&words[..], &["-f", "server.supertrace"]].concat()),
        }
    }
    same(&cluster, &sigmund, &["--states", "--by", "name", "--from", "1ms", "-f", "server.supertrace"]);
    same(
        &cluster,
        &sigmund,
        &["--reactivity", "sched_waking", "sched_switch", "--why", "--worst", "3", "-f", "server.supertrace"],
    );
}
