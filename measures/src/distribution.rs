//! Distributions of lengths, with exact percentiles.

use crate::{Column, Value};

/// Lengths in ticks; sorted when asked.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    lengths: Vec<i64>,
}

impl FromIterator<i64> for Distribution {
    fn from_iter<I: IntoIterator<Item = i64>>(lengths: I) -> Distribution {
        let mut lengths: Vec<i64> = lengths.into_iter().collect();
        lengths.sort_unstable();
        Distribution { lengths }
    }
}

impl Distribution {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.lengths.len()
    }

    /// Their sum.
    pub fn total(&self) -> i64 {
        self.lengths.iter().sum()
    }

    /// Their mean; `None` of nothing.
    pub fn mean(&self) -> Option<f64> {
        (!self.lengths.is_empty()).then(|| self.total() as f64 / self.count() as f64)
    }

    /// The percentile by nearest rank: the smallest length such that at least `percent` of all are no longer.
    pub fn percentile(&self, percent: f64) -> Option<i64> {
        let rank = (percent / 100.0 * self.count() as f64).ceil() as usize;
        self.lengths.get(rank.clamp(1, self.count().max(1)) - 1).copied()
    }

    /// All of them, sorted.
    pub fn sorted(&self) -> &[i64] {
        &self.lengths
    }

    /// The columns of [`cells`](Self::cells).
    pub fn columns() -> Vec<Column> {
        vec![
            Column::count("count", "How many there are."),
            Column::length("total_tick", "Their sum."),
            Column::length("mean_tick", "Their mean, rounded down."),
            Column::length("min_tick", "The shortest."),
            Column::length("p50_tick", "The median, by nearest rank."),
            Column::length("p90_tick", "The 90th percentile, by nearest rank."),
            Column::length("p99_tick", "The 99th percentile, by nearest rank."),
            Column::length("max_tick", "The longest."),
        ]
    }

    /// Its figures, a cell for each of [`columns`](Self::columns).
    pub fn cells(&self) -> Vec<Value> {
        let mean = (!self.lengths.is_empty()).then(|| self.total() / self.count() as i64);
        vec![
            self.count().into(),
            self.total().into(),
            mean.into(),
            self.lengths.first().copied().into(),
            self.percentile(50.0).into(),
            self.percentile(90.0).into(),
            self.percentile(99.0).into(),
            self.lengths.last().copied().into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let hundred: Distribution = (1..=100).rev().collect();
        let at = |percent| hundred.percentile(percent);
        assert_eq!([0.0, 1.0, 1.1, 50.0, 99.0, 99.9, 100.0].map(at), [1, 1, 2, 50, 99, 100, 100].map(Some));
        assert_eq!(hundred.mean(), Some(50.5));
        let none = Distribution::default();
        assert_eq!((none.percentile(50.0), none.mean(), none.total()), (None, None, 0));
        let one: Distribution = [7].into_iter().collect();
        assert_eq!((one.percentile(1.0), one.percentile(99.0)), (Some(7), Some(7)));
    }
}
