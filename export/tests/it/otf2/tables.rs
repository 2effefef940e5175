//! For each kind of interval, the count and sum that Python's OTF2 reader computes from an archive equal those that SQL
//! computes from the table.

use std::{collections::BTreeMap, fmt::Write, path::Path, sync::Arc};

use arrow::{array::AsArray, datatypes::Int64Type};
use sigmund_export::{
    replay::{Replayed, read_actors, replay},
    sinks::otf2::Otf2,
};
use sigmund_merge::{MergeOptions, merge};
use sigmund_query::Filter;
use sigmund_sql::SuperTrace;

use super::read::{Read, can_read, read};
use crate::waits;

/// Number and sum of ticks, by name.
type Sums = BTreeMap<String, [u64; 2]>;

struct Exported {
    trace: SuperTrace,
    read: Read,
    replayed: Replayed,
}

/// Merges an input, exports it, and reads the archive with every event.
async fn export(folder: &Path, input: &Path) -> Exported {
    let out = folder.join("t.supertrace");
    merge(&[input.to_path_buf()], &out, &MergeOptions { force: true, ..MergeOptions::default() }, |_| {})
        .unwrap();
    let trace = SuperTrace::open(out).await.unwrap();
    let filter = Filter::default();
    let actors = Arc::new(read_actors(&trace, &filter).await.unwrap());
    let archive = folder.join("archive");
    let mut sink = Otf2::create(&archive, Arc::clone(&actors)).unwrap();
    let replayed = replay(&trace, &filter, &actors, &mut sink, |_, _| Ok(())).await.unwrap();
    drop(sink);
    Exported { trace, read: read(&archive, true), replayed }
}

async fn export_listing(folder: &Path, listing: &str) -> Exported {
    let input = folder.join("listing.tsv");
    std::fs::write(&input, listing).unwrap();
    export(folder, &input).await
}

async fn export_kernel_trace(folder: &Path) -> Exported {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/small-tsc-v7-zstd.dat");
    export(folder, &input).await
}

impl Exported {
    /// Rows of a name, a number and a sum.
    async fn sql(&self, query: &str) -> Sums {
        let mut sums = Sums::new();
        for batch in self.trace.sql(query).await.unwrap().collect().await.unwrap() {
            let [counts, ticks] = [1, 2].map(|column| batch.column(column).as_primitive::<Int64Type>());
            for row in 0..batch.num_rows() {
                let name = batch.column(0).as_string::<i32>().value(row).to_string();
                sums.insert(name, [counts.value(row) as u64, ticks.value(row) as u64]);
            }
        }
        sums
    }

    /// Regions of all locations whose name ends with this suffix.
    fn regions(&self, suffix: &str) -> Sums {
        let mut sums = Sums::new();
        for ((location, name), [enters, leaves, ticks]) in &self.read.regions {
            assert_eq!(enters, leaves);
            if self.read.locations[location][0].ends_with(suffix) {
                let sum = sums.entry(name.clone()).or_default();
                *sum = [sum[0] + enters, sum[1] + ticks];
            }
        }
        sums
    }
}

#[tokio::test]
async fn system_calls_are_those_of_the_table() {
    if !can_read() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let exported = export_kernel_trace(folder.path()).await;
    let by_sql = exported
        .sql(
            "SELECT coalesce(CAST(name AS VARCHAR), CAST(number AS VARCHAR), '?') AS n, count(*), \
             CAST(sum(dur_tick) AS BIGINT) FROM raw_syscalls GROUP BY n",
        )
        .await;
    assert!(by_sql.len() > 10 && by_sql.contains_key("write"), "{by_sql:?}");
    assert_eq!(exported.regions(": calls"), by_sql);
    assert_eq!(exported.replayed.cut_slices, 0);
}

#[tokio::test]
async fn interrupts_are_those_of_the_table() {
    if !can_read() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let exported = export_kernel_trace(folder.path()).await;
    let by_sql = exported
        .sql(
            "SELECT CASE WHEN kind = 'irq' THEN concat('irq ', number, coalesce(concat(' ', CAST(name AS VARCHAR)), '')) \
             ELSE coalesce(CAST(name AS VARCHAR), CAST(number AS VARCHAR), CAST(kind AS VARCHAR)) END AS n, count(*), \
             CAST(sum(dur_tick) AS BIGINT) FROM raw_interrupts GROUP BY n",
        )
        .await;
    assert!(by_sql.contains_key("RCU"), "{by_sql:?}");
    assert_eq!(exported.regions(": interrupts"), by_sql);
}

#[tokio::test]
async fn wakeups_are_those_of_the_table() {
    if !can_read() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kernel = export_kernel_trace(folder.path()).await;
    let threads = tempfile::tempdir().unwrap();
    let threads = export_listing(threads.path(), &waits::listing()).await;
    for exported in [kernel, threads] {
        let by_sql = exported.sql("SELECT 'wakeup', count(*), CAST(0 AS BIGINT) FROM wakeups").await;
        assert!(by_sql["wakeup"][0] > 20, "{by_sql:?}");
        let by_reader = exported.regions(": events").remove("wakeup");
        assert_eq!(by_reader, by_sql.get("wakeup").copied());
        assert_eq!(exported.replayed.wakeups, by_sql["wakeup"][0]);
    }
}

