//! Tracks in memory that can be asked for the exact time in each value of any window: partitions with prefix sums.
//!
//! A row of a [`TrackSet`] is a sequence of intervals without holes, from its start to its end, each with a value: a state,
//! or who was there. An interval is its length, 32 bits, and its value. Every 64 intervals of a row are a block; of every
//! block but the first of a row the set has the tick at which it begins and a [`Summary`] of what is before or in it:
//!
//! ```text
//!   row 7     start
//!   interval  |0 1 2 3 … 63|64 … 127|128 …    |
//!   blocks                 ^1       ^2           first tick; prefix sums of the row up to it
//! ```
//!
//! So the time in a state in `[a, b)` is `sums(b) - sums(a)`, and each costs a binary search among blocks and at most 63
//! additions: exact at any zoom. Lengths of 2^32 ticks and more are listed apart, by interval.
//!
//! A long trace has several sets of the same rows, one of each part of its time: [`Row`](super::row::Row) is a row of all.
//!
//! The arrays are little-endian bytes, of a mapped file or of a `Vec`: nothing is decoded when a set is opened.

/// Intervals in a block.
pub(crate) const BLOCK: usize = 64;

/// The bytes of a set's arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrays<'a> {
    /// Of each row: first interval (u64), first block (u64), start (i64); and one row more that ends the last one.
    pub(crate) rows: &'a [u8],
    /// u32 of each interval: the lower half of its length.
    pub(crate) lengths: &'a [u8],
    /// 1 or 4 bytes of each interval.
    pub(crate) values: &'a [u8],
    /// Of each interval of 2^32 ticks and more: its number (u64), its length (u64).
    pub(crate) long: &'a [u8],
    /// i64 of each block but the first ones: the tick at which it begins.
    pub(crate) begins: &'a [u8],
    /// Of the same blocks: prefix sums, u64 of each value that is summed. Of identities also the [`Majority`] of the block
    /// before: who (u64), surplus (u64).
    pub(crate) sums: &'a [u8],
}

/// Bytes of a row in [`Arrays::rows`].
pub(crate) const ROW: usize = 24;

/// Bytes of an entry of [`Arrays::long`].
pub(crate) const LONG: usize = 16;

/// What a set's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// One of this number of states: a byte. There is a sum for each state.
    States(usize),
    /// The occupant's row: 32 bits, [`NOBODY`] for none. The sum is the occupied time.
    Identities,
}

/// The value of an interval without an occupant.
pub(crate) const NOBODY: u32 = u32::MAX;

impl Values {
    /// Bytes of a value.
    pub(crate) fn width(self) -> usize {
        if let Values::States(_) = self { 1 } else { 4 }
    }

    /// Sums that are kept.
    pub(crate) fn sums(self) -> usize {
        if let Values::States(states) = self { states } else { 1 }
    }

    /// Numbers that are kept of a block: the sums, and the majority of identities.
    pub(crate) fn of_block(self) -> usize {
        self.sums() + if self == Values::Identities { 2 } else { 0 }
    }

    /// The sum that an interval of this value counts in.
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
    /// When their lengths do not fit together, or a row ends before it begins: what is read later is within them.
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

    /// What its values are.
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

    /// The interval of this number.
    pub(super) fn interval(&self, interval: usize) -> (u64, u32) {
        (self.length(interval), self.value(interval))
    }

    /// The tick at which a block begins: one besides the first one of its row, by its number among these.
    pub(super) fn begin(&self, block: usize) -> i64 {
        u64_at(self.arrays.begins, block) as i64
    }

    /// A number of such a block, of [`Values::of_block`].
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

/// The most sums of a set: there are no more states.
pub(crate) const MOST_SUMS: usize = 16;

/// Blocks of a row besides its first one.
pub(crate) fn further_blocks(intervals: usize) -> usize {
    intervals.saturating_sub(1) / BLOCK
}

/// Who was there most, of intervals given one after another: the vote of Boyer and Moore, weighted by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Majority {
    /// Who, if `surplus` is not 0.
    pub(crate) value: u32,
    /// His time is at least this, and what is not this is shared evenly with others.
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
