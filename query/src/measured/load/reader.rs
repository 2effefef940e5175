//! Reads tables row group by row group, the last one first. Other threads decode the next row groups in the meantime.
//!
//! Tables of intervals are sorted by the end of the interval. There are two exceptions: rows without a length, and rows
//! that a contradiction shortened. These come where this was found, after rows that end later. So the rows that were
//! not read yet end no later than the latest known end in the row group that was read last. If that row group has no
//! known end, the limit from the one before applies.

use std::{collections::VecDeque, sync::Arc};

use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::common::runtime::SpawnedTask;
use sigmund_measures::{Interval, Row, Slicer, Words};
use sigmund_model::tables::Table;
use sigmund_sql::{RowCondition, RowGroups, SuperTrace, Useful};

use super::times::Times;
use crate::Error;

/// The rows of a row group, in the order of the table.
pub(super) struct Decoded<R> {
    pub(super) rows: Vec<R>,
    /// The words of these rows.
    pub(super) words: Words,
    /// The latest known end of a row.
    pub(super) latest: Option<i64>,
}

impl<R> Decoded<R> {
    pub(super) fn new(batch: &RecordBatch) -> Decoded<R> {
        Decoded { rows: Vec::with_capacity(batch.num_rows()), words: Words::default(), latest: None }
    }

    /// For a table of which few rows are kept.
    pub(super) fn of_few() -> Decoded<R> {
        Decoded { rows: Vec::new(), words: Words::default(), latest: None }
    }

    /// Notes the end of a row of the table, if it is known.
    pub(super) fn end(&mut self, end: Option<i64>) {
        self.latest = self.latest.max(end);
    }

    /// Adds a row, with its end if that is known.
    pub(super) fn push(&mut self, row: R, end: Option<i64>) {
        self.push_if(true, row, end);
    }

    /// As [`push`](Self::push), but keeps the row only if it is of use. Its end counts in any case, because it is the
    /// end of a row of the table.
    pub(super) fn push_if(&mut self, is_of_use: bool, row: R, end: Option<i64>) {
        self.end(end);
        if is_of_use {
            self.rows.push(row);
        }
    }
}

/// Makes rows of a batch.
pub(super) type Decode<R> = Arc<dyn Fn(&RecordBatch) -> Decoded<R> + Send + Sync>;

/// Which rows of a table are of use.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Rows in this window. Earlier rows are read only if a measure looks back.
    pub(super) window: Interval,
    /// Other rows than those that overlap or touch one of these times are of no use. Some of them may be read all the same.
    pub(super) times: Times,
    /// Whether rows that are of no use must be left out, because they are many.
    pub(super) only_times: bool,
    /// Whether rows without an end are of use wherever they begin.
    pub(super) unended: bool,
}

impl Wanted {
    /// The rows in a window, and those before it that end at `since` or later.
    pub(super) fn since(window: Interval, since: i64) -> Wanted {
        Wanted { window, times: Times::one(since, window.to), only_times: false, unended: true }
    }
}

/// A table that is being read.
#[async_trait]
pub(super) trait Reader: Send {
    /// Which rows are of use.
    fn window(&self) -> Interval;

    /// The rows that were not read yet end no later than this. `None` if all were read.
    fn latest(&self) -> Option<i64>;

    /// Reads the next rows. Returns how many there are, and whether one of them ends at or after `until`.
    async fn advance(&mut self, slicer: &mut Slicer, until: i64) -> Result<(usize, bool), Error>;
}

/// A row group that is being decoded.
type Decoding<R> = SpawnedTask<Result<Decoded<R>, sigmund_sql::Error>>;

pub(super) struct TableReader<R> {
    groups: Arc<RowGroups>,
    /// The number of row groups that were not begun.
    left: usize,
    /// The next row groups, which are being decoded; at most `most_ahead`.
    ahead: VecDeque<Decoding<R>>,
    most_ahead: usize,
    latest: i64,
    decode: Decode<R>,
    add: fn(&mut Slicer, Vec<R>, &Words),
    wanted: Wanted,
    /// If there are any, only the rows for which one of these conditions holds are read.
    conditions: Arc<[RowCondition]>,
}

