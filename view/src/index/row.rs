//! A row through all parts of the index: one partition of time, with the sums for any window.

use super::partition::{BLOCK, MOST_SUMS, Majority, Stay, TrackSet, Values};

/// A row of a track.
pub(crate) struct Row<'a> {
    values: Values,
    /// The pieces of all parts in which it has an interval. Each begins where the previous one ends.
    pieces: Vec<Piece<'a>>,
}

/// A row in one part.
struct Piece<'a> {
    set: TrackSet<'a>,
    first: usize,
    end: usize,
    first_block: usize,
    /// The number of blocks without the first one.
    blocks: usize,
    start: i64,
}

impl<'a> Row<'a> {
    /// A row of sets that follow each other in time, and have the same kind of values.
    pub(crate) fn new(sets: impl Iterator<Item = TrackSet<'a>>, values: Values, row: usize) -> Row<'a> {
        let pieces = sets.filter_map(|set| {
            let (first, end) = (set.first_interval(row), set.first_interval(row + 1));
            (first < end).then(|| {
                let first_block = set.first_block(row);
                let blocks = set.first_block(row + 1) - first_block;
                Piece { set, first, end, first_block, blocks, start: set.start(row) }
            })
        });
        Row { values, pieces: pieces.collect() }
    }

    /// The kind of its values.
    pub(crate) fn values(&self) -> Values {
        self.values
    }

    /// A position in the row, initially at its start.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        let mut cursor = Cursor {
            values: self.values,
            pieces: &self.pieces,
            at: 0,
            next: 0,
            from: 0,
            sums: [0; MOST_SUMS],
            before: [0; MOST_SUMS],
        };
        cursor.enter(0);
        cursor
    }

    /// The intervals that overlap `[from, to)`, not truncated. At most `most` intervals, and whether there are more.
    pub(crate) fn stays(&self, from: i64, to: i64, most: usize) -> (Vec<Stay>, bool) {
        let mut cursor = self.cursor();
        cursor.seek(from);
        let mut stays = Vec::new();
        while let Some(stay) = cursor.current().filter(|stay| stay.from < to) {
            if stay.to > from {
                if stays.len() == most {
                    return (stays, true);
                }
                stays.push(stay);
            }
            cursor.step();
        }
        (stays, false)
    }

    /// The approximate number of intervals that overlap `[from, to)`: whole blocks are counted.
    pub(crate) fn about(&self, from: i64, to: i64) -> usize {
        let mut intervals = 0;
        for (place, piece) in self.pieces.iter().enumerate() {
            let end = self.pieces.get(place + 1).map_or(i64::MAX, |next| next.start);
            if piece.start < to && end > from {
                let before = piece.block_from(0, from) * BLOCK;
                intervals += (piece.block_from(0, to) * BLOCK + BLOCK).min(piece.end - piece.first) - before;
            }
        }
        if intervals > 2 * BLOCK { intervals } else { self.stays(from, to, 2 * BLOCK).0.len() }
    }

    /// The sums over `[from, to)`.
    pub(crate) fn sums(&self, from: i64, to: i64) -> [u64; MOST_SUMS] {
        let mut cursor = self.cursor();
        let before = cursor.sums_at(from);
        let mut sums = cursor.sums_at(to.max(from));
        for (sum, before) in sums.iter_mut().zip(before) {
            *sum -= before;
        }
        sums
    }
}

impl Piece<'_> {
    fn begin(&self, block: usize) -> i64 {
        self.set.begin(self.first_block + block - 1)
    }

    /// The last block, from `block` on, that begins at or before `tick`; 0 is the first block. The search doubles its
    /// step, and then halves it.
    fn block_from(&self, block: usize, tick: i64) -> usize {
        let (mut low, mut step) = (block, 1);
        while low + step <= self.blocks && self.begin(low + step) <= tick {
            low += step;
            step *= 2;
        }
        let mut high = (low + step).min(self.blocks + 1);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if self.begin(middle) <= tick { low = middle } else { high = middle }
        }
        low
    }

    /// Adds the sums before a block to `sums`.
    fn add_before(&self, block: usize, sums: &mut [u64; MOST_SUMS]) {
        if block > 0 {
            let entry = self.first_block + block - 1;
            for (place, sum) in sums.iter_mut().take(self.set.values().sums()).enumerate() {
                *sum += self.set.number(entry, place);
            }
        }
    }

    /// Adds its sums to `sums`.
    fn add_all(&self, sums: &mut [u64; MOST_SUMS]) {
        self.add_before(self.blocks, sums);
        for interval in self.first + self.blocks * BLOCK..self.end {
            let (length, value) = self.set.interval(interval);
            if let Some(sum) = self.set.values().sum_of(value) {
                sums[sum] += length;
            }
        }
    }
}

