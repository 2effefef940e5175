//! Combines the intervals of one key. They have to come sorted by start; with equal starts the longest first.

use super::operation::Operation;

/// From one tick to a later one, which is not part of it. If both are the same, it is an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Span {
    fn is_instant(self) -> bool {
        self.from == self.to
    }

    /// The common part. An instant is in an interval unless it is at its end.
    fn common(self, other: Span) -> Option<Span> {
        let (from, to) = (self.from.max(other.from), self.to.min(other.to));
        let holds = |one: Span, two: Span| one.is_instant() && two.from <= one.from && one.from < two.to;
        (from < to || holds(self, other) || holds(other, self)).then_some(Span { from, to })
    }

    /// Whether it has no common part with any interval that starts at `tick` or later.
    fn is_over(self, tick: i64) -> bool {
        self.to <= tick && !(self.is_instant() && self.from == tick)
    }
}

/// A row of an input: its batch, and its index in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowAt {
    pub(super) batch: usize,
    pub(super) row: usize,
}

/// A row of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) at: Span,
    /// The input rows that it is made of, one for each input.
    pub(super) of: [Option<RowAt>; 2],
    /// The value of the column that the function adds.
    pub(super) added: i64,
}

/// An interval that later ones may overlap.
#[derive(Clone, Copy, Debug)]
struct Open {
    at: Span,
    row: RowAt,
    /// For the first table of `overlap_left`: the tick up to which it is in the result. For `merged`: the number of
    /// intervals in it. For `self_time`: its own ticks so far.
    done: i64,
}

/// Computes the rows of the result.
#[derive(Debug)]
pub(super) struct Sweep {
    operation: Operation,
    open: [Vec<Open>; 2],
    /// The number of intervals that remained when those that are over were last removed.
    left: [usize; 2],
    /// For `self_time`: all ticks before this are already counted in the own time of a row, if any row contains them.
    owned: i64,
}

impl Sweep {
    pub(super) fn new(operation: Operation) -> Sweep {
        Sweep { operation, open: [Vec::new(), Vec::new()], left: [0, 0], owned: i64::MIN }
    }

    /// Handles the next interval, which is from the given input.
    pub(super) fn next(&mut self, input: usize, at: Span, row: RowAt, made: &mut Vec<Made>) {
        let next = Open { at, row, done: at.from };
        match self.operation {
            Operation::Overlap | Operation::OverlapLeft => self.overlap(input, next, made),
            Operation::Merged => self.merge(next, made),
            Operation::Gaps => self.gap(next, made),
            Operation::SelfTime => self.nest(next, made),
        }
    }

    /// To be called when there are no more intervals of this key.
    pub(super) fn end_of_key(&mut self, made: &mut Vec<Made>) {
        match self.operation {
            Operation::Overlap | Operation::OverlapLeft => {
                self.close(0, i64::MAX, made);
                self.close(1, i64::MAX, made);
            }
            Operation::Merged => {
                made.extend(self.open[0].drain(..).map(|open| alone(open, open.at, open.done)))
            }
            Operation::Gaps => self.open[0].clear(),
            Operation::SelfTime => self.unnest(i64::MAX, made),
        }
        (self.left, self.owned) = ([0, 0], i64::MIN);
    }

    /// The rows that are still needed.
    pub(super) fn rows(&mut self) -> impl Iterator<Item = (usize, &mut RowAt)> {
        let [first, second] = &mut self.open;
        first
            .iter_mut()
            .map(|open| (0, &mut open.row))
            .chain(second.iter_mut().map(|open| (1, &mut open.row)))
    }

    fn overlap(&mut self, input: usize, mut next: Open, made: &mut Vec<Made>) {
        let other = 1 - input;
        self.close(other, next.at.from, made);
        for open in &mut self.open[other] {
            let Some(both) = open.at.common(next.at) else { continue };
            let left = if input == 0 { &mut next } else { &mut *open };
            if self.operation == Operation::OverlapLeft {
                made.extend(uncovered(left, both.from));
                // An instant is done as soon as it was in one interval.
                left.done = left.done.max(both.to + i64::from(left.at.is_instant()));
            }
            let of = if input == 0 { [next.row, open.row] } else { [open.row, next.row] };
            made.push(Made { at: both, of: of.map(Some), added: 0 });
        }
        self.open[input].push(next);
        if self.open[input].len() > 16 + 2 * self.left[input] {
            self.close(input, next.at.from, made);
            self.left[input] = self.open[input].len();
        }
    }

    /// Removes the intervals that no interval starting at `tick` or later can overlap.
    fn close(&mut self, input: usize, tick: i64, made: &mut Vec<Made>) {
        let is_left = self.operation == Operation::OverlapLeft && input == 0;
        self.open[input].retain(|open| {
            let is_over = open.at.is_over(tick) || tick == i64::MAX;
            if is_over && is_left {
                made.extend(uncovered(open, open.at.to));
                // An instant that is in no interval.
                if open.at.is_instant() && open.done == open.at.from {
                    made.push(alone(*open, open.at, 0));
                }
            }
            !is_over
        });
    }