/// Two threads that take turns on one LWP, with spans and functions across their switches; the end of every tenth
/// nested span is missing.
fn spans() -> String {
    let mut text =
        String::from("type\tdate_tick\tpid\tcpu\tname\tparams\nKERN\t1000\t0\t0\tKERN_CONTEXT_SWITCH\t70\n");
    let mut tick = 1000;
    for round in 0..100u64 {
        let mut user = |name: &str, params: String| {
            tick += 3 + round % 7;
            writeln!(text, "USER\t{tick}\t70\t0\t{name}\t{params}").unwrap();
        };
        let span = |number: u64| format!("span={}(step {number} at s.c:{number})", 4096 + number);
        user("USER_CONTEXT_SWITCH", format!("next={}", 1 + round % 2));
        user("SPAN_BEGIN", span(round % 3));
        user("FUNC_ENTER", "function=9000(work at w.c:7)".into());
        user("USER_CONTEXT_SWITCH", format!("next={}", 2 - round % 2));
        user("USER_CONTEXT_SWITCH", format!("next={}", 1 + round % 2));
        if round % 10 != 0 {
            user("FUNC_EXIT", "function=9000(work at w.c:7)".into());
        }
        user("SPAN_END", span(round % 3));
    }
    text
}

#[tokio::test]
async fn spans_and_functions_are_those_of_the_table() {
    if !can_read() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let exported = export_listing(folder.path(), &spans()).await;
    let by_sql = exported
        .sql("SELECT name, count(*), CAST(sum(dur_tick) AS BIGINT) FROM raw_spans GROUP BY name")
        .await;
    assert_eq!(by_sql.values().map(|[count, _]| count).sum::<u64>(), 200, "{by_sql:?}");
    assert_eq!(exported.regions(": spans"), by_sql);
    assert_eq!((exported.replayed.slices, exported.replayed.slices_without_end), (200, 10));
}

#[tokio::test]
async fn holds_of_locks_are_those_of_the_table() {
    if !can_read() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let exported = export_listing(folder.path(), &waits::listing()).await;
    let by_sql = exported
        .sql(
            "SELECT 'hold', count(*), CAST(sum(hold_tick) AS BIGINT) FROM raw_locks WHERE hold_tick IS NOT NULL",
        )
        .await;
    // `LOCATION | TICK | ThreadAcquireLock | lock L acquisition N`
    let mut since: BTreeMap<String, u64> = BTreeMap::new();
    let mut held = [0, 0];
    for event in &exported.read.events {
        let words: Vec<&str> = event.split(" | ").collect();
        let tick = || words[1].parse::<u64>().unwrap();
        match words[2] {
            "ThreadAcquireLock" => assert_eq!(since.insert(words[3].into(), tick()), None),
            "ThreadReleaseLock" => held = [held[0] + 1, held[1] + tick() - since.remove(words[3]).unwrap()],
            _ => {}
        }
    }
    assert!(since.is_empty() && held[0] >= 2 * waits::ROUNDS, "{held:?}");
    assert_eq!(by_sql["hold"], held);
}

#[tokio::test]
async fn counters_are_those_of_the_table() {
    if !can_read() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let kernel = export_kernel_trace(folder.path()).await;
    let threads = tempfile::tempdir().unwrap();
    let threads = export_listing(threads.path(), &waits::listing()).await;
    for (exported, name) in [(kernel, "run-queue"), (threads, "ready-queue")] {
        let by_sql = exported
            .sql(
                "SELECT CASE WHEN kind = 'run-queue' THEN concat('CPU ', cpu, ': run queue') ELSE 'ready queue' END \
                 AS n, count(*), last_value(value ORDER BY ts_tick) FROM raw_counters GROUP BY n",
            )
            .await;
        let mut by_reader = Sums::new();
        for (location, values) in &exported.read.metrics {
            let label = &exported.read.locations[location][0];
            let label = if label.ends_with("ready queue") { "ready queue" } else { label };
            assert_eq!(by_reader.insert(label.into(), *values), None);
        }
        assert!(by_sql.values().any(|[count, _]| *count > 30), "{name}: {by_sql:?}");
        assert_eq!(by_reader, by_sql, "{name}");
    }
}

#[tokio::test]
async fn processes_have_the_names_of_the_table() {
    if !can_read() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let exported = export_kernel_trace(folder.path()).await;
    let by_sql = exported
        .sql(
            "SELECT DISTINCT concat(p.name, ' (', p.pid, ')'), CAST(1 AS BIGINT) AS one, CAST(2 AS BIGINT) AS two \
             FROM processes p JOIN lwps l ON l.pid = p.pid WHERE p.name IS NOT NULL",
        )
        .await;
    let groups: Vec<&String> = exported.read.locations.values().map(|[_, group, _]| group).collect();
    for name in by_sql.keys() {
        assert!(groups.contains(&name), "{name}: {groups:?}");
    }
}
