//! What opening a super-trace refuses, and what it says then.

mod support;

use std::fs;

use serde_json::json;
use sigmund_sql::{ErrorKind, SuperTrace};
use support::Little;

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
    assert!(message.ends_with(".supertrace/info: schema version 1, but this program reads 2: merge the recording again (sigmund merge)"), "{message}");

    little.clear("info");
    let (_, message) = refused(little.write()).await;
    assert!(message.contains("/info: no schema version, but this program reads 2"), "{message}");
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
    little.clear("info").info("schema_version", 2);
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
    assert_eq!(error.kind(), ErrorKind::Execution);
}

#[tokio::test]
async fn an_empty_trace_opens_and_answers() {
    let little = Little::new();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    assert_eq!((trace.tick_hz(), trace.first_tick(), trace.event_types().len()), (None, None, 0));
    let rows = trace.sql("SELECT ts_ns FROM events").await.unwrap().collect().await.unwrap();
    assert_eq!(rows.iter().map(|b| b.num_rows()).sum::<usize>(), 0);
}
