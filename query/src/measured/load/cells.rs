//! Reads rows of tables that overlap a window. The types of columns are [`sigmund_sql::columns`].

use arrow::array::RecordBatch;
use datafusion::{error::DataFusionError, logical_expr::ident, prelude::DataFrame};
use sigmund_measures::Interval;
use sigmund_model::tables::Table;
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
    let on_table = Error::on(trace, table.name);
    let frame = trace.raw(table).await?;
    let frame = overlapping(frame, window).map_err(&on_table)?;
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

/// Rows of intervals that overlap the window.
pub(super) fn overlapping(frame: DataFrame, window: Option<Interval>) -> Result<DataFrame, DataFusionError> {
    use datafusion::logical_expr::lit;

    let Some(window) = window else { return Ok(frame) };
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
