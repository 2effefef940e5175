//! Rows of a table of intervals in the order in which they **begin**.
//!
//! The tables are nearly sorted by the ends of intervals, because a streaming merge writes an interval when it ends.
//! Sorting a whole table would take memory or disk space proportional to it. But most intervals are short: the rows of
//! intervals that were open at the same time are close together. So a first pass over the table collects only the
//! *late* rows, whose intervals are long (`late_rows.rs` defines the word). A second pass sorts the other rows, a few
//! thousand at a time. A row is final as soon as no later row of the file, except late ones, can begin before it.
//!
//! ```text
//!           boundary                  rows in the order of the file ──▶
//! ──────────────┼─────────────────────┼──▶ tick
//!   final       │ sorted, not final   │ not yet read: begins at the boundary or after it, or is late
//! ```
//!
//! So memory is bounded by constants, whatever the number of tracks and the distribution of intervals: at most
//! [`MAX_LATE`](super::late_rows::MAX_LATE) late rows, and some 16 blocks of other rows. If there are more late rows,
//! only the first of them are collected. When these have been replayed, the table is read again for the next ones.

use std::path::PathBuf;

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::Int64Type,
};
use datafusion::{
    error::{DataFusionError, Result as PlanResult},
    execution::SendableRecordBatchStream,
    logical_expr::{Expr, lit},
    physical_plan::common::spawn_buffered,
    prelude::DataFrame,
};
use futures::{StreamExt, future::BoxFuture};
use sigmund_model::{Ticks, tables::Table};
use sigmund_query::Window;
use sigmund_sql::SuperTrace;

use super::{
    late_rows::{LateRows, Lateness, Level, MAX_LATE},
    merged_rows::MergedRows,
    replayer::Replayer,
};
use crate::Error;

/// The number of batches of each table that another thread decodes in advance.
const AHEAD: usize = 1;

/// A row. Its order is that of the replay: first by [`begin`](Self::begin).
pub(super) trait Row: Clone + Ord + Send {
    /// Its first tick, within the window.
    fn begin(&self) -> i64;

    /// Replays the row.
    fn replay(self, replayer: &mut Replayer<'_>);
}

/// Reads the rows of one table from batches.
pub(super) trait RowReader: Send {
    /// The type of the rows.
    type Row: Row;

    /// Appends those rows of a batch whose index `is_wanted` accepts. They are cut to the window.
    fn read(&mut self, batch: &RecordBatch, is_wanted: &dyn Fn(usize) -> bool, rows: &mut Vec<Self::Row>);
}

/// The selected rows and columns of a table.
pub(super) struct Selection<'a> {
    pub(super) table: &'static Table,
    pub(super) conditions: Vec<Expr>,
    /// Begin and length, of type `Int64`. The length is NULL if the interval has no end.
    pub(super) interval: (Expr, Expr),
    /// Further columns, from index 2 on.
    pub(super) columns: Vec<Expr>,
    /// Intervals that do not overlap this window are left out.
    pub(super) window: &'a Window,
}

/// Rows of one table in the order of their begins.
pub(super) struct ByBegin<R: RowReader> {
    /// The path of the table, for errors.
    path: PathBuf,
    frame: DataFrame,
    batches: SendableRecordBatchStream,
    reader: R,
    lateness: Lateness,
    rows: MergedRows<R::Row>,
}

/// A source of rows in the order of their begins.
pub(super) trait RowSource: Send {
    /// The begin of the next row; `None` if there is none, or if a row that is not yet read may precede it.
    fn next_begin(&self) -> Option<i64>;

    /// Whether more must be read before the next row is known.
    fn needs_more(&self) -> bool;

    /// Reads more rows.
    fn more(&mut self) -> BoxFuture<'_, Result<(), Error>>;

    /// Replays the next row.
    fn replay_next(&mut self, replayer: &mut Replayer<'_>);
}

impl<R: RowReader> ByBegin<R> {
    /// Collects the late rows, and starts reading the others.
    pub(super) async fn open(
        trace: &SuperTrace,
        selection: Selection<'_>,
        mut reader: R,
    ) -> Result<ByBegin<R>, Error> {
        let table = selection.table.name;
        let wrong = |e: DataFusionError| Error::from(trace.error(table, e));
        let selected = select(trace, trace.raw(selection.table).await?, &selection).map_err(wrong)?;
        let frame = trace.in_file_order(selected);
        let mut late = LateRows::new(MAX_LATE);
        collect_late(&frame, &mut reader, &mut late).await.map_err(wrong)?;
        let batches = stream(&frame).await.map_err(wrong)?;
        let (lateness, rows) = (Lateness::default(), MergedRows::new(late));
        let path = trace.path().join(table);
        Ok(ByBegin { path, frame, batches, reader, lateness, rows })
    }

