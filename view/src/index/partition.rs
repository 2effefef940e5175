//! Tracks in memory, as partitions of time with prefix sums: they give the exact time in each value for any window.
//!
//! A row of a [`TrackSet`] is a sequence of intervals without gaps, from the row's start to its end. Each has a value:
//! a state, or the identity of an occupant. An interval is stored as its length, 32 bits, and its value. Every 64
//! intervals of a row are a block. For every block except the first of a row, the set stores the tick at which it
//! begins, prefix sums of the intervals before it and, for identities, the [`Majority`] of the previous block:
//!
//! ```text
//!   row 7     start
//!   interval  |0 1 2 3 … 63|64 … 127|128 …    |
//!   blocks                 ^1       ^2           first tick; prefix sums of the row up to it
//! ```
//!
//! So the time in a state in `[a, b)` is `sums(b) - sums(a)`. Each of the two costs a binary search among blocks and at
//! most 63 additions, and it is exact at any zoom. Lengths of 2^32 - 1 ticks and more are in a separate list, sorted by
//! interval.
//!
//! A long trace has several sets of the same rows, one for each part of its time. [`Row`](super::row::Row) is a row
//! through all sets.
//!
//! The arrays are little-endian bytes of a mapped file or of a `Vec`. Nothing is decoded when a set is opened.

/// Intervals in a block.
pub(crate) const BLOCK: usize = 64;

/// The bytes of a set's arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrays<'a> {
    /// For each row: first interval (u64), first block (u64), start (i64). One more entry ends the last row.
    pub(crate) rows: &'a [u8],
    /// For each interval, a u32: its length, or `u32::MAX` if the length is in `long`.
    pub(crate) lengths: &'a [u8],
    /// For each interval, 1 or 4 bytes.
    pub(crate) values: &'a [u8],
    /// For each long interval: its number (u64), its length (u64).
    pub(crate) long: &'a [u8],
    /// For each block except the first one of a row, an i64: the tick at which it begins.
    pub(crate) begins: &'a [u8],
    /// For the same blocks: the prefix sum (u64) of each value that is summed. For identities also the [`Majority`] of
    /// the previous block: value (u64), surplus (u64).
    pub(crate) sums: &'a [u8],
}

/// Bytes of a row in [`Arrays::rows`].
pub(crate) const ROW: usize = 24;

/// Bytes of an entry of [`Arrays::long`].
pub(crate) const LONG: usize = 16;

/// The kind of a set's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// One of this number of states, in a byte. There is a sum for each state.
    States(usize),
    /// The row of the occupant, in 32 bits; [`NOBODY`] if there is none. The only sum is the occupied time.
    Identities,
}

/// The value of an interval without an occupant.
pub(crate) const NOBODY: u32 = u32::MAX;

impl Values {
    /// Bytes of a value.
    pub(crate) fn width(self) -> usize {
        if let Values::States(_) = self { 1 } else { 4 }
    }

    /// The number of sums that are stored for a block.
    pub(crate) fn sums(self) -> usize {
        if let Values::States(states) = self { states } else { 1 }
    }

    /// The number of integers that are stored for a block: the sums, and the majority of identities.
    pub(crate) fn of_block(self) -> usize {
        self.sums() + if self == Values::Identities { 2 } else { 0 }
    }

    /// The sum to which an interval of this value adds.
    pub(crate) fn sum_of(self, value: u32) -> Option<usize> {
        match self {
            Values::States(states) => (value as usize) < states,
            Values::Identities => value != NOBODY,
        }
        .then_some(if let Values::States(_) = self { value as usize } else { 0 })
    }
}

/// Rows of one kind of track.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrackSet<'a> {
    arrays: Arrays<'a>,
    values: Values,
}

/// An interval of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) value: u32,
}

fn u32_at(bytes: &[u8], place: usize) -> u32 {
    bytes[4 * place..4 * place + 4].try_into().map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], place: usize) -> u64 {
    bytes[8 * place..8 * place + 8].try_into().map_or(0, u64::from_le_bytes)
}

