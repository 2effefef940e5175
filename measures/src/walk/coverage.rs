//! The number and total length of waits that overlap an interval, by prefix sums.

use rayon::slice::ParallelSliceMut;

use crate::{Interval, near};

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

    /// How many are before a tick: `hint` is where the last search ended.
    fn count_before(&self, tick: i64, hint: &mut usize) -> usize {
        *hint = near(&self.ticks, |edge| *edge < tick, *hint);
        *hint
    }

    /// The sum of the distances to `tick` from the instants before it, of which there are `count`.
    fn ticks_to(&self, tick: i64, count: usize) -> i64 {
        tick.wrapping_mul(count as i64).wrapping_sub(self.sums[count])
    }
}

/// Where searches ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints {
    begins: usize,
    ends: usize,
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

    /// The number of waits that overlap an interval, and the sum of their lengths, clipped to it. Quick for intervals that are
    /// near each other.
    pub(super) fn during(&self, interval: Interval, hints: &mut Hints) -> (u64, i64) {
        let Interval { from, to } = interval;
        let (begins, ends) = (&self.begins, &self.ends);
        let begun_at_first = begins.count_before(from, &mut hints.begins);
        let ended_at_first = ends.count_before(from, &mut hints.ends);
        let ended = ends.count_before(from.saturating_add(1), &mut hints.ends);
        let begun = begins.count_before(to, &mut hints.begins);
        let ended_at_last = ends.count_before(to, &mut hints.ends);
        let at_first =
            begins.ticks_to(from, begun_at_first).wrapping_sub(ends.ticks_to(from, ended_at_first));
        let at_last = begins.ticks_to(to, begun).wrapping_sub(ends.ticks_to(to, ended_at_last));
        (begun.saturating_sub(ended) as u64, at_last.wrapping_sub(at_first))
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
            for (begins, ends) in [(0, 0), (1, 3), (3, 2)] {
                let found = coverage.during(interval, &mut Hints { begins, ends });
                assert_eq!(found, (count, ticks), "{interval:?}");
            }
        }
    }
}
