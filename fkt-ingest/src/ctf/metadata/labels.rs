//! Names of numbers: ranges that may overlap, as segments that do not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Finds the label of a number. Where ranges overlap, the one that was declared first counts.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// Sorted, disjoint: first number, last number, label.
    segments: Vec<(i128, i128, u32)>,
    names: Vec<Arc<str>>,
}

impl Labels {
    /// Of ranges `(name, first, last)`; those that hold nothing are left out.
    pub(crate) fn new(ranges: impl IntoIterator<Item = (Arc<str>, i128, i128)>) -> Labels {
        let mut names = Vec::new();
        let mut borders: BTreeMap<i128, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for (name, low, high) in ranges.into_iter().filter(|(_, low, high)| low <= high) {
            let index = names.len() as u32;
            names.push(name);
            borders.entry(low).or_default().0.push(index);
            borders.entry(high + 1).or_default().1.push(index);
        }
        let mut segments: Vec<(i128, i128, u32)> = Vec::new();
        let mut open = BTreeSet::new();
        let mut since = 0;
        for (at, (begin, end)) in borders {
            if let Some(first) = open.first() {
                match segments.last_mut() {
                    Some((_, last, label)) if label == first && *last + 1 == since => *last = at - 1,
                    _ => segments.push((since, at - 1, *first)),
                }
            }
            open.extend(begin);
            for index in end {
                open.remove(&index);
            }
            since = at;
        }
        Labels { segments, names }
    }

    /// The number of the range, in the order given, that `value` is in.
    #[inline]
    pub(crate) fn index(&self, value: i128) -> Option<usize> {
        let at = self.segments.partition_point(|(_, last, _)| *last < value);
        self.segments.get(at).filter(|(first, _, _)| *first <= value).map(|(_, _, label)| *label as usize)
    }

    /// The name of `value`.
    #[inline]
    pub(crate) fn name(&self, value: i128) -> Option<&str> {
        self.index(value).and_then(|index| self.names.get(index)).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // a  0 . . 3
    // b      2 . . . 6
    // c          4            9 .. max
    #[test]
    fn where_ranges_overlap_the_first_declared_counts() {
        let range = |name: &str, low, high| (Arc::from(name), low, high);
        let max = i128::from(u64::MAX);
        let labels = Labels::new([
            range("a", 0, 3),
            range("b", 2, 6),
            range("c", 4, 4),
            range("c", 9, max),
            range("none", 5, 1),
        ]);
        let names: Vec<Option<&str>> = [-1, 0, 3, 4, 6, 7, 9, max].map(|n| labels.name(n)).to_vec();
        let (a, b, c) = (Some("a"), Some("b"), Some("c"));
        assert_eq!(names, [None, a, a, b, b, None, c, c]);
    }
}
