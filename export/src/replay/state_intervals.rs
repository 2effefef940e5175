//! Rows of `lwp_states` or `thread_states` in the order in which the states **begin**.
//!
//! The tables are in the order in which states end, because a streaming merge knows a state only then. Sorting them would
//! take memory, or a disk. But most states are short: of those no longer than `REACH`, one that ends at `e`
//! began at `e - REACH` or later. So the long ones are read first, alone, and kept; the others follow in the order of
//! the file through a heap that holds no more than what ended within the last `REACH`.
//!
//! ```text
//!            e - REACH                e: the end that was read last
//! ───────────────┼────────────────────┼──▶ tick
//!   final        │ in the heap        │ not read yet: begins at e - REACH or later
//! ```
//!
//! `REACH` is such that the heap holds about [`ROWS_A_TRACK`] for each track, if states are spread evenly: then long are
//! those that last that many times as long as states do on average, and memory grows with the number of tracks. A heap
//! that fits into the caches matters: one of 131 072 rows was 46 % of an export of 8 user threads.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use arrow::{
    array::{Array, AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch},
    datatypes::{DataType, Int32Type, Int64Type},
};
use datafusion::{
    error::{DataFusionError, Result as PlanResult},
    execution::SendableRecordBatchStream,
    logical_expr::{Expr, ident, lit},
    prelude::DataFrame,
    scalar::ScalarValue,
};
use futures::StreamExt;
use sigmund_model::{WaitKind, tables::Table};
use sigmund_query::Window;
use sigmund_sql::SuperTrace;

use crate::Error;

/// About how many rows of each track are in the heap: 64 bytes each.
const ROWS_A_TRACK: u64 = 16;

/// Rows that may be in the heap in any case.
const LEAST_ROWS: u64 = 1 << 12;

/// "Unknown" in a column that is never negative.
pub(super) const UNKNOWN: i32 = -1;

/// One row. The derived order is that of the replay: by begin, then by end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StateInterval {
    /// Its first tick, within the window.
    pub(super) from: i64,
    /// Its last tick, within the window.
    pub(super) to: i64,
    /// The LWP's or the user thread's number.
    pub(super) actor: i64,
    /// Index of its state in [`Wanted::states`].
    pub(super) state: u8,
    /// The LWP that a thread is mounted on, or [`UNKNOWN`].
    pub(super) lwp: i32,
    /// The CPU, or [`UNKNOWN`].
    pub(super) cpu: i32,
    /// The object it waits for.
    pub(super) blocked_on: Option<i64>,
    /// The number of the kind of wait; 0 if it is not known.
    pub(super) blocked_for: u8,
}

/// Which table, and which of its rows.
pub(super) struct Wanted<'a> {
    pub(super) table: &'static Table,
    /// The column of the LWP or user thread.
    pub(super) actor: &'static str,
    /// The names of states.
    pub(super) states: Vec<&'static str>,
    pub(super) conditions: Vec<Expr>,
    /// Its ticks are those of the actors' clock.
    pub(super) window: &'a Window,
    /// Number of actors.
    pub(super) tracks: usize,
}

/// The rows of one table, by their begins.
pub(super) struct StateIntervals {
    table: &'static str,
    rows: SendableRecordBatchStream,
    states: Vec<&'static str>,
    window: Window,
    reach: i64,
    /// Rows that were read, final or not.
    heap: BinaryHeap<Reverse<StateInterval>>,
    /// The long ones, sorted by begin.
    long: VecDeque<StateInterval>,
    /// All rows that begin before this tick have been read.
    read_up_to: i64,
    ended: bool,
}

