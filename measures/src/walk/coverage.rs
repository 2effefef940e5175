//! Counts the waits that overlap an interval, and sums their lengths, by prefix sums.

use rayon::slice::ParallelSliceMut;

use crate::{Interval, near};

/// A number of waits with the same interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wait {
    pub(super) interval: Interval,
    pub(super) count: u64,
}

/// A set of waits, which may overlap.
pub(super) struct Coverage {
    begins: Edges,
    ends: Edges,
    /// Their union.
    runs: Vec<Interval>,
}

/// Sorted instants. For each, the number of instants before it and the sum of their ticks, modulo 2^64. Differences of
/// these sums fit into 64 bits, so they are exact.
struct Edges {
    ticks: Vec<i64>,
    before: Vec<(u64, i64)>,
}

impl Edges {
    fn new(mut edges: Vec<(i64, u64)>) -> Edges {
        if !edges.is_sorted() {
            edges.par_sort_unstable();
        }
        let (mut ticks, mut before) = (Vec::with_capacity(edges.len()), Vec::with_capacity(edges.len() + 1));
        let (mut all, mut sum) = (0_u64, 0_i64);
        before.push((all, sum));
        for (tick, count) in edges {
            all += count;
            sum = sum.wrapping_add(tick.wrapping_mul(count as i64));
            ticks.push(tick);
            before.push((all, sum));
        }
        Edges { ticks, before }
    }

    /// The number of instants before a tick, and the sum of their distances to `to`. `hint` is where the last search
    /// ended.
    fn before(&self, tick: i64, to: i64, hint: &mut usize) -> (u64, i64) {
        *hint = near(&self.ticks, |edge| *edge < tick, *hint);
        let (count, sum) = self.before[*hint];
        (count, to.wrapping_mul(count as i64).wrapping_sub(sum))
    }
}

/// Where searches ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints {
    begins: usize,
    ends: usize,
}

impl Coverage {
    pub(super) fn new(mut waits: Vec<Wait>) -> Coverage {
        if !waits.is_sorted() {
            waits.par_sort_unstable();
        }
        let mut runs: Vec<Interval> = Vec::new();
        for Wait { interval, .. } in &waits {
            match runs.last_mut().filter(|run| interval.from <= run.to) {
                Some(run) => run.to = run.to.max(interval.to),
                None => runs.push(*interval),
            }
        }
        let edges = |edge: fn(&Interval) -> i64| {
            Edges::new(waits.iter().map(|wait| (edge(&wait.interval), wait.count)).collect())
        };
        Coverage { begins: edges(|interval| interval.from), ends: edges(|interval| interval.to), runs }
    }

    /// Disjoint intervals. At each of their instants there is a wait.
    pub(super) fn runs(&self) -> &[Interval] {
        &self.runs
    }

    /// The number of waits that overlap an interval, and the sum of their lengths, clipped to it. Fast if successive
    /// intervals are near each other.
    pub(super) fn during(&self, interval: Interval, hints: &mut Hints) -> (u64, i64) {
        let Interval { from, to } = interval;
        let (begins, ends) = (&self.begins, &self.ends);
        let (_, begun_at_first) = begins.before(from, from, &mut hints.begins);
        let (_, ended_at_first) = ends.before(from, from, &mut hints.ends);
        let (ended, _) = ends.before(from.saturating_add(1), from, &mut hints.ends);
        let (begun, begun_at_last) = begins.before(to, to, &mut hints.begins);
        let (_, ended_at_last) = ends.before(to, to, &mut hints.ends);
        let at_first = begun_at_first.wrapping_sub(ended_at_first);
        let at_last = begun_at_last.wrapping_sub(ended_at_last);
        (begun.saturating_sub(ended), at_last.wrapping_sub(at_first))
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
        let wait = |(from, to, count)| Wait { interval: Interval { from, to }, count };
        let coverage = Coverage::new([(5, 15, 1), (20, 24, 1), (0, 10, 1)].map(wait).to_vec());
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

    #[test]
    fn a_wait_that_counts_twice_is_two_waits() {
        let wait = |(from, to, count)| Wait { interval: Interval { from, to }, count };
        let counted = Coverage::new([(5, 15, 3), (8, 9, 2)].map(wait).to_vec());
        let apart =
            Coverage::new([(8, 9, 1), (5, 15, 1), (5, 15, 1), (8, 9, 1), (5, 15, 1)].map(wait).to_vec());
        for from in 0..17 {
            for to in from + 1..18 {
                let during =
                    |coverage: &Coverage| coverage.during(Interval { from, to }, &mut Hints::default());
                assert_eq!(during(&counted), during(&apart), "{from} to {to}");
            }
        }
    }
}
