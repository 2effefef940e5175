//! Reads rows of tables that overlap a window. The types of columns are [`sigmund_sql::columns`].

use std::{collections::BTreeSet, sync::Arc};

use arrow::array::RecordBatch;
use datafusion::{
    common::runtime::SpawnedTask, error::DataFusionError, logical_expr::ident, prelude::DataFrame,
};
use sigmund_measures::Interval;
use sigmund_model::tables::{THREADS, Table};
use sigmund_sql::SuperTrace;

pub(super) use sigmund_sql::columns::{Small, Texts, Wide, Words, booleans};

use crate::Error;

/// Calls `each` with the row groups of a table, with these columns, in the order of the table. Nothing is planned, so it takes a
/// fraction of the time of a query if the table is small. While `each` has one row group, the next is decoded.
pub(super) async fn read(
    trace: &SuperTrace,
    table: &Table,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch),
) -> Result<(), Error> {
    let groups = Arc::new(trace.row_groups(table, columns)?);
    let begin = |group: usize| {
        let groups = Arc::clone(&groups);
        SpawnedTask::spawn_blocking(move || groups.read(group))
    };
    let mut next = (!groups.is_empty()).then(|| begin(0));
    for group in 0..groups.len() {
        let Some(reading) = next.take() else { break };
        let batch = reading.join().await.map_err(Error::of_task)??;
        next = (group + 1 < groups.len()).then(|| begin(group + 1));
        each(&batch);
    }
    Ok(())
}

/// Calls `each` with the rows of some user threads in the table `threads`, with these columns.
pub(super) async fn read_threads(
    trace: &SuperTrace,
    threads: &BTreeSet<u64>,
    columns: &[&str],
    each: impl FnMut(&RecordBatch),
) -> Result<(), Error> {
    let groups = trace.row_groups(&THREADS, columns)?;
    let numbers = Arc::new(threads.iter().map(|thread| *thread as i64).collect());
    let read = SpawnedTask::spawn_blocking(move || groups.rows_with("thread", &numbers));
    read.join().await.map_err(Error::of_task)??.iter().for_each(each);
    Ok(())
}

/// Calls `each` with the batches of a plan on a table.
pub(super) async fn stream(
    trace: &SuperTrace,
    table: &str,
    frame: DataFrame,
    each: impl FnMut(&RecordBatch),
) -> Result<(), Error> {
    Ok(trace.each_batch(table, frame, each).await?)
}

/// Rows of intervals that overlap the window.
pub(super) fn overlapping(frame: DataFrame, window: Interval) -> Result<DataFrame, DataFusionError> {
    use datafusion::logical_expr::lit;

    let mut frame = frame;
    if window.to < i64::MAX {
        frame = frame.filter(ident("ts_tick").lt(lit(window.to)))?;
    }
    if window.from > i64::MIN {
        let reaches = (ident("ts_tick") + ident("dur_tick")).gt_eq(lit(window.from));
        frame = frame.filter(ident("dur_tick").is_null().or(reaches))?;
    }
    Ok(frame)
}

/// An interval from `ts_tick` and `dur_tick`. Without a length, it lasts to the end of the trace.
pub(super) fn interval(from: i64, length: Option<i64>, last: i64) -> Interval {
    Interval::new(from, length.map_or(last, |length| from.saturating_add(length)))
}
