//! The offsets between two clocks that the evidence still allows.

use std::cmp::{max, min};

/// Offsets that no evidence has ruled out: closed intervals, in order, which do not touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Feasible {
    intervals: Vec<(i64, i64)>,
}

impl Feasible {
    pub(super) fn between(low: i64, high: i64) -> Feasible {
        Feasible { intervals: if low <= high { vec![(low, high)] } else { Vec::new() } }
    }

    /// Rules out the offsets strictly between `low` and `high`.
    pub(super) fn forbid(&mut self, low: i64, high: i64) {
        if low.saturating_add(1) >= high {
            return;
        }
        let first = self.intervals.partition_point(|(_, end)| *end <= low);
        let behind = self.intervals.partition_point(|(start, _)| *start < high);
        if first >= behind {
            return;
        }
        let left = (self.intervals[first].0, min(self.intervals[first].1, low));
        let right = (max(self.intervals[behind - 1].0, high), self.intervals[behind - 1].1);
        let kept = [left, right].into_iter().filter(|(start, end)| start <= end);
        self.intervals.splice(first..behind, kept);
    }

    /// The smallest and the largest offset; `None` if there are none.
    pub(super) fn hull(&self) -> Option<(i64, i64)> {
        Some((self.intervals.first()?.0, self.intervals.last()?.1))
    }

    /// The interval that is nearest to `offset`.
    pub(super) fn nearest(&self, offset: i64) -> Option<(i64, i64)> {
        let distance =
            |(low, high): &(i64, i64)| max(low.saturating_sub(offset), offset.saturating_sub(*high));
        self.intervals.iter().copied().min_by_key(|interval| distance(interval).max(0))
    }

    /// Number of intervals. It determines the cost of ruling out more offsets.
    pub(super) fn pieces(&self) -> usize {
        self.intervals.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_left_is_what_nothing_forbids(forbidden in prop::collection::vec((-60..60_i64, 0..40_i64), 0..20)) {
            let mut feasible = Feasible::between(-50, 50);
            forbidden.iter().for_each(|(low, length)| feasible.forbid(*low, low + length));
            let allowed = |o: &i64| forbidden.iter().all(|(low, length)| *o <= *low || *o >= low + length);
            let left: Vec<i64> = (-50..=50).filter(allowed).collect();
            let found: Vec<i64> = feasible.intervals.iter().flat_map(|(low, high)| *low..=*high).collect();
            prop_assert_eq!(&left, &found);
            prop_assert_eq!(feasible.hull(), left.first().copied().zip(left.last().copied()));
        }
    }

    #[test]
    fn the_nearest_interval_holds_or_is_beside() {
        let mut feasible = Feasible::between(-100, 100);
        feasible.forbid(-10, 5);
        assert_eq!(
            [0, -9, 70].map(|o| feasible.nearest(o)),
            [Some((5, 100)), Some((-100, -10)), Some((5, 100))]
        );
        assert_eq!(Feasible::between(1, 0).nearest(0), None);
    }
}
