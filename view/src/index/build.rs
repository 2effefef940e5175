//! Makes the arrays of a set of tracks from intervals that come row by row, or in any order of rows.

#[cfg(test)]
use super::partition::{Arrays, TrackSet};
use super::partition::{BLOCK, Majority, NOBODY, ROW, Values, further_blocks};

/// The arrays of a set, in memory.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) rows: Vec<u8>,
    pub(crate) lengths: Vec<u8>,
    pub(crate) values: Vec<u8>,
    pub(crate) long: Vec<u8>,
    pub(crate) begins: Vec<u8>,
    pub(crate) sums: Vec<u8>,
}

#[cfg(test)]
impl Owned {
    /// The set.
    ///
    /// # Errors
    /// As [`TrackSet::new`].
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

/// A set while its intervals come: those of a row in the order of time, rows in any order.
pub(crate) struct Assembly {
    values_are: Values,
    /// Where each row's next interval goes, and where that begins.
    rows: Vec<Filling>,
    lengths: Vec<u8>,
    values: Vec<u8>,
    long: Vec<(u64, u64)>,
}

#[derive(Clone, Copy)]
struct Filling {
    first: u64,
    next: u64,
    start: i64,
    end: i64,
}

impl Assembly {
    /// A set of rows with at most these numbers of intervals.
    pub(crate) fn new(counts: &[usize], values_are: Values) -> Assembly {
        let mut first = 0;
        let rows = counts.iter().map(|count| {
            let row = Filling { first, next: first, start: 0, end: 0 };
            first += *count as u64;
            row
        });
        let rows = rows.collect();
        let intervals = first as usize;
        Assembly {
            values_are,
            rows,
            lengths: vec![0; 4 * intervals],
            values: vec![0; values_are.width() * intervals],
            long: Vec::new(),
        }
    }

    /// Adds `[from, to)` to a row. It begins where the row's last one ends.
    pub(crate) fn push(&mut self, row: usize, from: i64, to: i64, value: u32) {
        let filling = &mut self.rows[row];
        if filling.next == filling.first {
            filling.start = from;
        }
        let (place, length) = (filling.next as usize, to.abs_diff(from));
        (filling.next, filling.end) = (filling.next + 1, to);
        let short = u32::try_from(length).unwrap_or(u32::MAX);
        self.lengths[4 * place..4 * place + 4].copy_from_slice(&short.to_le_bytes());
        if short == u32::MAX {
            self.long.push((place as u64, length));
        }
        let width = self.values_are.width();
        self.values[width * place..width * (place + 1)].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    /// The set. Places that rows did not use are closed.
    pub(crate) fn finish(mut self) -> Owned {
        self.long.sort_unstable();
        let width = self.values_are.width();
        let mut owned = Owned {
            rows: Vec::with_capacity(ROW * (self.rows.len() + 1)),
            lengths: Vec::new(),
            values: Vec::new(),
            long: Vec::new(),
            begins: Vec::new(),
            sums: Vec::new(),
        };
        let (mut intervals, mut blocks, mut long) = (0_usize, 0_usize, self.long.iter().peekable());
        for row in &self.rows {
            write_row(&mut owned.rows, intervals, blocks, row.start);
            let (first, count) = (row.first as usize, (row.next - row.first) as usize);
            let mut at = row.start;
            let mut sums = vec![0_u64; self.values_are.sums()];
            let mut majority = Majority { value: NOBODY, surplus: 0 };
            for place in 0..count {
                if place > 0 && place.is_multiple_of(BLOCK) {
                    owned.begins.extend(at.to_le_bytes());
                    sums.iter().for_each(|sum| owned.sums.extend(sum.to_le_bytes()));
                    if self.values_are == Values::Identities {
                        owned.sums.extend(u64::from(majority.value).to_le_bytes());
                        owned.sums.extend(majority.surplus.to_le_bytes());
                        majority = Majority { value: NOBODY, surplus: 0 };
                    }
                }
                let from = first + place;
                let mut length =
                    self.lengths[4 * from..4 * from + 4].try_into().map_or(0, u32::from_le_bytes).into();
                if length == u64::from(u32::MAX)
                    && let Some((_, whole)) = long.next()
                {
                    length = *whole;
                    owned.long.extend(((intervals + place) as u64).to_le_bytes());
                    owned.long.extend(length.to_le_bytes());
                }
                let mut value = [0; 4];
                value[..width].copy_from_slice(&self.values[width * from..width * (from + 1)]);
                let value = u32::from_le_bytes(value);
                if let Some(sum) = self.values_are.sum_of(value) {
                    sums[sum] += length;
                    majority.add(value, length);
                }
                at = at.saturating_add_unsigned(length);
            }
            // In place: a row never moves towards the end.
            self.lengths.copy_within(4 * first..4 * (first + count), 4 * intervals);
            self.values.copy_within(width * first..width * (first + count), width * intervals);
            intervals += count;
            blocks += further_blocks(count);
        }
        write_row(&mut owned.rows, intervals, blocks, 0);
        self.lengths.truncate(4 * intervals);
        self.values.truncate(width * intervals);
        (owned.lengths, owned.values) = (self.lengths, self.values);
        owned
    }
}

fn write_row(rows: &mut Vec<u8>, interval: usize, block: usize, start: i64) {
    rows.extend((interval as u64).to_le_bytes());
    rows.extend((block as u64).to_le_bytes());
    rows.extend(start.to_le_bytes());
}
