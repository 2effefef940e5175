//! What opening a super-trace refuses, and what it says then.

use std::fs;

use crate::support::Little;
use serde_json::json;
use sigmund_model::tables::{EVENTS, SCHEMA_VERSION};
use sigmund_sql::{ErrorKind, OpenOptions, SuperTrace};

async fn refused(path: impl AsRef<std::path::Path>) -> (ErrorKind, String) {
    match SuperTrace::open(path).await {
        Ok(_) => panic!("opened"),
        Err(error) => (error.kind(), error.to_string()),
    }
}

#[tokio::test]
async fn a_super_trace_of_another_version_is_refused_by_its_number() {
    let mut little = Little::new();
    little.clear("info").info("schema_version", 1);
    let (kind, message) = refused(little.write()).await;
    assert_eq!(kind, ErrorKind::SchemaVersion);
    let expected = format!(
        "schema version 1, but this program reads {SCHEMA_VERSION}: merge the recording again (sigmund merge)"
    );
    assert!(message.ends_with(&format!(".supertrace/info: {expected}")), "{message}");

    little.clear("info");
    let (_, message) = refused(little.write()).await;
    let expected = format!("/info: no schema version, but this program reads {SCHEMA_VERSION}");
    assert!(message.contains(&expected), "{message}");
}

#[tokio::test]
async fn what_is_no_super_trace_is_named() {
    let little = Little::new();
    let (kind, message) = refused(little.path()).await;
    assert_eq!(kind, ErrorKind::NotASuperTrace);
    assert!(message.contains("T [1].supertrace: not a super-trace: expected a directory"), "{message}");
}

#[tokio::test]
async fn a_missing_table_is_named() {
    let little = Little::new();
    let path = little.write();
    fs::remove_dir_all(path.join("active")).unwrap();
    let (kind, message) = refused(&path).await;
    assert_eq!(kind, ErrorKind::MissingTable);
    assert!(message.contains("T [1].supertrace/active: the table `active` is missing"), "{message}");
}

#[tokio::test]
async fn a_table_that_was_left_out_is_named_by_the_query_that_wants_it() {
    let mut little = Little::new();
    little.info("left_out_tables", "syscalls,locks").left_out = vec!["syscalls", "locks"];
    let trace = SuperTrace::open(little.write()).await.unwrap();
    for table in ["syscalls", "raw_syscalls"] {
        let error = trace.sql(&format!("SELECT * FROM {table}")).await.unwrap_err();
        let expected = "the table syscalls was left out when this super-trace was merged (--tables)";
        assert!(error.kind() == ErrorKind::Query && error.to_string().contains(expected), "{error}");
    }
    assert!(trace.sql("SELECT * FROM wakeups").await.is_ok());

    // A folder that is missing without such a note is damage.
    little.clear("info").info("schema_version", SCHEMA_VERSION);
    assert_eq!(refused(little.write()).await.0, ErrorKind::MissingTable);
}

#[tokio::test]
async fn a_truncated_file_is_named() {
    let mut little = Little::new();
    little.row("events", json!({"ts_tick": 1, "level": "KERN", "name": "a"}));
    let path = little.write();
    let file = path.join("events/part-00000.parquet");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let (kind, message) = refused(&path).await;
    assert_eq!(kind, ErrorKind::Unreadable);
    assert!(
        message.contains("events/part-00000.parquet: expected a whole Parquet file, found:"),
        "{message}"
    );
}

