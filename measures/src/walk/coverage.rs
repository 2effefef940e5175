//! The number and total length of waits that overlap an interval, by prefix sums.

use rayon::slice::ParallelSliceMut;

use crate::Interval;

/// A set of intervals, which may overlap.
pub(super) struct Coverage {
    begins: Edges,
    ends: Edges,
    /// Their union.
    runs: Vec<Interval>,
}

/// Sorted instants, and for each the sum of those before it, modulo 2^64: differences of sums fit, so they are exact.
struct Edges {
    ticks: Vec<i64>,
    sums: Vec<i64>,
}

impl Edges {
    fn new(mut ticks: Vec<i64>) -> Edges {
        if !ticks.is_sorted() {
            ticks.par_sort_unstable();
        }
        let mut sums = Vec::with_capacity(ticks.len() + 1);
        let mut sum = 0_i64;
        sums.push(sum);
        for tick in &ticks {
            sum = sum.wrapping_add(*tick);
            sums.push(sum);
        }
        Edges { ticks, sums }
    }

    fn count_before(&self, tick: i64) -> usize {
        self.ticks.partition_point(|edge| *edge < tick)
    }

    /// The sum of the distances from each instant before `tick` to `tick`.
    fn ticks_to(&self, tick: i64) -> i64 {
        let count = self.count_before(tick);
        tick.wrapping_mul(count as i64).wrapping_sub(self.sums[count])
    }
}

impl Coverage {
    pub(super) fn new(mut waits: Vec<Interval>) -> Coverage {
        if !waits.is_sorted() {
            waits.par_sort_unstable();
        }
        let mut runs: Vec<Interval> = Vec::new();
        for wait in &waits {
            match runs.last_mut().filter(|run| wait.from <= run.to) {
                Some(run) => run.to = run.to.max(wait.to),
                None => runs.push(*wait),
            }
        }
        Coverage {
            begins: Edges::new(waits.iter().map(|wait| wait.from).collect()),
            ends: Edges::new(waits.iter().map(|wait| wait.to).collect()),
            runs,
        }
    }

    /// Disjoint intervals, at each instant of which there is a wait.
    pub(super) fn runs(&self) -> &[Interval] {
        &self.runs
    }

    /// The sum of the lengths of all waits, clipped to an interval.
    pub(super) fn ticks(&self, interval: Interval) -> i64 {
        let to = |tick| self.begins.ticks_to(tick).wrapping_sub(self.ends.ticks_to(tick));
        to(interval.to).wrapping_sub(to(interval.from))
    }

    /// The number of waits that overlap an interval.
    pub(super) fn count(&self, interval: Interval) -> u64 {
        let begun = self.begins.count_before(interval.to);
        let ended = self.ends.count_before(interval.from.saturating_add(1));
        begun.saturating_sub(ended) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // |---------|          0 to 10
    //      |---------|     5 to 15
    //                      |---|  20 to 24
    #[test]
    fn waits_that_overlap_count_twice() {
        let waits = [(5, 15), (20, 24), (0, 10)].map(|(from, to)| Interval { from, to });
        let coverage = Coverage::new(waits.to_vec());
        assert_eq!(coverage.runs(), [(0, 15), (20, 24)].map(|(from, to)| Interval { from, to }));
        for (from, to, ticks, count) in
            [(0, 30, 24, 3), (0, 5, 5, 1), (5, 10, 10, 2), (4, 6, 3, 2), (10, 12, 2, 1), (15, 20, 0, 0)]
        {
            let interval = Interval { from, to };
            assert_eq!((coverage.ticks(interval), coverage.count(interval)), (ticks, count), "{interval:?}");
        }
    }
}
