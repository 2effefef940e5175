//! Counts lengths in buckets whose width grows with the length, so that percentiles are known to 0.4 %.
//!
//! Each length under 256 ticks has its own bucket. Above, each power of two is divided into 128 buckets of equal width:
//! the eight highest bits of a length select its bucket.
//!
//!   length        256  258  260 ..  510  512  516 ..     1020  1024  1032
//!   bucket        256  257  258 ..  383  384  385 ..      511   512   513
//!   width           2    2    2       2    4    4           4     8     8
//!
//! Reference: HdrHistogram has the same buckets, <http://hdrhistogram.org>.

/// Lengths from this on share a bucket with others.
const EXACT: u64 = 256;
/// The number of bits below the highest one that select the bucket of a length.
const BITS: u32 = 7;

/// The number of lengths in each bucket. Two sketches can be added.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sketch {
    counts: Vec<u64>,
    /// Negative lengths, by their distance from 0. There are none if clocks go forward.
    negative: Vec<u64>,
}

impl Sketch {
    pub(crate) fn add(&mut self, length: i64) {
        let counts = if length < 0 { &mut self.negative } else { &mut self.counts };
        let bucket = bucket(length.unsigned_abs());
        if counts.len() <= bucket {
            counts.resize(bucket + 1, 0);
        }
        counts[bucket] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Sketch) {
        for (counts, of_other) in [(&mut self.counts, &other.counts), (&mut self.negative, &other.negative)] {
            counts.resize(counts.len().max(of_other.len()), 0);
            counts.iter_mut().zip(of_other).for_each(|(count, other)| *count += other);
        }
    }

    /// The middle of each bucket that is not empty, and the number of lengths in it; the shortest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, usize)> {
        let negative = self.negative.iter().enumerate().rev();
        let negative = negative.map(|(bucket, count)| (middle(bucket).saturating_neg(), *count as usize));
        let others = self.counts.iter().enumerate();
        let others = others.map(|(bucket, count)| (middle(bucket), *count as usize));
        negative.chain(others).filter(|(_, count)| *count > 0)
    }
}

fn bucket(length: u64) -> usize {
    if length < EXACT {
        return length as usize;
    }
    // The highest bit is number 8 or more. The bits that do not select the bucket are shifted out.
    let rest = length.ilog2() - BITS;
    ((u64::from(rest) << BITS) + (length >> rest)) as usize
}

fn middle(bucket: usize) -> i64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket as i64;
    }
    let rest = (bucket >> BITS) - 1;
    let first = (bucket - (rest << BITS)) << rest;
    let middle = first + ((1 << rest) - 1) / 2;
    i64::try_from(middle).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_as_drawn() {
        let drawn = [255, 256, 257, 258, 510, 511, 512, 515, 516, 1020, 1024, 1032].map(bucket);
        assert_eq!(drawn, [255, 256, 256, 257, 383, 383, 384, 384, 385, 511, 512, 513]);
        assert_eq!([0, 255, 256, 384, 512].map(middle), [0, 255, 256, 513, 1027]);
    }

    #[test]
    fn the_middle_of_a_bucket_is_within_0_4_percent_of_all_lengths_in_it() {
        let mut last = 0;
        for power in 0..63 {
            for step in 0..1000_u64 {
                let length = (1_u64 << power) + (1_u64 << power) / 1000 * step;
                let (bucket, middle) = (bucket(length), middle(bucket(length)) as u64);
                let error = middle.abs_diff(length) as f64 / length as f64;
                assert!(error <= 0.004, "{length}: {middle}");
                assert!(length >= EXACT || middle == length, "{length}: {middle}");
                assert!(power < 10 || bucket >= last, "{length}");
                last = bucket;
            }
        }
        let mut extreme = Sketch::default();
        [i64::MIN, -300, i64::MAX].into_iter().for_each(|length| extreme.add(length));
        let middles: Vec<i64> = extreme.iter().map(|(middle, _)| middle).collect();
        assert!(middles.is_sorted() && middles.len() == 3 && middles[1] == -300, "{middles:?}");
    }
}
