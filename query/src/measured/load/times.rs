//! Times of which rows are read.

use std::sync::Arc;

use sigmund_measures::near;

/// If there are more times than this, those that are nearest to each other count as one.
const MOST: i64 = 1 << 20;

/// Several times, each with its first and its last tick. Sorted, and apart from each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Times(Arc<[(i64, i64)]>);

impl Times {
    /// One time.
    pub(super) fn one(from: i64, to: i64) -> Times {
        Times(Arc::new([(from, to)]))
    }

    /// The union of times. It may be larger by the gaps between them, if there are very many.
    pub(super) fn union(mut times: Vec<(i64, i64)>) -> Times {
        times.sort_unstable();
        let length =
            times.last().zip(times.first()).map_or(0, |(last, first)| last.0.saturating_sub(first.0));
        let apart = length / MOST;
        times.dedup_by(|next, last| {
            let is_near = next.0 <= last.1.saturating_add(apart);
            if is_near {
                last.1 = last.1.max(next.1);
            }
            is_near
        });
        Times(times.into())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether that is all time.
    pub(super) fn is_all(&self) -> bool {
        *self.0 == [(i64::MIN, i64::MAX)]
    }

    pub(super) fn as_slice(&self) -> &[(i64, i64)] {
        &self.0
    }

    /// These, and others.
    pub(super) fn and(&self, others: &Times) -> Times {
        if others.is_empty() {
            return self.clone();
        }
        Times::union([&*self.0, &*others.0].concat())
    }

    /// Finds which intervals touch one of the times.
    pub(super) fn touched(&self) -> Touched<'_> {
        Touched { times: &self.0, begun: 0 }
    }
}

/// Made by [`Times::touched`].
pub(super) struct Touched<'t> {
    times: &'t [(i64, i64)],
    /// The number of times that had begun at the end of the last interval.
    begun: usize,
}

impl Touched<'_> {
    /// Whether an interval overlaps or touches one of the times. Fast if the intervals come sorted by their ends, or almost.
    pub(super) fn has(&mut self, from: i64, to: i64) -> bool {
        self.begun = near(self.times, |(begin, _)| *begin <= to, self.begun);
        self.begun.checked_sub(1).is_some_and(|last| self.times[last].1 >= from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_overlap_or_touch_are_one() {
        let times = Times::union(vec![(30, 40), (0, 10), (10, 12), (5, 7), (41, 50)]);
        assert_eq!(times.as_slice(), [(0, 12), (30, 40), (41, 50)]);
        assert_eq!(times.and(&Times::one(11, 31)).as_slice(), [(0, 40), (41, 50)]);
        assert!(times.and(&Times::default()).as_slice() == times.as_slice() && !times.is_all());
        assert!(Times::one(i64::MIN, i64::MAX).is_all() && Times::default().is_empty());
    }

    #[test]
    fn an_interval_touches_a_time_if_they_share_an_instant() {
        let times = Times::union(vec![(10, 20), (30, 40)]);
        let mut touched = times.touched();
        for (from, to, is_touched) in [
            (0, 9, false),
            (0, 10, true),
            (12, 13, true),
            (20, 25, true),
            (21, 29, false),
            (41, 60, false),
            (21, 30, true),
            (0, 60, true),
            (40, 40, true),
            (5, 7, false),
        ] {
            assert_eq!(touched.has(from, to), is_touched, "{from} to {to}");
        }
        assert!(!Times::default().touched().has(0, 100));
    }

    #[test]
    fn millions_of_times_become_fewer() {
        let many = Times::union((0..5_000_000).map(|n| (n * 10, n * 10 + 1)).collect());
        assert!(many.as_slice().len() <= MOST as usize + 1, "{}", many.as_slice().len());
        let mut touched = many.touched();
        assert!((0..5_000_000).all(|n| touched.has(n * 10, n * 10 + 1)));
    }
}
