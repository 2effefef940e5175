//! Intervals of rows made a partition of time: holes are filled, and what overlaps is cut.

/// The last end of each row.
pub(crate) struct Sequence {
    /// Of a row that has no interval yet, `NONE`.
    ends: Vec<i64>,
}

const NONE: i64 = i64::MIN;

/// What one interval adds to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// The hole before it.
    pub(crate) hole: Option<(i64, i64)>,
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl Added {
    /// Intervals that it adds.
    pub(crate) fn count(&self) -> usize {
        1 + usize::from(self.hole.is_some())
    }
}

impl Sequence {
    /// So many rows without intervals.
    pub(crate) fn new(rows: usize) -> Sequence {
        Sequence { ends: vec![NONE; rows] }
    }

    /// What `[from, to)` adds to a row; nothing, if the row is already beyond it, or it is empty.
    pub(crate) fn add(&mut self, row: usize, from: i64, to: i64) -> Option<Added> {
        let end = std::mem::replace(&mut self.ends[row], NONE);
        let from = from.max(end);
        if to <= from {
            self.ends[row] = end;
            return None;
        }
        self.ends[row] = to;
        Some(Added { hole: (end != NONE && from > end).then_some((end, from)), from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // row 0  |--a--|    |--b--|        hole between the two
    //               |------c-----|     begins inside of b: cut
    //            |-d-|                 wholly before the end: nothing
    #[test]
    fn holes_are_filled_and_overlaps_are_cut() {
        let mut sequence = Sequence::new(2);
        let added = |hole, from, to| Some(Added { hole, from, to });
        assert_eq!(sequence.add(0, 10, 20), added(None, 10, 20));
        assert_eq!(sequence.add(0, 30, 40), added(Some((20, 30)), 30, 40));
        assert_eq!(sequence.add(0, 35, 50), added(None, 40, 50));
        assert_eq!(sequence.add(0, 45, 48), None);
        assert_eq!(sequence.add(0, 50, 50), None);
        assert_eq!(sequence.add(1, 5, 6), added(None, 5, 6));
        assert_eq!(sequence.add(0, 50, 51), added(None, 50, 51));
    }
}