impl<R: Row + Send + 'static> TableReader<R> {
    /// # Errors
    /// When a footer cannot be read.
    pub(super) fn open(
        trace: &SuperTrace,
        (table, columns): (&Table, &[&str]),
        wanted: Wanted,
        decode: impl Fn(&RecordBatch) -> Decoded<R> + Send + Sync + 'static,
        add: fn(&mut Slicer, Vec<R>, &Words),
    ) -> Result<Box<dyn Reader>, Error> {
        TableReader::open_ahead(trace, (table, columns), wanted, decode, add, 1)
    }

    /// As [`open`](Self::open), with `most_ahead` row groups decoded at the same time. For a table that has to be
    /// decoded completely although few rows are kept.
    pub(super) fn open_ahead(
        trace: &SuperTrace,
        (table, columns): (&Table, &[&str]),
        wanted: Wanted,
        decode: impl Fn(&RecordBatch) -> Decoded<R> + Send + Sync + 'static,
        add: fn(&mut Slicer, Vec<R>, &Words),
        most_ahead: usize,
    ) -> Result<Box<dyn Reader>, Error> {
        TableReader::open_if(trace, (table, columns), (wanted, &[]), decode, add, most_ahead)
    }

    /// As [`open_ahead`](Self::open_ahead). If there are conditions, only of the rows for which one of these holds: see
    /// [`RowGroups::read_if`]. The table is sorted by `ts_tick`, and has no lengths.
    pub(super) fn open_if(
        trace: &SuperTrace,
        (table, columns): (&Table, &[&str]),
        (wanted, conditions): (Wanted, &[RowCondition]),
        decode: impl Fn(&RecordBatch) -> Decoded<R> + Send + Sync + 'static,
        add: fn(&mut Slicer, Vec<R>, &Words),
        most_ahead: usize,
    ) -> Result<Box<dyn Reader>, Error> {
        let (ahead, conditions) = (VecDeque::new(), conditions.into());
        let groups = Arc::new(trace.row_groups(table, columns)?);
        let (left, decode, latest) = (groups.len(), Arc::new(decode), i64::MAX);
        let mut reader =
            TableReader { groups, left, ahead, most_ahead, latest, decode, add, wanted, conditions };
        reader.begin();
        Ok(Box::new(reader))
    }

    /// Begins to decode the next row groups that may have rows in the window.
    fn begin(&mut self) {
        let Wanted { window, unended, only_times, .. } = self.wanted;
        while self.ahead.len() < self.most_ahead
            && let Some(next) = self.left.checked_sub(1)
        {
            self.left = next;
            if self.groups.bounds(next, "ts_tick").is_some_and(|(first, _)| first > window.to) {
                continue;
            }
            let (groups, decode) = (Arc::clone(&self.groups), Arc::clone(&self.decode));
            let (times, conditions) = (self.wanted.times.clone(), Arc::clone(&self.conditions));
            self.ahead.push_back(SpawnedTask::spawn_blocking(move || {
                if !conditions.is_empty() {
                    let mut decoded = decode(&groups.read_if(next, &conditions)?);
                    decoded.latest = groups.bounds(next, "ts_tick").map(|(_, last)| last);
                    return Ok(decoded);
                }
                if times.is_all() {
                    return Ok(decode(&groups.read(next)?));
                }
                let useful = Useful { times: times.as_slice(), unended };
                let (batch, others) = groups.read_within(next, useful)?;
                let mut decoded = decode(&batch);
                decoded.latest = decoded.latest.max(others);
                if only_times {
                    let mut touched = times.touched();
                    decoded.rows.retain(|row| {
                        let Interval { from, to } = row.interval();
                        touched.has(from, to)
                    });
                } else if window.to < i64::MAX {
                    decoded.rows.retain(|row| row.interval().from <= window.to);
                }
                Ok(decoded)
            }));
        }
    }
}

#[async_trait]
impl<R: Row + Send + 'static> Reader for TableReader<R> {
    fn window(&self) -> Interval {
        self.wanted.window
    }

    fn latest(&self) -> Option<i64> {
        self.ahead.front().map(|_| self.latest)
    }

    async fn advance(&mut self, slicer: &mut Slicer, until: i64) -> Result<(usize, bool), Error> {
        let Some(ahead) = self.ahead.pop_front() else { return Ok((0, false)) };
        let decoded = ahead.join().await;
        let decoded = decoded.map_err(Error::of_task)??;
        self.begin();
        if let Some(latest) = decoded.latest {
            self.latest = self.latest.min(latest);
        }
        let is_late = decoded.rows.iter().any(|row| row.interval().to >= until);
        let count = decoded.rows.len();
        (self.add)(slicer, decoded.rows, &decoded.words);
        Ok((count, is_late))
    }
}
