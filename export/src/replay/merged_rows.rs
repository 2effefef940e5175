//! Merges the late rows of a table with the others, in the order of their begins.

use super::{
    by_begin::Row,
    late_rows::{LateRows, Level},
};

/// Rows that were read and are not replayed yet.
#[derive(Debug)]
pub(super) struct MergedRows<R> {
    /// Rows that are not late, sorted. Those with an index below `taken` have been taken.
    rows: Vec<R>,
    taken: usize,
    /// Rows that are neither late nor read yet do not begin before this tick.
    boundary: Option<i64>,
    /// Whether all rows that are not late were read.
    ended: bool,
    late: LateRows<R>,
}

impl<R: Row> MergedRows<R> {
    pub(super) fn new(late: LateRows<R>) -> MergedRows<R> {
        MergedRows { rows: Vec::new(), taken: 0, boundary: None, ended: false, late }
    }

    /// Rows of greater levels are late.
    pub(super) fn limit(&self) -> Level {
        self.late.limit()
    }

    /// Adds rows that are not late. Those that are still not read do not begin before the boundary.
    pub(super) fn add(&mut self, boundary: Option<i64>, read: impl FnOnce(&mut Vec<R>)) {
        self.rows.drain(..std::mem::take(&mut self.taken));
        read(&mut self.rows);
        // The sort is stable: it merges the sorted rows with the new ones, instead of sorting all of them again.
        self.rows.sort();
        self.boundary = boundary;
    }

    /// Must be called when all rows that are not late have been added.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// The next row; `None` if a row that is not read yet may precede it.
    #[inline]
    pub(super) fn next(&self) -> Option<&R> {
        let next = match (self.rows.get(self.taken), self.late.first()) {
            (Some(row), Some(late)) => row.min(late),
            (row, late) => row.or(late)?,
        };
        let is_final = self.ended || self.boundary.is_some_and(|boundary| next.begin() < boundary);
        (is_final && !self.late.may_precede(next)).then_some(next)
    }

    /// Takes the next row.
    pub(super) fn take(&mut self) -> Option<R> {
        match (self.rows.get(self.taken), self.late.first()) {
            (Some(row), Some(late)) if late < row => self.late.take(),
            (Some(row), _) => {
                self.taken += 1;
                Some(row.clone())
            }
            (None, _) => self.late.take(),
        }
    }

    /// Whether more rows must be read before the next one is known: late rows that were left to another pass, or other
    /// rows.
    pub(super) fn need_more(&self) -> bool {
        !(self.ended && self.late.are_all_read()) && self.next().is_none()
    }

