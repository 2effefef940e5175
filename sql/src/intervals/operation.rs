//! The functions over intervals.

/// The functions over intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    /// The common part of each pair of intervals that overlap.
    Overlap,
    /// The same, and also the parts of the first table's rows that no row of the second overlaps.
    OverlapLeft,
    /// The unions of intervals that overlap or touch.
    Merged,
    /// The time between intervals of one key that no other interval covers.
    Gaps,
    /// The time of each interval that is in no interval inside of it.
    SelfTime,
}

/// All of them.
pub(super) const OPERATIONS: [Operation; 5] =
    [Operation::Overlap, Operation::OverlapLeft, Operation::Merged, Operation::Gaps, Operation::SelfTime];

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Operation::Overlap => "overlap",
            Operation::OverlapLeft => "overlap_left",
            Operation::Merged => "merged",
            Operation::Gaps => "gaps",
            Operation::SelfTime => "self_time",
        }
    }

    /// What a row of the result is.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Operation::Overlap => {
                "The common part of a row of a and one of b that overlap (Perfetto's SPAN_JOIN)."
            }
            Operation::OverlapLeft => {
                "As overlap; and each part of a row of a that nothing in b overlaps, with NULL for b (SPAN_LEFT_JOIN)."
            }
            Operation::Merged => "Intervals that overlap or touch, as one.",
            Operation::Gaps => "The time between the rows of one key that no other row covers.",
            Operation::SelfTime => {
                "A row of a, and the part of its length that is in none of the rows inside of it."
            }
        }
    }

    pub(super) fn by_name(name: &str) -> Option<Operation> {
        OPERATIONS.into_iter().find(|operation| operation.name() == name)
    }

    /// The number of tables that it takes.
    pub(super) fn tables(self) -> usize {
        match self {
            Operation::Overlap | Operation::OverlapLeft => 2,
            Operation::Merged | Operation::Gaps | Operation::SelfTime => 1,
        }
    }

    /// The column that it adds, if any: a count or a length.
    pub(super) fn added(self) -> Option<&'static str> {
        match self {
            Operation::Merged => Some("intervals"),
            Operation::SelfTime => Some("self"),
            Operation::Overlap | Operation::OverlapLeft | Operation::Gaps => None,
        }
    }

    /// Whether the result has the columns of the input rows, in addition to the key.
    pub(super) fn keeps_columns(self) -> bool {
        matches!(self, Operation::Overlap | Operation::OverlapLeft | Operation::SelfTime)
    }
}
