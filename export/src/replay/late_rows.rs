//! The rows of a table that begin long before the rows around them.
//!
//! Rows are nearly sorted by their ends. Blocks of [`BLOCK`] rows are numbered in the order of the file. For a row in
//! block `b`, boundary L is the greatest end of all rows up to block `b - 2^L`. The level of a row is the number of
//! boundaries before which it begins. For example, a row of level 3 was open while the rows of at least three blocks
//! ended.
//!
//! ```text
//!   block      b-2         b-1          b
//!         |-----------|-----------|--------row
//!                    ▲           ▲
//!           boundary 1           boundary 0
//! ```
//!
//! Rows whose level is greater than a limit are late. [`LateRows`] begins with limit 0. If there are too many late
//! rows, it increases the limit. Then fewer rows are late, but more rows lie between the boundary and the current row.
//! If there are too many at the last limit, it keeps the first of them, and leaves the others to another pass.

use std::collections::VecDeque;

use super::by_begin::Row;

/// Rows of a block. They are few enough that the rows between boundary 0 and the current row stay in the caches.
pub(super) const BLOCK: usize = 1 << 12;

/// The largest number of late rows that are kept: 16 MiB for a table of states.
pub(super) const MAX_LATE: usize = 1 << 18;

/// The level of a row: how long its interval is in comparison with those around it. Also a limit: the greatest level of
/// rows that are not late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(u8);

impl Level {
    const LEAST: Level = Level(0);

    /// The level of rows that begin before all boundaries.
    const GREATEST: Level = Level(5);

    /// The levels that rows can have.
    pub(super) fn all() -> impl Iterator<Item = Level> {
        (Level::LEAST.0..=Level::GREATEST.0).map(Level)
    }

    fn next(self) -> Level {
        Level(self.0 + 1)
    }
}

/// Finds the level of each row, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// For each of the last blocks, the greatest end up to it; the newest block first. The current block is not
    /// included.
    ends: VecDeque<i64>,
    greatest_end: Option<i64>,
    /// The number of rows of the current block so far.
    rows: usize,
}

impl Lateness {
    /// The level of the next row.
    #[inline]
    pub(super) fn next_row(&mut self, begin: i64, end: i64) -> Level {
        if self.rows == BLOCK {
            self.end_block();
        }
        self.rows += 1;
        self.greatest_end = self.greatest_end.max(Some(end));
        let is_before = |limit: &Level| self.boundary(*limit).is_some_and(|boundary| begin < boundary);
        let level = Level::all().find(|limit| *limit == Level::GREATEST || !is_before(limit));
        level.unwrap_or(Level::GREATEST)
    }

    /// The following rows of this level, or of a lower one, do not begin before this tick.
    #[inline]
    pub(super) fn boundary(&self, limit: Level) -> Option<i64> {
        self.ends.get((1 << limit.0) - 1).copied()
    }

    fn end_block(&mut self) {
        self.rows = 0;
        self.ends.truncate((1 << (Level::GREATEST.0 - 1)) - 1);
        if let Some(end) = self.greatest_end {
            self.ends.push_front(end);
        }
    }
}

/// Late rows with their levels, sorted. Their number is bounded.
#[derive(Debug)]
pub(super) struct LateRows<R> {
    /// Rows of greater levels are late.
    limit: Level,
    /// The last one is taken next.
    rows: Vec<(Level, R)>,
    /// The first row of this pass.
    from: Option<R>,
    /// Rows from this one on are left to the next pass; `None` if no row is left.
    until: Option<R>,
    max: usize,
}

impl<R: Row> LateRows<R> {
    /// The state before the first pass. At most about `max` rows are kept.
    pub(super) fn new(max: usize) -> LateRows<R> {
        LateRows { limit: Level::LEAST, rows: Vec::new(), from: None, until: None, max: max.max(1) }
    }

    /// The greatest level of rows that are not late. It is final after the first pass.
    pub(super) fn limit(&self) -> Level {
        self.limit
    }

    /// The next row.
    #[inline]
    pub(super) fn first(&self) -> Option<&R> {
        self.rows.last().map(|(_, row)| row)
    }

    /// Takes the next row.
    pub(super) fn take(&mut self) -> Option<R> {
        self.rows.pop().map(|(_, row)| row)
    }

    /// Whether no row is left to another pass.
    pub(super) fn are_all_read(&self) -> bool {
        self.until.is_none()
    }

    /// Whether a row that is left to another pass may precede this one.
    #[inline]
    pub(super) fn may_precede(&self, row: &R) -> bool {
        self.until.as_ref().is_some_and(|until| until <= row)
    }

    /// Begins a pass for the rows that the previous pass left.
    pub(super) fn begin_next_pass(&mut self) {
        self.from = self.until.take();
    }

    /// Adds those of these rows that are late and belong to this pass. All have this level.
    pub(super) fn extend(&mut self, rows: impl Iterator<Item = R>, level: Level) {
        for row in rows {
            let is_left = self.until.as_ref().is_some_and(|until| row >= *until);
            let was_kept = self.from.as_ref().is_some_and(|from| row < *from);
            if level > self.limit && !is_left && !was_kept {
                self.rows.push((level, row));
            }
            if self.rows.len() >= 2 * self.max {
                self.make_room();
            }
        }
    }

    /// Ends a pass, and sorts its rows.
    pub(super) fn sort(&mut self) {
        if self.rows.len() > self.max {
            self.make_room();
        }
        self.rows.sort_unstable_by(|a, b| b.1.cmp(&a.1));
        self.rows.shrink_to_fit();
    }

    fn make_room(&mut self) {
        // Only the first pass can increase the limit: rows that are no longer late must be read by the pass over the
        // other rows, and a later pass would come too late for that.
        while self.from.is_none() && self.rows.len() > self.max && self.limit.next() < Level::GREATEST {
            self.limit = self.limit.next();
            self.rows.retain(|(level, _)| *level > self.limit);
        }
        if self.rows.len() <= self.max {
            return;
        }
        let (_, (_, until), _) = self.rows.select_nth_unstable_by(self.max, |a, b| a.1.cmp(&b.1));
        let until = until.clone();
        if self.rows.iter().any(|(_, row)| *row < until) {
            self.rows.retain(|(_, row)| *row < until);
            self.until = Some(until);
        } else {
            // All rows are equal, so none can be left to another pass: it could not distinguish them from the rows that
            // were kept.
            self.max = self.rows.len();
        }
    }
}