impl StateIntervals {
    pub(super) async fn read(trace: &SuperTrace, wanted: Wanted<'_>) -> Result<StateIntervals, Error> {
        let name = wanted.table.name;
        let wrong = |e: DataFusionError| Error::from(trace.error(name, e));
        let frame = select(trace.raw(wanted.table).await?, &wanted).map_err(wrong)?;
        let rows = frame.clone().count().await.map_err(wrong)? as u64;
        let span = match *wanted.window {
            Window { from: Some(from), to: Some(to) } => to.saturating_sub(from).max(0) as u64,
            _ => i64::MAX as u64,
        };
        let waiting = LEAST_ROWS.max(ROWS_A_TRACK * wanted.tracks as u64);
        let reach = (u128::from(span) * u128::from(waiting) / u128::from(rows.max(waiting))) as i64;
        let is_short = ident("dur_tick").lt_eq(lit(reach));
        let is_long = ident("dur_tick").is_null().or(ident("dur_tick").gt(lit(reach)));
        let long = frame.clone().filter(is_long).map_err(wrong)?.collect().await.map_err(wrong)?;
        let short = trace.in_file_order(frame.filter(is_short).map_err(wrong)?);
        let mut intervals = StateIntervals {
            table: name,
            rows: short.execute_stream().await.map_err(wrong)?,
            states: wanted.states,
            window: *wanted.window,
            reach,
            heap: BinaryHeap::new(),
            long: VecDeque::new(),
            read_up_to: i64::MIN,
            ended: false,
        };
        let mut long: Vec<StateInterval> = long.iter().flat_map(|batch| intervals.rows_of(batch)).collect();
        long.sort_unstable();
        intervals.long = long.into();
        Ok(intervals)
    }

    /// The begin of the next row; `None` if no row is final before [`more`](Self::more) are read.
    pub(super) fn next_from(&self) -> Option<i64> {
        let short = self.heap.peek().map(|Reverse(interval)| interval.from);
        let long = self.long.front().map(|interval| interval.from);
        let next = [short, long].into_iter().flatten().min()?;
        (self.ended || next < self.read_up_to).then_some(next)
    }

    /// The next row, final or not.
    pub(super) fn take(&mut self) -> Option<StateInterval> {
        match (self.heap.peek(), self.long.front()) {
            (Some(Reverse(short)), Some(long)) if long < short => self.long.pop_front(),
            (Some(_), _) => self.heap.pop().map(|Reverse(short)| short),
            (None, _) => self.long.pop_front(),
        }
    }

    /// Whether more must be read before the next row is final.
    pub(super) fn needs_more(&self) -> bool {
        !self.ended && self.next_from().is_none()
    }

    /// Reads more rows.
    pub(super) async fn more(&mut self, trace: &SuperTrace) -> Result<(), Error> {
        let Some(batch) = self.rows.next().await.transpose().map_err(|e| trace.error(self.table, e))? else {
            self.ended = true;
            return Ok(());
        };
        let rows: Vec<StateInterval> = self.rows_of(&batch).collect();
        if batch.num_rows() > 0 {
            let columns =
                (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
            let last = batch.num_rows() - 1;
            let end = columns.0.value(last).saturating_add(columns.1.value(last));
            self.read_up_to = self.read_up_to.max(end.saturating_sub(self.reach));
        }
        self.heap.extend(rows.into_iter().map(Reverse));
        Ok(())
    }

    /// The rows of a batch that are in the window and have a known state, cut to the window.
    fn rows_of<'b>(&self, batch: &'b RecordBatch) -> impl Iterator<Item = StateInterval> + use<'b> {
        let long = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        let (from, dur, actor_column) = (long(0), long(1), ActorColumn::of(batch, 2));
        let state_of = |word: &str| self.states.iter().position(|state| *state == word).map(|at| at as u8);
        let states = Words::of(batch, 3, state_of);
        let declarations = Words::of(batch, 7, |word| WaitKind::from_name(word).map(WaitKind::number));
        let (lwp, cpu) =
            (batch.column(4).as_primitive::<Int32Type>(), batch.column(5).as_primitive::<Int32Type>());
        let blocked_on = long(6);
        let (first, last) = (self.window.from.unwrap_or(i64::MIN), self.window.to.unwrap_or(i64::MAX));
        (0..batch.num_rows()).filter_map(move |row| {
            let state = states.value(row)?;
            let begin = from.value(row);
            let end = if dur.is_valid(row) { begin.saturating_add(dur.value(row)) } else { i64::MAX };
            let (begin, end) = (begin.max(first), end.min(last));
            (begin <= end).then(|| StateInterval {
                from: begin,
                to: end,
                actor: actor_column.value(row),
                state,
                lwp: if lwp.is_valid(row) { lwp.value(row) } else { UNKNOWN },
                cpu: if cpu.is_valid(row) { cpu.value(row) } else { UNKNOWN },
                blocked_on: blocked_on.is_valid(row).then(|| blocked_on.value(row)),
                blocked_for: declarations.value(row).unwrap_or(0),
            })
        })
    }
}

