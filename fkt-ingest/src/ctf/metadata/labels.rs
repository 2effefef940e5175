//! Labels of numbers: converts ranges that may overlap to disjoint segments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Finds the label of a number. If ranges overlap, the one declared first applies.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// Sorted, disjoint: first key, last key, label. Keys have the order of unsigned numbers.
    segments: Vec<(u64, u64, u32)>,
    names: Vec<Arc<str>>,
    /// Converts a number to a key: flips the sign bit of signed ones.
    flip: u64,
}

/// From this number of segments on the search is binary.
const MANY: usize = 8;

impl Labels {
    /// From ranges `(name, first, last)` of 64-bit numbers; empty ones are dropped.
    pub(crate) fn new(signed: bool, ranges: impl IntoIterator<Item = (Arc<str>, i128, i128)>) -> Labels {
        let (min, max) = match signed {
            true => (i128::from(i64::MIN), i128::from(i64::MAX)),
            false => (0, i128::from(u64::MAX)),
        };
        let mut names = Vec::new();
        let mut borders: BTreeMap<i128, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for (name, low, high) in ranges {
            let index = names.len() as u32;
            names.push(name);
            let (low, high) = (low.max(min), high.min(max));
            if low <= high {
                borders.entry(low - min).or_default().0.push(index);
                borders.entry(high - min + 1).or_default().1.push(index);
            }
        }
        let mut segments: Vec<(u64, u64, u32)> = Vec::new();
        let mut open = BTreeSet::new();
        let mut since = 0;
        for (at, (begin, end)) in borders {
            if let Some(first) = open.first() {
                // Both bounds are at most 2^64, and `at` is above `since`.
                let (from, to) = (since as u64, (at - 1) as u64);
                match segments.last_mut() {
                    Some((_, last, label)) if label == first && last.wrapping_add(1) == from => *last = to,
                    _ => segments.push((from, to, *first)),
                }
            }
            open.extend(begin);
            for index in end {
                open.remove(&index);
            }
            since = at;
        }
        Labels { segments, names, flip: u64::from(signed) << 63 }
    }

    /// The index of the range that contains a value; `raw` is the value's 64 bits.
    #[inline]
    pub(crate) fn index(&self, raw: u64) -> Option<usize> {
        let key = raw ^ self.flip;
        let found = if self.segments.len() <= MANY {
            self.segments.iter().find(|(_, last, _)| *last >= key)
        } else {
            self.segments.get(self.segments.partition_point(|(_, last, _)| *last < key))
        };
        found.filter(|(first, _, _)| *first <= key).map(|(_, _, label)| *label as usize)
    }

    /// First and last value of a range of unsigned numbers, if it is a single segment.
    pub(crate) fn only_segment(&self, range: usize) -> Option<(u64, u64)> {
        let mut segments = self.segments.iter().filter(|(_, _, label)| *label as usize == range);
        match (segments.next(), segments.next(), self.flip) {
            (Some((first, last, _)), None, 0) => Some((*first, *last)),
            _ => None,
        }
    }

    /// The name of a value.
    #[inline]
    pub(crate) fn name(&self, raw: u64) -> Option<&str> {
        self.index(raw).and_then(|index| self.names.get(index)).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(name: &str, low: i128, high: i128) -> (Arc<str>, i128, i128) {
        (Arc::from(name), low, high)
    }

    // a  0 . . 3
    // b      2 . . . 6
    // c          4            9 .. max
    #[test]
    fn where_ranges_overlap_the_first_declared_counts() {
        let ranges = [
            range("a", 0, 3),
            range("b", 2, 6),
            range("c", 4, 4),
            range("c", 9, i128::from(u64::MAX)),
            range("none", 5, 1),
        ];
        let labels = Labels::new(false, ranges);
        let names: Vec<Option<&str>> = [0, 3, 4, 6, 7, 9, u64::MAX].map(|n| labels.name(n)).to_vec();
        let (a, b, c) = (Some("a"), Some("b"), Some("c"));
        assert_eq!(names, [a, a, b, b, None, c, c]);
    }

    #[test]
    fn many_signed_ranges_are_found_by_halves() {
        let ranges = (-20..20).map(|n| range(&n.to_string(), n * 10, n * 10 + 4));
        let labels = Labels::new(true, ranges.chain([range("rest", i128::MIN, i128::MAX)]));
        let name = |n: i64| labels.name(n as u64);
        assert_eq!((name(-200), name(-196), name(193)), (Some("-20"), Some("-20"), Some("19")));
        assert_eq!((name(i64::MIN), name(-195), name(i64::MAX)), (Some("rest"), Some("rest"), Some("rest")));
    }
}
