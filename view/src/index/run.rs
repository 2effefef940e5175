//! Intervals of a few row groups, sorted by row. Parts of the index are gathered from them.

use super::partition::{NOBODY, Values};

/// The end of a row that has no interval yet.
pub(crate) const NONE: i64 = i64::MIN;

/// The value of a gap between two states.
pub(crate) const NO_STATE: u32 = u8::MAX as u32;

/// An interval of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) row: u32,
    pub(crate) value: u32,
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// Intervals of rows, each row's intervals one after another. Gaps are filled, and overlaps are cut.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// By row.
    rows: Vec<OfRow>,
    lengths: Vec<u8>,
    values: Vec<u8>,
    /// Index and length of each interval that has `u32::MAX` or more ticks.
    long: Vec<(u32, u64)>,
}

/// A row of a run. Its intervals are those from `first` to the next row's `first`.
#[derive(Clone, Copy, Debug)]
struct OfRow {
    row: u32,
    first: u32,
    start: i64,
}

/// The intervals of one row of a run.
pub(crate) struct Piece<'r> {
    pub(crate) row: usize,
    pub(crate) start: i64,
    /// u32 for each interval.
    pub(crate) lengths: &'r [u8],
    /// 1 or 4 bytes for each interval.
    pub(crate) values: &'r [u8],
    /// Like in [`Run`]: its indices minus `first` are indices in this piece.
    pub(crate) long: &'r [(u32, u64)],
    pub(crate) first: u32,
}

/// The state of a row while a run is made.
#[derive(Clone, Copy)]
struct Filling {
    row: u32,
    /// At first the number of its intervals; then the index for its next interval.
    place: u32,
    /// At first the tick at which the row begins in this run; then the end of its last interval.
    tick: i64,
}

/// Memory for making runs. A run has only few of millions of rows: each other row costs 4 bytes.
#[derive(Default)]
pub(crate) struct Scratch {
    /// For each row, the index of its filling, or `UNTOUCHED` if it has none. Between two runs, no row has one.
    places: Vec<u32>,
}

const UNTOUCHED: u32 = u32::MAX;

impl Run {
    /// Sorts the intervals by row. The intervals of each row must be in the order of their ends. `ends` has the end of
    /// each row before these intervals. `added` is called with the part of each interval that is added; it is not
    /// called if the interval is empty, or does not extend beyond the end of its row.
    pub(crate) fn new(
        intervals: &mut [Interval],
        ends: &mut [i64],
        values_are: Values,
        scratch: &mut Scratch,
        mut added: impl FnMut(&Interval),
    ) -> Run {
        let places = &mut scratch.places;
        places.resize(ends.len(), UNTOUCHED);
        let mut fillings: Vec<Filling> = Vec::new();
        for interval in intervals.iter_mut() {
            let row = interval.row as usize;
            let (end, place) = (&mut ends[row], &mut places[row]);
            let begin = interval.from.max(*end);
            if interval.to <= begin {
                interval.to = interval.from;
                continue;
            }
            let hole_from = if *end == NONE { begin } else { *end };
            if *place == UNTOUCHED {
                *place = fillings.len() as u32;
                fillings.push(Filling { row: interval.row, place: 0, tick: hole_from });
            }
            fillings[*place as usize].place += 1 + u32::from(hole_from < begin);
            (interval.from, *end) = (begin, interval.to);
            added(interval);
        }
        fillings.sort_unstable_by_key(|filling| filling.row);
        let mut first = 0;
        let mut run = Run { rows: Vec::with_capacity(fillings.len()), ..Run::default() };
        for (place, Filling { row, place: next, tick }) in fillings.iter_mut().enumerate() {
            places[*row as usize] = place as u32;
            run.rows.push(OfRow { row: *row, first, start: *tick });
            first += std::mem::replace(next, first);
        }
        let width = values_are.width();
        run.lengths = vec![0; 4 * first as usize];
        run.values = vec![0; width * first as usize];
        let nothing = if values_are == Values::Identities { NOBODY } else { NO_STATE };
        for Interval { row, value, from, to } in intervals.iter().copied().filter(|i| i.to > i.from) {
            let Filling { place, tick, .. } = &mut fillings[places[row as usize] as usize];
            if *tick < from {
                run.put(*place, width, from.abs_diff(*tick), nothing);
                *place += 1;
            }
            run.put(*place, width, to.abs_diff(from), value);
            (*place, *tick) = (*place + 1, to);
        }
        fillings.iter().for_each(|filling| places[filling.row as usize] = UNTOUCHED);
        run.long.sort_unstable();
        run
    }

    fn put(&mut self, place: u32, width: usize, length: u64, value: u32) {
        let short = u32::try_from(length).unwrap_or(u32::MAX);
        if short == u32::MAX {
            self.long.push((place, length));
        }
        let place = place as usize;
        self.lengths[4 * place..4 * place + 4].copy_from_slice(&short.to_le_bytes());
        match width {
            1 => self.values[place] = value as u8,
            _ => self.values[4 * place..4 * place + 4].copy_from_slice(&value.to_le_bytes()),
        }
    }

    /// The number of its intervals.
    pub(crate) fn intervals(&self) -> usize {
        self.lengths.len() / 4
    }

