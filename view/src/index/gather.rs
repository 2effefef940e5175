//! Makes the arrays of a part of the index from runs, for one range of rows at a time.

use std::{iter::Peekable, ops::Range};

#[cfg(test)]
use super::partition::{Arrays, TrackSet};
use super::{
    partition::{BLOCK, MOST_SUMS, Majority, NOBODY, ROW, Values, further_blocks},
    run::{Piece, Run},
};

/// Arrays of rows, like [`Arrays`](super::partition::Arrays), but without the entry that ends the last row.
#[derive(Debug, Default)]
pub(crate) struct Owned {
    pub(crate) rows: Vec<u8>,
    pub(crate) lengths: Vec<u8>,
    pub(crate) values: Vec<u8>,
    pub(crate) long: Vec<u8>,
    pub(crate) begins: Vec<u8>,
    pub(crate) sums: Vec<u8>,
}

/// Rows that are gathered together, and the numbers of intervals and blocks that precede them in the part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) rows: Range<usize>,
    pub(crate) first_interval: usize,
    pub(crate) first_block: usize,
    pub(crate) intervals: usize,
    pub(crate) blocks: usize,
}

/// Divides the rows into stretches. Each has about `about` intervals, or is a single row. Returns at least one.
pub(crate) fn stretches(runs: &[Run], rows: usize, about: usize) -> Vec<Stretch> {
    let mut counts = vec![0_usize; rows];
    runs.iter().flat_map(Run::counts).for_each(|(row, count)| counts[row] += count);
    let (mut stretches, mut last) = (Vec::new(), Stretch::default());
    for (row, count) in counts.into_iter().enumerate() {
        if row > last.rows.start && last.intervals + count > about {
            let next = Stretch {
                rows: row..row,
                first_interval: last.first_interval + last.intervals,
                first_block: last.first_block + last.blocks,
                ..Stretch::default()
            };
            stretches.push(std::mem::replace(&mut last, next));
        }
        last.rows.end = row + 1;
        last.intervals += count;
        last.blocks += further_blocks(count);
    }
    stretches.push(last);
    stretches
}

/// The entry of [`Arrays::rows`](super::partition::Arrays::rows) that ends the last row of a part.
pub(crate) fn last_row(last: &Stretch) -> Vec<u8> {
    let mut row = Vec::with_capacity(ROW);
    write_row(&mut row, last.first_interval + last.intervals, last.first_block + last.blocks, 0);
    row
}

/// Gathers the rows of a stretch: for each row, its pieces in all runs, one after the other.
pub(crate) fn gather(runs: &[Run], stretch: &Stretch, values: Values) -> Owned {
    let mut pieces: Vec<Peekable<_>> =
        runs.iter().map(|run| run.pieces(stretch.rows.start).peekable()).collect();
    let mut owned = Owned {
        rows: Vec::with_capacity(ROW * stretch.rows.len()),
        lengths: Vec::with_capacity(4 * stretch.intervals),
        values: Vec::with_capacity(values.width() * stretch.intervals),
        long: Vec::new(),
        begins: Vec::with_capacity(8 * stretch.blocks),
        sums: Vec::with_capacity(8 * values.of_block() * stretch.blocks),
    };
    for row in stretch.rows.clone() {
        let intervals = stretch.first_interval + owned.lengths.len() / 4;
        let blocks = stretch.first_block + owned.begins.len() / 8;
        let mut line = Line { place: 0, at: 0, sums: [0; MOST_SUMS], majority: NO_MAJORITY };
        let mut start = None;
        for pieces in &mut pieces {
            let Some(piece) = pieces.next_if(|piece| piece.row == row) else { continue };
            if start.is_none() {
                (start, line.at) = (Some(piece.start), piece.start);
            }
            line.add(&piece, values, intervals, &mut owned);
        }
        write_row(&mut owned.rows, intervals, blocks, start.unwrap_or_default());
    }
    owned
}

const NO_MAJORITY: Majority = Majority { value: NOBODY, surplus: 0 };

/// A row that is being gathered.
struct Line {
    /// The number of intervals so far, and the end of the last one.
    place: usize,
    at: i64,
    sums: [u64; MOST_SUMS],
    majority: Majority,
}

impl Line {
    /// Adds a piece. `first` is the number of the row's first interval.
    fn add(&mut self, piece: &Piece<'_>, values: Values, first: usize, owned: &mut Owned) {
        owned.lengths.extend_from_slice(piece.lengths);
        owned.values.extend_from_slice(piece.values);
        for (place, length) in piece.long {
            owned.long.extend(((first + self.place) as u64 + u64::from(place - piece.first)).to_le_bytes());
            owned.long.extend(length.to_le_bytes());
        }
        let mut long = piece.long.iter();
        let lengths = piece.lengths.chunks_exact(4);
        for (length, value) in lengths.zip(piece.values.chunks_exact(values.width())) {
            if self.place > 0 && self.place.is_multiple_of(BLOCK) {
                self.end_block(values, owned);
            }
            let length = match length.try_into().map_or(0, u32::from_le_bytes) {
                u32::MAX => long.next().map_or(u64::from(u32::MAX), |(_, length)| *length),
                length => u64::from(length),
            };
            let value = match *value {
                [value] => u32::from(value),
                _ => value.try_into().map_or(0, u32::from_le_bytes),
            };
            if let Some(sum) = values.sum_of(value) {
                self.sums[sum] += length;
                if values == Values::Identities {
                    self.majority.add(value, length);
                }
            }
            self.at = self.at.saturating_add_unsigned(length);
            self.place += 1;
        }
    }

    fn end_block(&mut self, values: Values, owned: &mut Owned) {
        owned.begins.extend(self.at.to_le_bytes());
        self.sums.iter().take(values.sums()).for_each(|sum| owned.sums.extend(sum.to_le_bytes()));
        if values == Values::Identities {
            owned.sums.extend(u64::from(self.majority.value).to_le_bytes());
            owned.sums.extend(self.majority.surplus.to_le_bytes());
            self.majority = NO_MAJORITY;
        }
    }
}

fn write_row(rows: &mut Vec<u8>, interval: usize, block: usize, start: i64) {
    rows.extend((interval as u64).to_le_bytes());
    rows.extend((block as u64).to_le_bytes());
    rows.extend(start.to_le_bytes());
}

#[cfg(test)]
impl Owned {
    /// Makes one part of the rows of runs, in stretches of about `about` intervals.
    pub(crate) fn part(runs: &[Run], rows: usize, values: Values, about: usize) -> Owned {
        let (mut part, stretches) = (Owned::default(), stretches(runs, rows, about));
        for stretch in &stretches {
            let mut next = gather(runs, stretch, values);
            assert_eq!((next.lengths.len(), next.begins.len()), (4 * stretch.intervals, 8 * stretch.blocks));
            part.rows.append(&mut next.rows);
            part.lengths.append(&mut next.lengths);
            part.values.append(&mut next.values);
            part.long.append(&mut next.long);
            part.begins.append(&mut next.begins);
            part.sums.append(&mut next.sums);
        }
        part.rows.extend(last_row(stretches.last().unwrap()));
        part
    }

    /// The set.
    ///
    /// # Errors
    /// Like [`TrackSet::new`].
    pub(crate) fn set(&self, values: Values) -> Result<TrackSet<'_>, String> {
        let arrays = Arrays {
            rows: &self.rows,
            lengths: &self.lengths,
            values: &self.values,
            long: &self.long,
            begins: &self.begins,
            sums: &self.sums,
        };
        TrackSet::new(arrays, values)
    }
}
