//! The answers of a cluster are those of one process.

use sigmund_measures::{ALL, Measure, Subject};

use super::{long_trace, processes::Cluster};
use crate::{
    kernel,
    record::recorded,
    sigmund::{Reported, Sigmund},
    views::listing,
};

/// The rows of an answer in some order: that of a query without ORDER BY is not said.
fn rows(csv: &str) -> Vec<String> {
    let mut lines: Vec<String> = csv.lines().map(String::from).collect();
    if let Some(rows) = lines.get_mut(1..) {
        rows.sort();
    }
    lines
}

/// The cluster answers as one process did.
#[track_caller]
fn same_as(one: &Reported, cluster: &Cluster, sigmund: &Sigmund, words: &[&str]) {
    let there = cluster.run(sigmund, words);
    assert_eq!((there.status, &there.stderr), (one.status, &one.stderr), "{words:?}");
    assert_eq!(rows(&there.stdout), rows(&one.stdout), "{words:?}");
}

#[track_caller]
fn same(cluster: &Cluster, sigmund: &Sigmund, words: &[&str]) {
    let words = [words, &["--format", "csv"]].concat();
    let one = sigmund.run(&words);
    assert!(one.status < 2, "{one:?}");
    same_as(&one, cluster, sigmund, &words);
}

/// The cluster answers some queries as one process does; `of` is what they are about. Each has rows.
#[track_caller]
fn same_rows(cluster: &Cluster, sigmund: &Sigmund, of: &[&str], queries: &[impl AsRef<str>]) {
    let marked = queries.iter().map(|query| format!("SELECT 'next' AS mark;\n{};\n", query.as_ref()));
    sigmund.write("queries.sql", marked.collect::<String>().as_bytes());
    let words = [&["sql"], of, &["--file", "queries.sql", "--format", "csv"]].concat();
    let (one, there) = (sigmund.run(&words).found(), cluster.run(sigmund, &words).found());
    let answers = |text: &str| text.split("mark\nnext\n").skip(1).map(rows).collect::<Vec<_>>();
    let (one, there) = (answers(&one), answers(&there));
    assert_eq!((one.len(), there.len()), (queries.len(), queries.len()));
    for (query, (one, there)) in queries.iter().zip(one.iter().zip(&there)) {
        assert_eq!(there, one, "{}", query.as_ref());
    }
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
    let queries = [
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
        "SELECT e.name, s.state FROM states(thread => 5) s JOIN event_types e ON s.count > 0 ORDER BY 1, 2",
        "SELECT * FROM states(thread => 5)",
        "SELECT 6 * 7 AS answer",
        "SELECT * FROM info",
    ];
    same_rows(&cluster, &sigmund, &["t.supertrace"], &queries);
}

#[test]
fn each_table_and_view() {
    let (cluster, sigmund) = (Cluster::start(&[]), Sigmund::with_listing("t", &listing()));
    let catalog = sigmund.run(["sql", "t.supertrace", "--schema", "--format", "csv"]).found();
    // Name and kind: functions have arguments.
    let rows = catalog.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let names = rows.filter(|row| !row[1].starts_with("function")).map(|row| row[0]);
    let queries: Vec<String> = names.map(|name| format!("SELECT * FROM \"{name}\"")).collect();
    assert!(queries.len() > 30, "{queries:?}");
    same_rows(&cluster, &sigmund, &["t.supertrace"], &queries);
}

const UNIONS: [&str; 8] = [
    "SELECT 'waking' AS what, count(*) AS n FROM wakeups WHERE cpu < 9 UNION ALL SELECT 'calls', count(*) FROM syscalls WHERE dur_tick > 0",
    "SELECT lwp, count(*) AS n FROM lwp_states GROUP BY lwp UNION ALL SELECT lwp, count(*) FROM syscalls GROUP BY lwp",
    "SELECT lwp, count(*) AS n FROM (SELECT lwp FROM events WHERE cpu < 9 UNION ALL SELECT lwp FROM wakeups) GROUP BY lwp",
    "SELECT lwp FROM wakeups UNION SELECT lwp FROM syscalls",
    "(SELECT ts_tick FROM syscalls ORDER BY dur_tick DESC, ts_tick LIMIT 3) UNION ALL (SELECT ts_tick FROM wakeups ORDER BY ts_tick LIMIT 3)",
    // Rows of no table, beside several partitions.
    "SELECT max(ts_tick) AS a FROM wakeups WHERE cpu < 9 UNION ALL SELECT 3",
    "SELECT sum(a) FROM (SELECT ts_tick AS a FROM events WHERE cpu < 9 UNION ALL SELECT 3 UNION ALL SELECT lwp FROM wakeups)",
    "SELECT a, count(*) FROM (SELECT lwp AS a FROM wakeups WHERE false UNION ALL SELECT 70 UNION ALL SELECT lwp FROM syscalls) GROUP BY a",
];

/// Each side of a union may have several partitions, and an executor takes one or two at a time: some tasks have none of a side.
#[test]
fn unions_on_executors_with_one_slot_and_with_two() {
    let sigmund = long_trace();
    for slots in ["1", "2"] {
        let cluster = Cluster::start_with(slots, "240s", &[]);
        same_rows(&cluster, &sigmund, &["t.supertrace"], &UNIONS);
        same_rows(
            &cluster,
            &sigmund,
            &["--fleet", "."],
            &["SELECT host, lwp, count(*) AS n FROM events WHERE cpu < 9 GROUP BY host, lwp"],
        );
        same(&cluster, &sigmund, &["--states", "--thread", "5", "-f", "t.supertrace"]);
    }
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
        // Names that this trace does not have are the same error on both sides.
        let words = ["sql", "server.supertrace", &query, "--format", "csv"];
        let one = sigmund.run(words);
        match one.status {
            2 => _ = cluster.run(&sigmund, &words).complained(&[]),
            _ => same_as(&one, &cluster, &sigmund, &words),
        }
        asked += usize::from(one.status < 2);
    }
    assert!(asked >= 3, "{asked}");
    for measure in ALL {
        let Some(words) = asking(measure, "sumtime") else { continue };
        // Of user threads alone, the command reads a table that has it.
        let by: &[&str] = if measure.name == "active-time" { &["--by", "thread"] } else { &[] };
        let words = words.iter().map(String::as_str).chain(by.iter().copied());
        let words = words.chain(["-f", "server.supertrace", "--format", "csv"]);
        let words: Vec<&str> = words.collect();
        same_as(&sigmund.run(&words), &cluster, &sigmund, &words);
    }
    same(&cluster, &sigmund, &["--states", "--by", "name", "--from", "1ms", "-f", "server.supertrace"]);
    same(
        &cluster,
        &sigmund,
        &["--reactivity", "sched_waking", "sched_switch", "--worst", "3", "-f", "server.supertrace"],
    );
}
