//! Distributions of lengths, with percentiles. Up to 10^7 lengths they are exact.

use rayon::slice::ParallelSliceMut;
use smallvec::SmallVec;

use crate::{Column, Value, sketch::Sketch};

/// The most lengths that are kept exactly: 80 MB.
const MOST_EXACT: usize = 10_000_000;

/// With millions of threads, most rows have one length. One length needs no allocation.
type Kept = SmallVec<[i64; 2]>;

/// Collects lengths in ticks for a [`Distribution`]. Beyond 10^7 lengths it keeps a sketch in little memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lengths {
    lengths: Kept,
    many: Option<Box<Many>>,
}

/// The summary of more lengths than are kept exactly.
#[derive(Clone, Debug, PartialEq)]
struct Many {
    count: usize,
    total: i128,
    min: i64,
    max: i64,
    sketch: Sketch,
}

impl Lengths {
    pub(crate) fn push(&mut self, length: i64) {
        match &mut self.many {
            Some(many) => many.add(length),
            None => {
                self.lengths.push(length);
                self.limit();
            }
        }
    }

    /// Adds the lengths of another.
    pub(crate) fn merge(&mut self, other: Lengths) {
        match (&mut self.many, other.many) {
            (Some(many), Some(others)) => many.merge(&others),
            (None, Some(others)) => self.many = Some(others),
            (_, None) => {}
        }
        if self.lengths.is_empty() {
            self.lengths = other.lengths;
        } else {
            self.lengths.extend(other.lengths);
        }
        self.limit();
    }

    /// The number of lengths.
    pub(crate) fn count(&self) -> usize {
        self.lengths.len() + self.many.as_ref().map_or(0, |many| many.count)
    }

    /// The sum of the lengths.
    pub(crate) fn total(&self) -> i64 {
        let exact: i128 = self.lengths.iter().copied().map(i128::from).sum();
        clamped(exact + self.many.as_ref().map_or(0, |many| many.total))
    }

    fn limit(&mut self) {
        if self.many.is_some() || self.lengths.len() > MOST_EXACT {
            let many = self.many.get_or_insert_with(|| {
                let sketch = Sketch::default();
                Box::new(Many { count: 0, total: 0, min: i64::MAX, max: i64::MIN, sketch })
            });
            std::mem::take(&mut self.lengths).into_iter().for_each(|length| many.add(length));
        }
    }
}

impl Many {
    fn add(&mut self, length: i64) {
        self.count += 1;
        self.total += i128::from(length);
        self.min = self.min.min(length);
        self.max = self.max.max(length);
        self.sketch.add(length);
    }

    fn merge(&mut self, other: &Many) {
        self.count += other.count;
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sketch.merge(&other.sketch);
    }
}

fn clamped(total: i128) -> i64 {
    total.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Lengths in ticks.
///
/// Up to 10^7 lengths are kept, and their percentiles are exact. With more, the count, the sum, the shortest and the
/// longest are exact. Lengths under 256 ticks are also exact then; others are known to 0.4 % of their value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Sorted.
    lengths: Kept,
    many: Option<Box<Many>>,
}

impl From<Lengths> for Distribution {
    fn from(Lengths { mut lengths, many }: Lengths) -> Distribution {
        if lengths.len() < 100_000 {
            lengths.sort_unstable();
        } else {
            lengths.par_sort_unstable();
        }
        Distribution { lengths, many }
    }
}

impl FromIterator<i64> for Distribution {
    fn from_iter<I: IntoIterator<Item = i64>>(all: I) -> Distribution {
        let mut lengths = Lengths::default();
        all.into_iter().for_each(|length| lengths.push(length));
        lengths.into()
    }
}

impl Distribution {
    /// The number of lengths.
    pub fn count(&self) -> usize {
        self.many.as_ref().map_or(self.lengths.len(), |many| many.count)
    }

    /// Their sum. If it does not fit into 64 bits: the nearest number that does.
    pub fn total(&self) -> i64 {
        clamped(
            self.many
                .as_ref()
                .map_or_else(|| self.lengths.iter().copied().map(i128::from).sum(), |many| many.total),
        )
    }