    fn merge(&mut self, next: Open, made: &mut Vec<Made>) {
        match self.open[0].last_mut() {
            Some(open) if next.at.from <= open.at.to => {
                open.at.to = open.at.to.max(next.at.to);
                open.done += 1;
            }
            _ => {
                made.extend(self.open[0].pop().map(|open| alone(open, open.at, open.done)));
                self.open[0].push(Open { done: 1, ..next });
            }
        }
    }

    fn gap(&mut self, next: Open, made: &mut Vec<Made>) {
        let Some(open) = self.open[0].last_mut() else { return self.open[0].push(next) };
        if open.at.to < next.at.from {
            made.push(alone(next, Span { from: open.at.to, to: next.at.from }, 0));
        }
        if open.at.to < next.at.to {
            *open = next;
        }
    }

    /// A tick counts as the own time of a single row: of those that contain it, the one that began last. So own times
    /// sum to the union. If rows nest, it is the innermost row.
    fn nest(&mut self, next: Open, made: &mut Vec<Made>) {
        let tick = next.at.from;
        self.unnest(tick, made);
        if let Some(innermost) = self.open[0].last_mut() {
            innermost.done += tick - self.owned;
        }
        self.owned = tick;
        self.open[0].push(Open { done: 0, ..next });
        if self.open[0].len() > 16 + 2 * self.left[0] {
            // Rows that are over, but lie below one that is not over in the list. The remaining ticks of such a row
            // belong to other rows.
            self.open[0].retain(|open| {
                let is_over = open.at.to <= tick;
                if is_over {
                    made.push(alone(*open, open.at, open.done));
                }
                !is_over
            });
            self.left[0] = self.open[0].len();
        }
    }

    /// Removes the rows that end at `tick` or before, as long as the row that began last is one of them.
    fn unnest(&mut self, tick: i64, made: &mut Vec<Made>) {
        while let Some(mut open) = self.open[0].pop_if(|open| open.at.to <= tick) {
            open.done += (open.at.to - self.owned).max(0);
            self.owned = self.owned.max(open.at.to);
            made.push(alone(open, open.at, open.done));
        }
    }
}

fn alone(open: Open, at: Span, added: i64) -> Made {
    Made { at, of: [Some(open.row), None], added }
}