    async fn read_more(&mut self) -> Result<(), Error> {
        let path = &self.path;
        let wrong = |e: DataFusionError| {
            Error::from(sigmund_sql::Error::from_datafusion(path.display().to_string(), e))
        };
        if let Some(late) = self.rows.left_late_rows() {
            return collect_late(&self.frame, &mut self.reader, late).await.map_err(wrong);
        }
        let Some(batch) = self.batches.next().await.transpose().map_err(wrong)? else {
            self.rows.end();
            return Ok(());
        };
        let (levels, limit) = (levels(&mut self.lateness, &batch), self.rows.limit());
        let reader = &mut self.reader;
        self.rows.add(self.lateness.boundary(limit), |rows| {
            reader.read(&batch, &|row| levels[row] <= limit, rows);
        });
        Ok(())
    }
}

impl<R: RowReader> RowSource for ByBegin<R> {
    fn next_begin(&self) -> Option<i64> {
        self.rows.next().map(Row::begin)
    }

    fn needs_more(&self) -> bool {
        self.rows.need_more()
    }

    fn more(&mut self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.read_more())
    }

    fn replay_next(&mut self, replayer: &mut Replayer<'_>) {
        if let Some(row) = self.rows.take() {
            row.replay(replayer);
        }
    }
}

/// Reads the whole table, and collects its late rows.
async fn collect_late<R: RowReader>(
    frame: &DataFrame,
    reader: &mut R,
    late: &mut LateRows<R::Row>,
) -> PlanResult<()> {
    let (mut batches, mut lateness, mut rows) = (stream(frame).await?, Lateness::default(), Vec::new());
    while let Some(batch) = batches.next().await.transpose()? {
        let levels = levels(&mut lateness, &batch);
        for level in Level::all().filter(|level| levels.contains(level)) {
            if level > late.limit() {
                reader.read(&batch, &|row| levels[row] == level, &mut rows);
                late.extend(rows.drain(..), level);
            }
        }
    }
    late.sort();
    Ok(())
}

/// The level of each row of a batch. Batches must be given in the order of the file.
fn levels(lateness: &mut Lateness, batch: &RecordBatch) -> Vec<Level> {
    let [begins, lengths] = [0, 1].map(|column| batch.column(column).as_primitive::<Int64Type>());
    let level = |row| {
        let begin = begins.value(row);
        let length = if lengths.is_valid(row) { lengths.value(row) } else { 0 };
        lateness.next_row(begin, begin.saturating_add(length))
    };
    (0..batch.num_rows()).map(level).collect()
}

/// The rows of a table in the order of its files, decoded by another thread.
async fn stream(frame: &DataFrame) -> PlanResult<SendableRecordBatchStream> {
    Ok(spawn_buffered(frame.clone().execute_stream().await?, AHEAD))
}

fn select(trace: &SuperTrace, mut frame: DataFrame, selection: &Selection<'_>) -> PlanResult<DataFrame> {
    for condition in &selection.conditions {
        frame = frame.filter(condition.clone())?;
    }
    let (begin, length) = selection.interval.clone();
    // Each condition costs a comparison for every row. So a bound of the window that excludes nothing of the trace has
    // no condition.
    let is_after = |tick: Option<Ticks>, border: i64| tick.is_none_or(|tick| (tick.0 as i64) < border);
    let is_before = |tick: Option<Ticks>, border: i64| tick.is_none_or(|tick| tick.0 as i64 > border);
    if let Some(from) = selection.window.from.filter(|from| is_after(trace.first_tick(), *from)) {
        let end = begin.clone() + length.clone();
        frame = frame.filter(end.clone().is_null().or(end.gt_eq(lit(from))))?;
    }
    if let Some(to) = selection.window.to.filter(|to| is_before(trace.last_tick(), *to)) {
        frame = frame.filter(begin.clone().lt_eq(lit(to)))?;
    }
    let mut columns = vec![begin.alias("begin_tick"), length.alias("length_tick")];
    columns.extend(selection.columns.iter().cloned());
    frame.select(columns)
}

/// Whether a table has a column of this name.
pub(super) fn has_column(table: &Table, name: &str) -> bool {
    table.columns.iter().any(|column| column.name == name)
}

/// The part of an interval that is in the window; `None` if they do not overlap. Without a length, the interval has no
/// end.
pub(super) fn cut(window: &Window, begin: i64, length: Option<i64>) -> Option<(i64, i64)> {
    let end = length.map_or(i64::MAX, |length| begin.saturating_add(length));
    let (begin, end) = (begin.max(window.from.unwrap_or(i64::MIN)), end.min(window.to.unwrap_or(i64::MAX)));
    (begin <= end).then_some((begin, end))
}