/// A position in a row that moves forward at little cost.
pub(crate) struct Cursor<'r> {
    values: Values,
    pieces: &'r [Piece<'r>],
    /// The current piece.
    at: usize,
    /// The current interval, and the tick at which it begins.
    next: usize,
    from: i64,
    /// The row's sums before `from`, and before the current piece.
    sums: [u64; MOST_SUMS],
    before: [u64; MOST_SUMS],
}

impl Cursor<'_> {
    /// Moves to the beginning of a piece. `sums` must be the sums before it.
    fn enter(&mut self, at: usize) {
        if let Some(piece) = self.pieces.get(at) {
            (self.at, self.next, self.from, self.before) = (at, piece.first, piece.start, self.sums);
        }
    }

    /// The current interval; `None` at the end of the row.
    pub(crate) fn current(&self) -> Option<Stay> {
        let piece = self.pieces.get(self.at).filter(|piece| self.next < piece.end)?;
        let (length, value) = piece.set.interval(self.next);
        Some(Stay { from: self.from, to: self.from.saturating_add_unsigned(length), value })
    }

    /// Moves to the next interval.
    pub(crate) fn step(&mut self) {
        let Some(stay) = self.current() else { return };
        if let Some(sum) = self.values.sum_of(stay.value) {
            self.sums[sum] += stay.to.abs_diff(stay.from);
        }
        (self.from, self.next) = (stay.to, self.next + 1);
        if self.next == self.pieces[self.at].end {
            self.enter(self.at + 1);
        }
    }

    /// Moves forward to the interval that contains `tick`. If `tick` is before the row, it stays at the first interval.
    pub(crate) fn seek(&mut self, tick: i64) {
        self.skip_pieces(tick);
        self.skip_blocks(tick);
        while self.current().is_some_and(|stay| stay.to <= tick) {
            self.step();
        }
    }

    /// The sums from the start of the row to `tick`. Ticks must not decrease from call to call.
    pub(crate) fn sums_at(&mut self, tick: i64) -> [u64; MOST_SUMS] {
        self.seek(tick);
        let mut sums = self.sums;
        if let Some(stay) = self.current().filter(|stay| stay.from < tick)
            && let Some(sum) = self.values.sum_of(stay.value)
        {
            sums[sum] += tick.abs_diff(stay.from);
        }
        sums
    }

    fn skip_pieces(&mut self, tick: i64) {
        while self.pieces.get(self.at + 1).is_some_and(|next| next.start <= tick) {
            self.sums = self.before;
            self.pieces[self.at].add_all(&mut self.sums);
            self.enter(self.at + 1);
        }
    }

    fn skip_blocks(&mut self, tick: i64) {
        let Some(piece) = self.pieces.get(self.at) else { return };
        let block = (self.next - piece.first) / BLOCK;
        let found = piece.block_from(block.min(piece.blocks), tick);
        if found > block {
            (self.next, self.from) = (piece.first + found * BLOCK, piece.begin(found));
            self.sums = self.before;
            piece.add_before(found, &mut self.sums);
        }
    }

    /// Moves to the next block, if it is at the beginning of a block that ends at or before `tick`. Returns the
    /// occupied time of the skipped block, and its majority. Only for identities.
    pub(crate) fn skip_block(&mut self, tick: i64) -> Option<(u64, Majority)> {
        let piece = self.pieces.get(self.at)?;
        let place = self.next - piece.first;
        let next = place / BLOCK + 1;
        if !place.is_multiple_of(BLOCK) || next > piece.blocks || piece.begin(next) > tick {
            return None;
        }
        let number = |at| piece.set.number(piece.first_block + next - 1, at);
        let sum = self.before[0] + number(0);
        let busy = sum.saturating_sub(self.sums[0]);
        let majority = Majority { value: number(1) as u32, surplus: number(2) };
        (self.next, self.from, self.sums[0]) = (piece.first + next * BLOCK, piece.begin(next), sum);
        Some((busy, majority))
    }
}
