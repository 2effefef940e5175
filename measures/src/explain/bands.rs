//! Bands of instances that are sorted by length.

use std::ops::Range;

/// Ranges of places in the sorted instances, with their names.
pub(super) struct Bands {
    bands: [(String, Range<usize>); 5],
}

impl Bands {
    /// The bands of `count` instances, and one more band of the `slowest`. The first band has the instances up to the
    /// median, the fourth those from the 99th percentile on.
    pub(super) fn of(count: usize, slowest: usize) -> Bands {
        let rank = |percent: usize| (count * percent).div_ceil(100);
        let median = rank(50);
        let p99 = rank(99).saturating_sub(1).max(median);
        let p90 = rank(90).min(p99);
        Bands {
            bands: [
                ("0-50".into(), 0..median),
                ("50-90".into(), median..p90),
                ("90-99".into(), p90..p99),
                ("99-100".into(), p99..count),
                (format!("slowest {slowest}"), count.saturating_sub(slowest)..count),
            ],
        }
    }

    /// The bands, each with its name.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, &Range<usize>)> {
        self.bands.iter().map(|(name, band)| (name.as_str(), band))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_is_in_one_band_and_the_longest_in_the_last() {
        let lengths = |count| {
            let bands = Bands::of(count, 10);
            let lengths: Vec<usize> = bands.each().map(|(_, band)| band.len()).collect();
            lengths
        };
        for (count, expected) in [
            (0, [0, 0, 0, 0, 0]),
            (1, [1, 0, 0, 0, 1]),
            (2, [1, 0, 0, 1, 2]),
            (3, [2, 0, 0, 1, 3]),
            (10, [5, 4, 0, 1, 10]),
            (100, [50, 40, 8, 2, 10]),
            (1000, [500, 400, 89, 11, 10]),
        ] {
            assert_eq!(lengths(count), expected, "{count}");
        }
        for count in 0..500 {
            assert_eq!(lengths(count)[..4].iter().sum::<usize>(), count);
        }
    }
}