    /// The pieces of its rows from `first_row` on.
    pub(crate) fn pieces(&self, first_row: usize) -> impl Iterator<Item = Piece<'_>> {
        let begin = self.rows.partition_point(|of| (of.row as usize) < first_row);
        (begin..self.rows.len()).map(|place| self.piece(place))
    }

    /// Its rows, with the number of intervals of each.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.rows.len()).map(|place| {
            let OfRow { row, first, .. } = self.rows[place];
            (row as usize, self.first_of(place + 1) - first as usize)
        })
    }

    fn first_of(&self, place: usize) -> usize {
        self.rows.get(place).map_or(self.intervals(), |of| of.first as usize)
    }

    fn piece(&self, place: usize) -> Piece<'_> {
        let OfRow { row, first, start } = self.rows[place];
        let (begin, end, intervals) = (first as usize, self.first_of(place + 1), self.intervals());
        let width = self.values.len().checked_div(intervals).unwrap_or_default();
        let long = |place: usize| self.long.partition_point(|(at, _)| (*at as usize) < place);
        Piece {
            row: row as usize,
            start,
            lengths: &self.lengths[4 * begin..4 * end],
            values: &self.values[width * begin..width * end],
            long: if self.long.is_empty() { &[] } else { &self.long[long(begin)..long(end)] },
            first,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Row, start, lengths, values.
    fn rows_of(run: &Run) -> Vec<(usize, i64, Vec<u64>, Vec<u8>)> {
        let of = |piece: Piece<'_>| {
            let mut long = piece.long.iter();
            let lengths = piece.lengths.chunks_exact(4).map(|length| {
                match u32::from_le_bytes(length.try_into().unwrap()) {
                    u32::MAX => long.next().unwrap().1,
                    length => length.into(),
                }
            });
            (piece.row, piece.start, lengths.collect(), piece.values.to_vec())
        };
        run.pieces(0).map(of).collect()
    }

    fn run_of(
        intervals: &[(u32, i64, i64, u32)],
        ends: &mut [i64],
        scratch: &mut Scratch,
    ) -> (Run, Vec<i64>) {
        let interval = |(row, from, to, value): &(u32, i64, i64, u32)| Interval {
            row: *row,
            from: *from,
            to: *to,
            value: *value,
        };
        let (mut intervals, mut added): (Vec<Interval>, _) =
            (intervals.iter().map(interval).collect(), vec![]);
        let run = Run::new(&mut intervals, ends, Values::States(9), scratch, |interval| {
            added.push(interval.to - interval.from);
        });
        (run, added)
    }

    // row 3  |--1--|    |--2--|        hole between the two
    //               |------3-----|     begins inside of 2: cut
    //            |-4-|                 wholly before the end: nothing
    #[test]
    fn holes_are_filled_and_overlaps_are_cut() {
        let (mut ends, mut scratch) = (vec![NONE; 4], Scratch::default());
        let intervals = [
            (3, 10, 20, 1),
            (3, 30, 40, 2),
            (3, 35, 50, 3),
            (3, 45, 48, 4),
            (3, 50, 50, 5),
            (1, 5, 6, 6),
            (3, 50, 51, 7),
            (0, 9, 8, 8),
        ];
        let (run, added) = run_of(&intervals, &mut ends, &mut scratch);
        let none = NO_STATE as u8;
        let expected =
            vec![(1, 5, vec![1], vec![6]), (3, 10, vec![10, 10, 10, 10, 1], vec![1, none, 2, 3, 7])];
        assert_eq!(rows_of(&run), expected);
        assert_eq!((added, &ends), (vec![10, 10, 10, 1, 1], &vec![NONE, 6, NONE, 51]));
        // The next run begins at the end of this one, even if there is a gap between them.
        let long = 60 + (1_i64 << 33);
        let (run, _) = run_of(&[(3, 55, 60, 1), (1, 2, 8, 2), (3, 60, long, 3)], &mut ends, &mut scratch);
        let expected = vec![(1, 6, vec![2], vec![2]), (3, 51, vec![4, 5, 1 << 33], vec![none, 1, 3])];
        assert_eq!(rows_of(&run), expected);
    }

    proptest! {
        // Row groups are decoded in parallel. The end of each row before a row group follows from the ends alone.
        #[test]
        fn runs_have_what_one_interval_after_the_other_gives(
            intervals in prop::collection::vec((0_u32..4, 0_i64..300, -5_i64..60, 0_u32..9), 0..120),
            cuts in prop::collection::vec(0_usize..120, 0..5),
        ) {
            let mut intervals: Vec<Interval> = intervals
                .into_iter()
                .map(|(row, from, length, value)| Interval { row, from, to: from + length, value })
                .collect();
            intervals.sort_by_key(|interval| interval.to);
            let mut expected: Vec<Vec<(i64, i64, u8)>> = vec![Vec::new(); 4];
            for Interval { row, from, to, value } in &intervals {
                let row = &mut expected[*row as usize];
                let end = row.last().map(|(_, end, _)| *end);
                let from = end.map_or(*from, |end| end.max(*from));
                if *to > from {
                    row.extend(end.filter(|end| *end < from).map(|end| (end, from, NO_STATE as u8)));
                    row.push((from, *to, *value as u8));
                }
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(intervals.len())).collect();
            cuts.sort_unstable();
            cuts.push(intervals.len());
            let (mut before, mut begin, mut scratch) = (vec![NONE; 4], 0, Scratch::default());
            let mut found: Vec<Vec<(i64, i64, u8)>> = vec![Vec::new(); 4];
            for end in cuts {
                let part = &mut intervals[begin..end];
                let mut ends = before.clone();
                for interval in part.iter().filter(|interval| interval.to > interval.from) {
                    before[interval.row as usize] = before[interval.row as usize].max(interval.to);
                }
                let run = Run::new(part, &mut ends, Values::States(9), &mut scratch, |_| {});
                prop_assert_eq!(&ends, &before);
                for (row, mut at, lengths, values) in rows_of(&run) {
                    for (length, value) in lengths.into_iter().zip(values) {
                        found[row].push((at, at + length as i64, value));
                        at += length as i64;
                    }
                }
                begin = end;
            }
            prop_assert_eq!(found, expected);
        }
    }
}
