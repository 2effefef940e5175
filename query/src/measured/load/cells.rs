//! Reads rows of tables that overlap a window. The types of columns are [`sigmund_sql::columns`].

use arrow::array::RecordBatch;
use datafusion::{error::DataFusionError, logical_expr::ident, prelude::DataFrame};
use sigmund_measures::Interval;
use sigmund_model::{
    ThreadState,
    tables::{THREAD_STATES, Table},
};
use sigmund_sql::SuperTrace;

pub(super) use sigmund_sql::columns::{Small, Texts, Wide, Words, booleans};

use crate::Error;

/// Calls `each` with the batches of a table, with these columns.
pub(super) async fn read(
    trace: &SuperTrace,
    table: &Table,
    columns: &[&str],
    window: Option<Interval>,
    each: impl FnMut(&RecordBatch),
) -> Result<(), Error> {
    read_lasting(trace, table, "dur_tick", columns, window, each).await
}

/// Like [`read`], of a table whose lengths are in another column.
pub(super) async fn read_lasting(
    trace: &SuperTrace,
    table: &Table,
    length: &str,
    columns: &[&str],
    window: Option<Interval>,
    each: impl FnMut(&RecordBatch),
) -> Result<(), Error> {
    let on_table = Error::on(trace, table.name);
    let frame = trace.raw(table).await?;
    let frame = overlapping(frame, table, length, window).map_err(&on_table)?;
    let frame = frame.select(columns.iter().map(|column| ident(*column))).map_err(&on_table)?;
    stream(trace, table.name, frame, each).await
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

/// Rows of intervals that overlap the window; but that user threads have exited before it is of no use to any measure, and a
/// trace may have millions of these.
fn overlapping(
    frame: DataFrame,
    table: &Table,
    length: &str,
    window: Option<Interval>,
) -> Result<DataFrame, DataFusionError> {
    use datafusion::logical_expr::lit;

    let Some(window) = window else { return Ok(frame) };
    let reaches = |column: &str| ident("ts_tick") + ident(column);
    let mut frame = frame;
    if window.to < i64::MAX {
        frame = frame.filter(ident("ts_tick").lt(lit(window.to)))?;
    }
    if window.from > i64::MIN {
        let mut endless = ident(length).is_null();
        if table.name == THREAD_STATES.name {
            let exited = lit(ThreadState::Exited.name());
            endless = endless.and(ident("state").not_eq(exited).or(ident("ts_tick").gt_eq(lit(window.from))));
        }
        frame = frame.filter(endless.or(reaches(length).gt_eq(lit(window.from))))?;
    }
    Ok(frame)
}

/// From `ts_tick` and `dur_tick`; to the end of the trace if it has no length.
pub(super) fn interval(from: i64, length: Option<i64>, last: i64) -> Interval {
    Interval::new(from, length.map_or(last, |length| from.saturating_add(length)))
}
