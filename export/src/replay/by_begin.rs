//! Rows of a table of intervals in the order in which they **begin**.
//!
//! The tables are nearly sorted by the ends of intervals, because a streaming merge writes an interval when it ends.
//! Sorting a whole table would take memory or disk space proportional to it. But most intervals are short. Let `e` be
//! the greatest end so far in the order of the file. A row is *late* if it begins before `e - REACH`: it is long, or it
//! was written long after its end. A first pass over the table collects only the late rows. In a second pass the others
//! go through a heap, from which a row is taken as soon as no later row of the file can begin before it.
//!
//! ```text
//!            e - REACH                e: the greatest end that was read
//! ───────────────┼────────────────────┼──▶ tick
//!   final        │ in the heap        │ not yet read: begins at e - REACH or later, or is late
//! ```
//!
//! `REACH` is chosen so that the heap holds about [`ROWS_PER_TRACK`] rows for each track, if intervals are evenly
//! distributed. Then the late rows are those that last that many times the average, and memory grows with the number of
//! tracks. The heap should fit into the caches: one of 131 072 rows took 46 % of the time of an export of 8 user
//! threads.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::Int64Type,
};
use datafusion::{
    error::{DataFusionError, Result as PlanResult},
    execution::SendableRecordBatchStream,
    logical_expr::{Expr, lit},
    prelude::DataFrame,
};
use futures::{StreamExt, future::BoxFuture};
use sigmund_model::tables::Table;
use sigmund_query::Window;
use sigmund_sql::SuperTrace;

use super::replayer::Replayer;
use crate::Error;

/// Approximate number of rows per track in the heap; a row has 64 bytes.
const ROWS_PER_TRACK: u64 = 16;

/// Minimum capacity that `REACH` is computed for, in rows.
const MIN_ROWS: u64 = 1 << 12;

/// A row. Its order is that of the replay: first by [`begin`](Self::begin).
pub(super) trait Row: Ord + Send {
    /// Its first tick, within the window.
    fn begin(&self) -> i64;

    /// Replays it.
    fn replay(self, replayer: &mut Replayer<'_>) -> Result<(), Error>;
}

/// Reads the rows of one table from batches.
pub(super) trait RowReader: Send {
    /// The type of the rows.
    type Row: Row;

    /// Appends the rows of a batch whose index `is_wanted` accepts, cut to the window.
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
    /// Intervals that do not overlap it are left out.
    pub(super) window: &'a Window,
    /// Number of tracks.
    pub(super) tracks: usize,
}

/// Rows of one table in the order of their begins.
pub(super) struct ByBegin<R: RowReader> {
    table: &'static str,
    batches: SendableRecordBatchStream,
    reader: R,
    reach: i64,
    /// The greatest end so far.
    greatest_end: i64,
    /// Rows that are not late.
    heap: BinaryHeap<Reverse<R::Row>>,
    /// The late rows, sorted.
    late: VecDeque<R::Row>,
    ended: bool,
}

/// A source of rows in the order of their begins.
pub(super) trait RowSource: Send {
    /// The begin of the next row; `None` if there is none, or if a row that is not yet read may precede it.
    fn next_begin(&self) -> Option<i64>;

    /// Whether more must be read before the next row is known.
    fn needs_more(&self) -> bool;

    /// Reads more rows.
    fn more<'s>(&'s mut self, trace: &'s SuperTrace) -> BoxFuture<'s, Result<(), Error>>;

    /// Replays the next row.
    fn replay_next(&mut self, replayer: &mut Replayer<'_>) -> Result<(), Error>;
}

impl<R: RowReader> ByBegin<R> {
    /// Collects the late rows, and starts reading the others.
    pub(super) async fn open(
        trace: &SuperTrace,
        selection: Selection<'_>,
        reader: R,
    ) -> Result<ByBegin<R>, Error> {
        let name = selection.table.name;
        let wrong = |e: DataFusionError| Error::from(trace.error(name, e));
        let frame = select(trace.raw(selection.table).await?, &selection).map_err(wrong)?;
        let rows = frame.clone().count().await.map_err(wrong)? as u64;
        let span = match *selection.window {
            Window { from: Some(from), to: Some(to) } => to.saturating_sub(from).max(0) as u64,
            _ => i64::MAX as u64,
        };
        let in_heap = MIN_ROWS.max(ROWS_PER_TRACK * selection.tracks as u64);
        let reach = (u128::from(span) * u128::from(in_heap) / u128::from(rows.max(in_heap))) as i64;
        let in_order = trace.in_file_order(frame);
        let batches = in_order.clone().execute_stream().await.map_err(wrong)?;
        let (heap, late, greatest_end) = (BinaryHeap::new(), VecDeque::new(), i64::MIN);
        let mut by_begin =
            ByBegin { table: name, batches, reader, reach, greatest_end, heap, late, ended: false };
        let mut late = Vec::new();
        while let Some(batch) = by_begin.batches.next().await.transpose().map_err(wrong)? {
            let is_late = by_begin.late_rows(&batch);
            if is_late.contains(&true) {
                by_begin.reader.read(&batch, &|row| is_late[row], &mut late);
            }
        }
        late.sort_unstable();
        by_begin.late = late.into();
        by_begin.greatest_end = i64::MIN;
        by_begin.batches = in_order.execute_stream().await.map_err(wrong)?;
        Ok(by_begin)
    }