    /// The late rows, if another pass must collect them before the next row is known.
    pub(super) fn left_late_rows(&mut self) -> Option<&mut LateRows<R>> {
        let is_due = match self.rows.get(self.taken) {
            Some(row) => self.late.may_precede(row),
            None => self.ended && !self.late.are_all_read(),
        };
        if !is_due || self.late.first().is_some() {
            return None;
        }
        self.late.begin_next_pass();
        Some(&mut self.late)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            late_rows::{BLOCK, Lateness},
            replayer::Replayer,
        },
        *,
    };

    /// Begin, end, and a number that distinguishes rows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Interval(i64, i64, usize);

    impl Row for Interval {
        fn begin(&self) -> i64 {
            self.0
        }

        fn replay(self, _: &mut Replayer<'_>) {}
    }

    /// Takes all rows of a file, in batches of `batch` rows. Returns them, the number of passes, and the largest number
    /// of rows in memory.
    fn merged(file: &[Interval], batch: usize, max_late: usize) -> (Vec<Interval>, usize, usize) {
        let collect = |late: &mut LateRows<Interval>| {
            let mut lateness = Lateness::default();
            for row in file {
                let level = lateness.next_row(row.0, row.1);
                late.extend(std::iter::once(*row), level);
            }
            late.sort();
        };
        let mut late = LateRows::new(max_late);
        collect(&mut late);
        let (mut rows, mut lateness, mut batches) =
            (MergedRows::new(late), Lateness::default(), file.chunks(batch));
        let (mut taken, mut passes, mut most) = (Vec::new(), 1, 0);
        loop {
            while rows.need_more() {
                if let Some(late) = rows.left_late_rows() {
                    passes += 1;
                    collect(late);
                } else if let Some(batch) = batches.next() {
                    let levels: Vec<Level> =
                        batch.iter().map(|row| lateness.next_row(row.0, row.1)).collect();
                    let limit = rows.limit();
                    let read =
                        batch.iter().zip(levels).filter(|(_, level)| *level <= limit).map(|(row, _)| *row);
                    rows.add(lateness.boundary(limit), |rows| rows.extend(read));
                    most = most.max(rows.rows.len());
                } else {
                    rows.end();
                }
            }
            assert!(rows.late.first().is_none() || rows.next().is_some());
            if rows.next().is_none() {
                return (taken, passes, most);
            }
            taken.extend(rows.take());
        }
    }

    /// Intervals in the order of their ends. Every `nth` interval is half as long as the whole file.
    fn file(rows: usize, nth: usize) -> Vec<Interval> {
        let interval = |number: usize| {
            let end = number as i64;
            let length = if number.is_multiple_of(nth) { rows as i64 / 2 } else { number as i64 * 7 % 50 };
            Interval(end - length, end, number)
        };
        (0..rows).map(interval).collect()
    }

    fn sorted(file: &[Interval]) -> Vec<Interval> {
        let mut sorted = file.to_vec();
        sorted.sort();
        sorted
    }

    #[test]
    fn few_long_intervals_are_late_and_few_others_are_in_memory() {
        let file = file(40 * BLOCK, 1000);
        let (taken, passes, most) = merged(&file, 1000, 10_000);
        assert_eq!((taken == sorted(&file), passes), (true, 1));
        assert!(most <= 2 * BLOCK + 1000 + 50, "{most}");
    }

    // Every third interval is long. In the first 16 blocks there is no greatest boundary yet, so the long intervals are
    // not late at the last limit. The other 32 768 long intervals are late at any limit.
    #[test]
    fn more_late_rows_than_are_kept_are_read_by_more_passes() {
        let file = file(40 * BLOCK, 3);
        let (taken, passes, most) = merged(&file, 777, 10_000);
        assert_eq!((taken == sorted(&file), passes), (true, 4));
        assert!(most <= 17 * BLOCK + 777 + 50, "{most}");
    }

    // Each interval is open while two blocks of others end: it is late at limit 0, and not at limit 2.
    #[test]
    fn a_greater_limit_leaves_fewer_late_rows() {
        let length = 2 * BLOCK as i64;
        let file: Vec<Interval> = (0..40 * BLOCK).map(|n| Interval(n as i64 - length, n as i64, n)).collect();
        let (taken, passes, _) = merged(&file, 1000, 100);
        assert_eq!((taken == sorted(&file), passes), (true, 1));
    }

    // A filter cuts the intervals to its window: all begin at its first tick.
    #[test]
    fn rows_that_are_all_alike_are_taken_in_one_pass() {
        let row = Interval(0, 1 << 40, 0);
        let mut file = vec![Interval(1 << 40, 1 << 40, 1); 20 * BLOCK];
        file.extend(vec![row; 5000]);
        let (taken, passes, _) = merged(&file, 1000, 100);
        assert_eq!((taken == sorted(&file), passes), (true, 1));
    }

    #[test]
    fn a_file_of_any_order_is_merged() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for (rows, max_late) in [(0, 1), (1, 1), (5 * BLOCK, 1), (5 * BLOCK, 3000), (21 * BLOCK, 5000)] {
            let file: Vec<Interval> = (0..rows)
                .map(|number| {
                    let begin = random(100_000) as i64;
                    Interval(begin, begin + random(100_000) as i64, number)
                })
                .collect();
            let max_late = max_late.max(rows / 40);
            let (taken, ..) = merged(&file, 1 + random(9000) as usize, max_late);
            assert!(taken == sorted(&file), "{rows} rows, {max_late} late");
        }
    }
}