/// The part of an interval before `tick` that is not in the result yet.
fn uncovered(open: &Open, tick: i64) -> Option<Made> {
    (open.done < tick).then(|| alone(*open, Span { from: open.done, to: tick }, 0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// From, to, the row of the first table, that of the second, and what is added.
    type MadeOf = (i64, i64, Option<usize>, Option<usize>, i64);

    /// What is made of rows `(input, from, to)` of one key.
    fn made(operation: Operation, rows: &[(usize, i64, i64)]) -> Vec<MadeOf> {
        let mut sorted: Vec<(usize, (usize, i64, i64))> = rows.iter().copied().enumerate().collect();
        sorted.sort_by_key(|(_, (_, from, to))| (*from, -*to));
        let (mut sweep, mut made) = (Sweep::new(operation), Vec::new());
        for (row, (input, from, to)) in sorted {
            sweep.next(input, Span { from, to }, RowAt { batch: 0, row }, &mut made);
        }
        sweep.end_of_key(&mut made);
        let row = |row: Option<RowAt>| row.map(|row| row.row);
        let mut made: Vec<_> = made
            .iter()
            .map(|made| (made.at.from, made.at.to, row(made.of[0]), row(made.of[1]), made.added))
            .collect();
        made.sort();
        made
    }

    // 0   |-----0-----|  |--1--|
    // 1      |--2--|-----3----|
    const DRAWN: [(usize, i64, i64); 4] = [(0, 0, 12), (0, 15, 21), (1, 3, 9), (1, 9, 20)];

    #[test]
    fn the_common_parts_of_two_tables() {
        let both = [(3, 9, Some(0), Some(2), 0), (9, 12, Some(0), Some(3), 0), (15, 20, Some(1), Some(3), 0)];
        assert_eq!(made(Operation::Overlap, &DRAWN), both);
        let mut left = both.to_vec();
        left.extend([(0, 3, Some(0), None, 0), (20, 21, Some(1), None, 0)]);
        left.sort();
        assert_eq!(made(Operation::OverlapLeft, &DRAWN), left);
    }

    #[test]
    fn an_instant_is_in_the_interval_that_begins_with_it_and_not_in_the_one_that_ends() {
        let rows = [(0, 9, 9), (0, 20, 20), (1, 3, 9), (1, 9, 20)];
        assert_eq!(made(Operation::Overlap, &rows), [(9, 9, Some(0), Some(3), 0)]);
        let left = [(9, 9, Some(0), Some(3), 0), (20, 20, Some(1), None, 0)];
        assert_eq!(made(Operation::OverlapLeft, &rows), left);
    }

    #[test]
    fn unions_holes_and_the_time_of_each_alone() {
        // |--0--|     |3|
        //    |--1--|
        //      |2|
        let rows = [(0, 0, 6), (0, 3, 9), (0, 5, 7), (0, 12, 14)];
        assert_eq!(made(Operation::Merged, &rows), [(0, 9, Some(0), None, 3), (12, 14, Some(3), None, 1)]);
        assert_eq!(made(Operation::Gaps, &rows), [(9, 12, Some(3), None, 0)]);
        // |------0------|
        //   |-1-| |-2-|
        //    |3|
        let nested = [(0, 0, 20), (0, 2, 8), (0, 10, 16), (0, 3, 5)];
        let own = [
            (0, 20, Some(0), None, 8),
            (2, 8, Some(1), None, 4),
            (3, 5, Some(3), None, 2),
            (10, 16, Some(2), None, 6),
        ];
        assert_eq!(made(Operation::SelfTime, &nested), own);
        // |------0------|
        //   |--1--|
        //       |--2--|
        let crossing = [(0, 0, 10), (0, 2, 5), (0, 4, 8)];
        let own = [(0, 10, Some(0), None, 4), (2, 5, Some(1), None, 2), (4, 8, Some(2), None, 4)];
        assert_eq!(made(Operation::SelfTime, &crossing), own);
    }

    proptest! {
        #[test]
        fn overlaps_are_those_of_every_pair(rows in prop::collection::vec((0..2_usize, 0..40_i64, 0..10_i64), 0..40)) {
            let rows: Vec<(usize, i64, i64)> = rows.into_iter().map(|(input, from, length)| (input, from, from + length)).collect();
            let span = |row: usize| Span { from: rows[row].1, to: rows[row].2 };
            let (all, count) = (&rows, rows.len());
            let of = |input: usize| (0..count).filter(move |row| all[*row].0 == input);
            let mut expected = Vec::new();
            for one in of(0) {
                for two in of(1) {
                    expected.extend(span(one).common(span(two)).map(|both| (both.from, both.to, Some(one), Some(two), 0)));
                }
            }
            expected.sort();
            prop_assert_eq!(&made(Operation::Overlap, &rows), &expected);
            // Each tick of a row of the first table that no other covers is in exactly one part of it.
            let left = made(Operation::OverlapLeft, &rows);
            let paired: Vec<_> = left.iter().copied().filter(|made| made.3.is_some()).collect();
            prop_assert_eq!(&paired, &expected);
            for one in of(0) {
                for tick in rows[one].1..rows[one].2 {
                    let is_covered = of(1).any(|two| rows[two].1 <= tick && tick < rows[two].2);
                    let alone = left.iter().filter(|made| made.2 == Some(one) && made.3.is_none());
                    let count = alone.filter(|made| made.0 <= tick && tick < made.1).count();
                    prop_assert_eq!(count, usize::from(!is_covered), "{} at {}", one, tick);
                }
            }
        }

        #[test]
        fn unions_and_holes_share_the_time(rows in prop::collection::vec((0..60_i64, 0..10_i64), 1..30)) {
            let rows: Vec<(usize, i64, i64)> = rows.into_iter().map(|(from, length)| (0, from, from + length)).collect();
            let (merged, gaps) = (made(Operation::Merged, &rows), made(Operation::Gaps, &rows));
            let ends = rows.iter().map(|row| row.2).max().unwrap_or(0);
            for tick in rows.iter().map(|row| row.1).min().unwrap_or(0)..ends {
                let covered = rows.iter().any(|row| row.1 <= tick && tick < row.2);
                let of = |made: &[MadeOf]| made.iter().filter(|made| made.0 <= tick && tick < made.1).count();
                prop_assert_eq!((of(&merged), of(&gaps)), (usize::from(covered), usize::from(!covered)));
            }
            prop_assert_eq!(merged.iter().map(|made| made.4).sum::<i64>(), rows.len() as i64);
            // Own time, tick by tick: of the rows there the one that began last, of these the shortest, of these the last.
            let mut own = vec![0; rows.len()];
            for tick in 0..ends {
                let there = (0..rows.len()).filter(|row| rows[*row].1 <= tick && tick < rows[*row].2);
                if let Some(last) = there.max_by_key(|row| (rows[*row].1, -rows[*row].2, *row)) {
                    own[last] += 1;
                }
            }
            for made in made(Operation::SelfTime, &rows) {
                prop_assert_eq!(Some(made.4), made.2.map(|row| own[row]), "{:?}", made);
            }
        }
    }
}