async fn count(trace: &SuperTrace, table: &str) -> i64 {
    use arrow::{array::AsArray, datatypes::Int64Type};

    let rows = trace.sql(&format!("SELECT count(*) FROM {table}")).await.unwrap().collect().await.unwrap();
    rows[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[tokio::test]
async fn what_cannot_be_read_is_left_out_if_that_is_asked_for_and_named() {
    let mut little = Little::new();
    for tick in 0..10 {
        little.row("events", json!({"ts_tick": tick, "level": "KERN", "name": "a"}));
    }
    let path = little.write();
    let (whole, broken) = (path.join("events/part-00000.parquet"), path.join("events/part-00001.parquet"));
    let bytes = fs::read(&whole).unwrap();
    fs::write(&broken, &bytes[..bytes.len() / 2]).unwrap();
    fs::remove_dir_all(path.join("active")).unwrap();
    let other = fs::read(path.join("cpus/part-00000.parquet")).unwrap();
    fs::write(path.join("lwps/part-00000.parquet"), other).unwrap();
    assert_eq!(refused(&path).await.0, ErrorKind::Unreadable);

    let keep_going = OpenOptions { keep_going: true, ..OpenOptions::default() };
    let trace = keep_going.open(&path).await.unwrap();
    let mut said: Vec<_> = trace.left_out().iter().map(|error| (error.kind(), error.to_string())).collect();
    said.sort_by(|a, b| a.1.cmp(&b.1));
    let expected = [
        (ErrorKind::MissingTable, "/active: the table `active` is missing"),
        (ErrorKind::Unreadable, "/events/part-00001.parquet: expected a whole Parquet file"),
        (ErrorKind::Schema, "/lwps/part-00000.parquet: column `lwp`: expected Int32"),
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for ((kind, text), (expected_kind, part)) in said.iter().zip(expected) {
        assert!(*kind == expected_kind && text.contains(part), "{text}");
    }
    let counts = (count(&trace, "events").await, count(&trace, "active").await, count(&trace, "lwps").await);
    assert_eq!(counts, (10, 0, 0));

    // Without facts nothing has a meaning.
    fs::write(path.join("info/part-00000.parquet"), &bytes[..10]).unwrap();
    assert_eq!(keep_going.open(&path).await.err().map(|error| error.kind()), Some(ErrorKind::Unreadable));
}

#[tokio::test]
async fn answers_are_those_of_the_super_trace_that_was_opened() {
    let mut little = Little::new();
    little.row("events", json!({"ts_tick": 1, "level": "KERN", "name": "old"}));
    little.row("threads", json!({"thread": 1, "name": "old"}));
    let mut other = Little::new();
    for tick in 0..1000 {
        other.row("events", json!({"ts_tick": tick, "level": "KERN", "name": "new"}));
    }
    let (path, other) = (little.write(), other.write());
    let trace = SuperTrace::open(&path).await.unwrap();
    assert_eq!(count(&trace, "events").await, 1);
    fs::remove_dir_all(&path).unwrap();
    fs::rename(&other, &path).unwrap();
    // Other columns than before, so that nothing of it was kept in memory.
    assert_eq!(count(&trace, "events WHERE name = 'old' AND ts_tick = 1").await, 1);
    assert_eq!(trace.threads().unwrap().named("old").len(), 1);
    assert_eq!(count(&SuperTrace::open(&path).await.unwrap(), "events").await, 1000);
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(count(&trace, "threads WHERE name = 'old'").await, 1);
}

/// As `cp` does onto a file that exists: what was opened is not there any more.
#[tokio::test]
async fn a_file_that_is_overwritten_while_it_is_open_is_named() {
    let (mut little, mut other) = (Little::new(), Little::new());
    // Of one row, statistics would be the answer.
    for name in ["old", "older"] {
        little.row("events", json!({"ts_tick": 1, "level": "KERN", "name": name}));
    }
    for tick in 0..1000 {
        other.row("events", json!({"ts_tick": tick, "level": "KERN", "name": "new"}));
    }
    let (path, other) = (little.write(), other.write());
    let trace = SuperTrace::open(&path).await.unwrap();
    assert_eq!(count(&trace, "events").await, 2);
    let events = std::path::Path::new("events/part-00000.parquet");
    fs::copy(other.join(events), path.join(events)).unwrap();
    let error = trace.sql("SELECT name || 'x' FROM events").await.unwrap().to_text().await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unreadable, "{error:?}");
    let error = error.to_string();
    assert!(
        error.contains("events/part-00000.parquet: ") && error.contains("overwritten while it was open"),
        "{error}"
    );
}

/// Another program replaces a super-trace over and over, as `merge --force` does.
#[test]
fn a_super_trace_that_is_replaced_while_it_is_opened_is_one_of_both_or_a_clear_error() {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    let mut little = Little::new();
    little.row("events", json!({"ts_tick": 1, "level": "KERN", "name": "a"}));
    little.row("threads", json!({"thread": 1, "name": "a"}));
    let path = little.write();
    let of = |name: &str| path.with_file_name(name);
    let (is_over, path) = (AtomicBool::new(false), &path);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert!(
                    std::process::Command::new("cp")
                        .arg("-r")
                        .args([path, &of("next")])
                        .status()
                        .unwrap()
                        .success()
                );
                fs::rename(path, of("last")).unwrap();
                fs::rename(of("next"), path).unwrap();
                fs::remove_dir_all(of("last")).unwrap();
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut opened = 0;
        while opened < 50 {
            match runtime.block_on(SuperTrace::open(path)) {
                Ok(trace) => {
                    opened += 1;
                    assert_eq!(runtime.block_on(count(&trace, "events")), 1);
                    assert_eq!(runtime.block_on(count(&trace, "threads")), 1);
                }
                // Between the two renames there is none.
                Err(error) if error.kind() == ErrorKind::NotASuperTrace => {}
                Err(error) => {
                    let is_clear = error.to_string().contains("is being replaced");
                    is_over.store(!is_clear, Ordering::Relaxed);
                    assert!(is_clear, "{error}");
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[tokio::test]
async fn a_table_with_other_columns_is_named_with_the_column() {
    let little = Little::new();
    let path = little.write();
    fs::copy(path.join("cpus/part-00000.parquet"), path.join("lwps/part-00000.parquet")).unwrap();
    let (kind, message) = refused(&path).await;
    assert_eq!(kind, ErrorKind::Schema);
    assert!(message.contains("lwps/part-00000.parquet: column `lwp`: expected Int32, found no such column"));
}

#[tokio::test]
async fn a_missing_column_is_refused_by_name() {
    let mut little = Little::new();
    little.without = Some("blocked_on");
    let (kind, message) = refused(little.write()).await;
    assert_eq!(kind, ErrorKind::Schema);
    assert!(message.contains("column `blocked_on`: expected Int64, found no such column"), "{message}");
}

/// Where there are no checksums, as here: a bit that is wrong may make a type that does not exist, or a place before the file.
#[tokio::test]
async fn a_footer_with_a_wrong_bit_is_an_error_that_names_the_file_and_no_panic() {
    let mut little = Little::new();
    little.row("cpus", json!({"cpu": 3}));
    let path = little.write();
    let part = path.join("cpus/part-00000.parquet");
    let whole = fs::read(&part).unwrap();
    let mut refused = 0;
    for at in (4..whole.len()).step_by(17) {
        let mut wrong = whole.clone();
        wrong[at] ^= 1 << (at % 8);
        fs::write(&part, wrong).unwrap();
        match SuperTrace::open(&path).await {
            // Not all that is wrong is seen before it is read.
            Ok(trace) => drop(trace.sql("SELECT * FROM cpus").await.unwrap().to_text().await),
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("cpus"), "{at}: {error}");
            }
        }
    }
    assert!(refused > 15, "{refused} of {}", whole.len());
}

#[tokio::test]
async fn a_damaged_page_behind_a_good_footer_is_an_error_of_the_query() {
    let mut little = Little::new();
    for tick in 0..1000 {
        little.row("events", json!({"ts_tick": tick, "level": "KERN", "name": format!("event{tick}")}));
    }
    let path = little.write();
    let file = path.join("events/part-00000.parquet");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[4..middle].fill(0xff);
    fs::write(&file, bytes).unwrap();
    let trace = SuperTrace::open(&path).await.unwrap();
    let error = trace.sql("SELECT * FROM events").await.unwrap().collect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreadable);
    assert!(
        error.to_string().contains("events/part-00000.parquet: expected a whole Parquet file"),
        "{error}"
    );
    let error = trace.sql("SELECT name FROM events").await.unwrap().to_text().await.unwrap_err();
    assert!(error.to_string().contains("events/part-00000.parquet: "), "{error}");
    let error = trace.each_batch_of(&EVENTS, &["name", "ts_tick"], |_| ()).await.unwrap_err();
    assert!(error.to_string().contains("events/part-00000.parquet: "), "{error}");

    let options = OpenOptions { keep_going: true, ..OpenOptions::default() };
    let trace = options.open(&path).await.unwrap();
    assert!(
        trace.left_out()[0].to_string().contains("events/part-00000.parquet: "),
        "{:?}",
        trace.left_out()
    );
    assert_eq!(trace.left_out().len(), 1);
    let rows = trace.sql("SELECT * FROM events").await.unwrap().collect().await.unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 0);
}

#[tokio::test]
async fn an_empty_trace_opens_and_answers() {
    let little = Little::new();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!((trace.tick_hz(), trace.first_tick(), trace.event_types().len()), (None, None, 0));
    let rows = trace.sql("SELECT ts_ns FROM events").await.unwrap().collect().await.unwrap();
    assert_eq!(rows.iter().map(|b| b.num_rows()).sum::<usize>(), 0);
}