impl<'a> TrackSet<'a> {
    /// A set of these arrays.
    ///
    /// # Errors
    /// If the arrays' lengths are inconsistent, or a row ends before it begins. So later reads are within the arrays.
    pub(crate) fn new(arrays: Arrays<'a>, values: Values) -> Result<TrackSet<'a>, String> {
        let set = TrackSet { arrays, values };
        let expect = |what: &str, holds: bool| match holds {
            true => Ok(()),
            false => Err(format!("the index does not fit together: {what}")),
        };
        expect("rows", arrays.rows.len() >= ROW && arrays.rows.len().is_multiple_of(ROW))?;
        let (intervals, blocks) = (arrays.lengths.len() / 4, arrays.begins.len() / 8);
        expect("values", arrays.values.len() == intervals * values.width())?;
        expect("sums", arrays.sums.len() == blocks * 8 * values.of_block())?;
        expect("long intervals", arrays.long.len().is_multiple_of(LONG))?;
        let (mut interval, mut block) = (0, 0);
        for row in 0..=set.rows() {
            let (next_interval, next_block) = (set.first_interval(row), set.first_block(row));
            expect("intervals of rows", next_interval >= interval && next_interval <= intervals)?;
            if row > 0 {
                expect("blocks of rows", next_block == block + further_blocks(next_interval - interval))?;
            }
            (interval, block) = (next_interval, next_block);
        }
        expect("all intervals are of rows", interval == intervals && block == blocks)?;
        Ok(set)
    }

    /// A set of arrays that [`new`](Self::new) has checked before.
    pub(crate) fn of_checked(arrays: Arrays<'a>, values: Values) -> TrackSet<'a> {
        TrackSet { arrays, values }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.arrays.rows.len() / ROW - 1
    }

    /// The kind of its values.
    pub(crate) fn values(&self) -> Values {
        self.values
    }

    pub(super) fn first_interval(&self, row: usize) -> usize {
        u64_at(self.arrays.rows, 3 * row) as usize
    }

    pub(super) fn first_block(&self, row: usize) -> usize {
        u64_at(self.arrays.rows, 3 * row + 1) as usize
    }

    /// The tick at which a row begins.
    pub(super) fn start(&self, row: usize) -> i64 {
        u64_at(self.arrays.rows, 3 * row + 2) as i64
    }

    /// The interval with this number.
    pub(super) fn interval(&self, interval: usize) -> (u64, u32) {
        (self.length(interval), self.value(interval))
    }

    /// The tick at which a block begins. The first blocks of rows are not numbered.
    pub(super) fn begin(&self, block: usize) -> i64 {
        u64_at(self.arrays.begins, block) as i64
    }

    /// An integer that is stored for such a block, by its index among [`Values::of_block`].
    pub(super) fn number(&self, block: usize, place: usize) -> u64 {
        u64_at(self.arrays.sums, block * self.values.of_block() + place)
    }

    fn value(&self, interval: usize) -> u32 {
        match self.values {
            Values::States(_) => u32::from(self.arrays.values[interval]),
            Values::Identities => u32_at(self.arrays.values, interval),
        }
    }

    fn length(&self, interval: usize) -> u64 {
        match u32_at(self.arrays.lengths, interval) {
            u32::MAX => self.long_length(interval),
            length => u64::from(length),
        }
    }

    fn long_length(&self, interval: usize) -> u64 {
        let entries = self.arrays.long.len() / LONG;
        let (mut low, mut high) = (0, entries);
        while low < high {
            let middle = low.midpoint(high);
            if (u64_at(self.arrays.long, 2 * middle) as usize) < interval {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let is_it = low < entries && u64_at(self.arrays.long, 2 * low) as usize == interval;
        if is_it { u64_at(self.arrays.long, 2 * low + 1) } else { u64::from(u32::MAX) }
    }
}

/// The largest number of sums of a set: there are no more states.
pub(crate) const MOST_SUMS: usize = 16;

/// The number of a row's blocks without its first one.
pub(crate) fn further_blocks(intervals: usize) -> usize {
    intervals.saturating_sub(1) / BLOCK
}

/// The occupant with the most time among intervals that are given one after another. It is the majority vote of Boyer
/// and Moore, weighted by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Majority {
    /// The occupant; valid if `surplus` is not 0.
    pub(crate) value: u32,
    /// The occupant's time is at least this. Of the remaining time, it has at most half.
    pub(crate) surplus: u64,
}

impl Majority {
    /// Adds a time of `value`.
    pub(crate) fn add(&mut self, value: u32, time: u64) {
        if value == self.value {
            self.surplus += time;
        } else if self.surplus >= time {
            self.surplus -= time;
        } else {
            *self = Majority { value, surplus: time - self.surplus };
        }
    }
}
