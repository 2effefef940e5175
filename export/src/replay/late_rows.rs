//! The rows of a table that begin long before the rows around them.
//!
//! Rows are nearly sorted by their ends. Blocks of [`BLOCK`] rows are numbered in the order of the file, and boundary L of a
//! row in block `b` is the greatest end of a row up to block `b - 2^L`. The level of a row is the number of boundaries that it
//! begins before: a row of level 3 was open while at least four blocks of other rows ended.
//!
//! ```text
//!   block      b-2         b-1          b
//!         |-----------|-----------|--------row
//!                    ▲           ▲
//!           boundary 1           boundary 0
//! ```
//!
//! Rows whose level is greater than a limit are late. [`LateRows`] begins with limit 0; if there are too many late rows, it
//! goes on to the next, with fewer of them, but more rows between the boundary and the row that is read. If there are too
//! many at the last limit, it keeps the first of them, and leaves the others to another pass.

use std::collections::VecDeque;

use super::by_begin::Row;

/// Rows of a block: few enough that those between boundary 0 and the row that is read stay in the caches.
pub(super) const BLOCK: usize = 1 << 12;

/// How many late rows are kept: 16 MiB of a table of states.
pub(super) const MAX_LATE: usize = 1 << 18;

/// How long an interval is compared with those around it, or the greatest such level of a row that is not late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(u8);

impl Level {
    const LEAST: Level = Level(0);

    /// Of rows that begin before all boundaries.
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
    /// The greatest ends up to each of the last blocks, the newest first; without that of the block that is read.
    ends: VecDeque<i64>,
    greatest_end: Option<i64>,
    /// Rows of the block that is read.
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

    /// Rows of this level or a lesser one that are not read yet begin at this tick or after it.
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

/// Rows of which each has its level, sorted; their number is bounded.
#[derive(Debug)]
pub(super) struct LateRows<R> {
    /// Rows of greater levels are late.
    limit: Level,
    /// The last is the next that is taken.
    rows: Vec<(Level, R)>,
    /// Where the rows of this pass begin.
    from: Option<R>,
    /// Rows from this one on are left to the next pass; `None` if none is.
    until: Option<R>,
    max: usize,
}

impl<R: Row> LateRows<R> {
    /// Before the first pass. At most about `max` rows are kept.
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

    /// Begins a pass for the rows that the one before left.
    pub(super) fn begin_next_pass(&mut self) {
        self.from = self.until.take();
    }

    /// Adds rows of this level.
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

    /// Ends a pass.
    pub(super) fn sort(&mut self) {
        if self.rows.len() > self.max {
            self.make_room();
        }
        self.rows.sort_unstable_by(|a, b| b.1.cmp(&a.1));
        self.rows.shrink_to_fit();
    }

    fn make_room(&mut self) {
        // Another pass would not find the rows that a greater limit leaves to the main one: only the first can have it.
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
            // They are all alike, so none can be left: no order would tell them from those that were kept.
            self.max = self.rows.len();
        }
    }
}