    /// Whether each row of a batch is late. Batches are given in the order of the file.
    fn late_rows(&mut self, batch: &RecordBatch) -> Vec<bool> {
        let [begins, lengths] = [0, 1].map(|column| batch.column(column).as_primitive::<Int64Type>());
        let is_late = |row| {
            let begin = begins.value(row);
            let length = if lengths.is_valid(row) { lengths.value(row) } else { 0 };
            self.greatest_end = self.greatest_end.max(begin.saturating_add(length));
            begin < self.greatest_end.saturating_sub(self.reach)
        };
        (0..batch.num_rows()).map(is_late).collect()
    }

    async fn read_batch(&mut self, trace: &SuperTrace) -> Result<(), Error> {
        let Some(batch) = self.batches.next().await.transpose().map_err(|e| trace.error(self.table, e))?
        else {
            self.ended = true;
            return Ok(());
        };
        let is_late = self.late_rows(&batch);
        let mut rows = Vec::with_capacity(batch.num_rows());
        self.reader.read(&batch, &|row| !is_late[row], &mut rows);
        self.heap.extend(rows.into_iter().map(Reverse));
        Ok(())
    }

    fn take(&mut self) -> Option<R::Row> {
        match (self.heap.peek(), self.late.front()) {
            (Some(Reverse(row)), Some(late)) if late < row => self.late.pop_front(),
            (Some(_), _) => self.heap.pop().map(|Reverse(row)| row),
            (None, _) => self.late.pop_front(),
        }
    }
}

impl<R: RowReader> RowSource for ByBegin<R> {
    fn next_begin(&self) -> Option<i64> {
        let in_heap = self.heap.peek().map(|Reverse(row)| row.begin());
        let late = self.late.front().map(Row::begin);
        let next = [in_heap, late].into_iter().flatten().min()?;
        (self.ended || next < self.greatest_end.saturating_sub(self.reach)).then_some(next)
    }

    fn needs_more(&self) -> bool {
        !self.ended && self.next_begin().is_none()
    }

    fn more<'s>(&'s mut self, trace: &'s SuperTrace) -> BoxFuture<'s, Result<(), Error>> {
        Box::pin(self.read_batch(trace))
    }

    fn replay_next(&mut self, replayer: &mut Replayer<'_>) -> Result<(), Error> {
        self.take().map_or(Ok(()), |row| row.replay(replayer))
    }
}

fn select(frame: DataFrame, selection: &Selection<'_>) -> PlanResult<DataFrame> {
    let mut frame = frame;
    for condition in &selection.conditions {
        frame = frame.filter(condition.clone())?;
    }
    let (begin, length) = selection.interval.clone();
    if let Some(from) = selection.window.from {
        let end = begin.clone() + length.clone();
        frame = frame.filter(end.clone().is_null().or(end.gt_eq(lit(from))))?;
    }
    if let Some(to) = selection.window.to {
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

/// The part of an interval in the window; `None` if they do not overlap. Without a length, the interval has no end.
pub(super) fn cut(window: &Window, begin: i64, length: Option<i64>) -> Option<(i64, i64)> {
    let end = length.map_or(i64::MAX, |length| begin.saturating_add(length));
    let (begin, end) = (begin.max(window.from.unwrap_or(i64::MIN)), end.min(window.to.unwrap_or(i64::MAX)));
    (begin <= end).then_some((begin, end))
}

/// A value of a column of type `Int64` or `Int32`.
pub(super) fn number(batch: &RecordBatch, column: usize, row: usize) -> Option<i64> {
    let column = batch.column(column);
    if column.is_null(row) {
        return None;
    }
    match column.as_primitive_opt::<Int64Type>() {
        Some(numbers) => Some(numbers.value(row)),
        None => Some(column.as_primitive::<arrow::datatypes::Int32Type>().value(row).into()),
    }
}