    /// Their mean; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.total() as f64 / self.count() as f64)
    }

    /// The shortest; `None` if there are none.
    pub fn min(&self) -> Option<i64> {
        self.many.as_ref().map_or(self.lengths.first().copied(), |many| Some(many.min))
    }

    /// The longest; `None` if there are none.
    pub fn max(&self) -> Option<i64> {
        self.many.as_ref().map_or(self.lengths.last().copied(), |many| Some(many.max))
    }

    /// The percentile by nearest rank: the smallest length such that at least `percent` of all are no longer.
    pub fn percentile(&self, percent: f64) -> Option<i64> {
        let rank = (percent / 100.0 * self.count() as f64).ceil() as usize;
        let rank = rank.clamp(1, self.count().max(1));
        match &self.many {
            None => self.lengths.get(rank - 1).copied(),
            Some(many) if rank == many.count => Some(many.max),
            Some(_) => {
                let mut sum = 0;
                let is_there = |(_, count): &(i64, usize)| {
                    sum += count;
                    sum >= rank
                };
                self.iter().find(is_there).map(|(length, _)| length)
            }
        }
    }

    /// Lengths and how often each occurs, the shortest first. Equal lengths may come more than once. Beyond 10^7
    /// lengths, they are as exact as percentiles are.
    pub fn iter(&self) -> impl Iterator<Item = (i64, usize)> {
        let many = self.many.iter().flat_map(|many| {
            // The middle of an outermost bucket may be outside of the range of the lengths.
            many.sketch.iter().map(|(length, count)| (length.clamp(many.min, many.max), count))
        });
        self.lengths.iter().map(|length| (*length, 1)).chain(many)
    }

    /// The columns of [`cells`](Self::cells).
    pub fn columns() -> Vec<Column> {
        vec![
            Column::count("count", "How many there are."),
            Column::length("total_tick", "Their sum."),
            Column::length("mean_tick", "Their mean, rounded down."),
            Column::length("min_tick", "The shortest."),
            Column::length(
                "p50_tick",
                "The median, by nearest rank; within 0.4 % if there are more than 10^7 values.",
            ),
            Column::length("p90_tick", "The 90th percentile, likewise."),
            Column::length("p99_tick", "The 99th percentile, likewise."),
            Column::length("max_tick", "The longest."),
        ]
    }

    /// Its figures, a cell for each of [`columns`](Self::columns).
    pub fn cells<'a>(&self) -> Vec<Value<'a>> {
        self.figures().into()
    }

    pub(crate) fn figures<'a>(&self) -> [Value<'a>; 8] {
        let mean = (self.count() > 0).then(|| self.total() / self.count() as i64);
        [
            self.count().into(),
            self.total().into(),
            mean.into(),
            self.min().into(),
            self.percentile(50.0).into(),
            self.percentile(90.0).into(),
            self.percentile(99.0).into(),
            self.max().into(),
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

    /// Lengths of all magnitudes up to 2^38 ticks.
    fn random(count: usize, mut seed: u64) -> impl Iterator<Item = i64> {
        (0..count).map(move |_| {
            // Xorshift (Marsaglia, 2003).
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 26 >> (seed % 38)) as i64
        })
    }

    const PERCENTS: [f64; 8] = [0.0, 0.1, 10.0, 50.0, 90.0, 99.0, 99.99, 100.0];

    #[test]
    fn more_than_are_kept_are_known_to_0_4_percent() {
        let mut exact: Vec<i64> = random(MOST_EXACT + 1, 1).collect();
        let many: Distribution = exact.iter().copied().collect();
        let kept: Distribution = exact[1..].iter().copied().collect();
        assert!(many.many.is_some() && many.lengths.is_empty() && kept.many.is_none());
        let total: i64 = exact.iter().sum();
        exact.sort_unstable();
        assert_eq!((many.count(), many.total()), (exact.len(), total));
        assert_eq!((many.min(), many.max()), (exact.first().copied(), exact.last().copied()));
        let mut wrong = 0;
        for percent in PERCENTS {
            let rank = ((percent / 100.0 * exact.len() as f64).ceil() as usize).max(1);
            let (is, found) = (exact[rank - 1], many.percentile(percent).unwrap());
            assert!((is - found).abs() as f64 <= is as f64 * 0.004, "{percent} %: {is}, found {found}");
            assert!(is >= 256 || is == found, "{percent} %: {is}, found {found}");
            wrong += u32::from(is != found);
        }
        assert!(wrong > 0, "a sketch");
        assert_eq!(many.iter().map(|(_, count)| count).sum::<usize>(), exact.len());
        assert!(many.iter().is_sorted());
        // Ten million are exact.
        let mut rest = kept.iter();
        exact.clear();
        exact.extend(random(MOST_EXACT + 1, 1).skip(1));
        exact.sort_unstable();
        assert!(exact.iter().all(|length| rest.next() == Some((*length, 1))));
    }

    #[test]
    fn merged_lengths_are_those_of_all_together() {
        let parts = |counts: [usize; 3]| {
            let (mut merged, mut together) = (Lengths::default(), Lengths::default());
            for (seed, count) in (1..).zip(counts) {
                let mut part = Lengths::default();
                for length in random(count, seed) {
                    part.push(length);
                    together.push(length);
                }
                merged.merge(part);
            }
            assert_eq!(merged.total(), together.total());
            let (merged, together) = (Distribution::from(merged), Distribution::from(together));
            assert_eq!(merged.cells(), together.cells());
            assert!(merged.iter().eq(together.iter()));
            merged.many.is_some()
        };
        assert!(!parts([1000, 0, 2000]));
        assert!(parts([MOST_EXACT / 2, MOST_EXACT / 2, 1]));
        assert!(parts([3, MOST_EXACT + 1, 1000]));
        assert!(parts([MOST_EXACT + 1, 1000, MOST_EXACT + 1]));
    }
}