/// A column of words, as numbers.
struct Words<'b> {
    words: &'b DictionaryArray<Int32Type>,
    /// By key; `None` for unknown words.
    numbers: Vec<Option<u8>>,
}

impl<'b> Words<'b> {
    fn of(batch: &'b RecordBatch, column: usize, number: impl Fn(&str) -> Option<u8>) -> Words<'b> {
        let words = batch.column(column).as_dictionary::<Int32Type>();
        let texts = words.values().as_string::<i32>();
        Words { words, numbers: texts.iter().map(|word| number(word?)).collect() }
    }

    fn value(&self, row: usize) -> Option<u8> {
        self.words.key(row).and_then(|key| self.numbers[key])
    }
}

/// The column of the LWP or user thread: numbers of LWPs are 32 bits wide, those of user threads 64.
enum ActorColumn<'b> {
    Lwp(&'b Int32Array),
    Thread(&'b Int64Array),
}

impl ActorColumn<'_> {
    fn of(batch: &RecordBatch, column: usize) -> ActorColumn<'_> {
        match batch.column(column).as_primitive_opt::<Int64Type>() {
            Some(threads) => ActorColumn::Thread(threads),
            None => ActorColumn::Lwp(batch.column(column).as_primitive()),
        }
    }

    fn value(&self, row: usize) -> i64 {
        match self {
            ActorColumn::Lwp(lwps) => lwps.value(row).into(),
            ActorColumn::Thread(threads) => threads.value(row),
        }
    }
}

/// `ts_tick, dur_tick, actor, state, lwp, cpu, blocked_on, blocked_for` of the wanted rows; NULL where the table has no such column.
fn select(frame: DataFrame, wanted: &Wanted<'_>) -> PlanResult<DataFrame> {
    let mut frame = frame;
    for condition in &wanted.conditions {
        frame = frame.filter(condition.clone())?;
    }
    let end = ident("ts_tick") + ident("dur_tick");
    if let Some(from) = wanted.window.from {
        frame = frame.filter(end.clone().is_null().or(end.gt_eq(lit(from))))?;
    }
    if let Some(to) = wanted.window.to {
        frame = frame.filter(ident("ts_tick").lt_eq(lit(to)))?;
    }
    let has = |name: &str| wanted.actor != name && wanted.table.columns.iter().any(|c| c.name == name);
    let or_null = |name: &'static str, null: ScalarValue| {
        if has(name) { ident(name) } else { lit(null).alias(format!("no_{name}")) }
    };
    let no_word = ScalarValue::Dictionary(Box::new(DataType::Int32), Box::new(ScalarValue::Utf8(None)));
    frame.select(vec![
        ident("ts_tick"),
        ident("dur_tick"),
        ident(wanted.actor),
        ident("state"),
        or_null("lwp", ScalarValue::Int32(None)),
        or_null("cpu", ScalarValue::Int32(None)),
        or_null("blocked_on", ScalarValue::Int64(None)),
        or_null("blocked_for", no_word),
    ])
}
