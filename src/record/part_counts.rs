//! Counts what a process recorded in each part of a recording. So the totals can be limited to the parts that are kept.

use fut::drain::DrainSummary;
use sigmund_merge::{PartFile, UserSide, user_part_name};

/// The counts of one user trace.
#[derive(Clone, Debug, Default)]
pub(super) struct PartCounts {
    /// The name that it would have as a single file.
    pub(super) whole: String,
    /// The totals when the last part was closed.
    before: DrainSummary,
    /// The closed parts, with the counts of each; empty if the recording is not cut.
    parts: Vec<(u32, DrainSummary)>,
}

impl PartCounts {
    pub(super) fn new(whole: String) -> PartCounts {
        PartCounts { whole, ..PartCounts::default() }
    }

    /// Stores the totals at the end of a part, and returns its file.
    pub(super) fn close(&mut self, part: u32, total: DrainSummary) -> PartFile {
        let before = std::mem::replace(&mut self.before, total);
        let counted = DrainSummary {
            records: total.records.saturating_sub(before.records),
            bytes: total.bytes.saturating_sub(before.bytes),
            lost: total.lost.saturating_sub(before.lost),
            unfinished: total.unfinished.saturating_sub(before.unfinished),
            unwritten: total.unwritten.saturating_sub(before.unwritten),
            ..DrainSummary::default()
        };
        self.parts.push((part, counted));
        let name = user_part_name(&self.whole, part);
        PartFile {
            name,
            bytes: counted.bytes,
            to_be_made: false,
            events: counted.records,
            lost: counted.lost,
        }
    }

    /// Removes the counts of parts before `first`, which were removed. A process that lives for days has many parts.
    pub(super) fn forget_before(&mut self, first: u32) {
        self.parts.retain(|(part, _)| *part >= first);
    }
}

/// The user side of a process that has ended.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) side: UserSide,
    pub(super) counts: PartCounts,
}

impl Side {
    /// Whether it has a file in this part or a later one.
    pub(super) fn has_part_from(&self, first: u32) -> bool {
        self.counts.parts.iter().any(|(part, _)| *part >= first)
    }

    /// Its entry in the manifest, with the counts of the parts that are kept. `None` if no part is kept. An entry
    /// without parts is returned unchanged.
    pub(super) fn kept_from(self, first: u32) -> Option<UserSide> {
        let Side { side, counts } = self;
        if counts.parts.is_empty() {
            return Some(side);
        }
        let kept = || counts.parts.iter().filter(|(part, _)| *part >= first);
        let sum = |count: fn(&DrainSummary) -> u64| kept().map(|(_, counted)| count(counted)).sum();
        let parts: Vec<u32> = kept().map(|(part, _)| *part).collect();
        let (lost, unfinished) = (sum(|counted| counted.lost), sum(|counted| counted.unfinished));
        let unwritten = sum(|counted| counted.unwritten);
        (!parts.is_empty()).then_some(UserSide { parts, lost, unfinished, unwritten, ..side })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_parts_that_are_kept() {
        let total = |records, bytes, lost| DrainSummary { records, bytes, lost, ..DrainSummary::default() };
        let mut counts = PartCounts::new("user-7.fut".into());
        let file = counts.close(3, total(10, 100, 1));
        assert_eq!((file.name.as_str(), file.events, file.bytes), ("user-7.part-00003.fut", 10, 100));
        let file = counts.close(4, total(25, 180, 1));
        assert_eq!((file.events, file.bytes, file.lost), (15, 80, 0));
        counts.close(5, total(26, 200, 4));
        let side = UserSide { file: "user-7.fut".into(), lost: 4, ..UserSide::default() };
        let side = Side { side, counts };
        assert!(side.has_part_from(5) && !side.has_part_from(6));
        let kept = side.clone().kept_from(4).unwrap();
        assert_eq!((kept.parts, kept.lost), (vec![4, 5], 3));
        assert!(side.clone().kept_from(6).is_none());
        let mut long = side.clone().counts;
        long.forget_before(5);
        assert_eq!(long.parts.len(), 1);
        assert_eq!(
            Side { side: side.side.clone(), counts: long }.kept_from(5).map(|side| side.lost),
            Some(3)
        );
        let whole = Side { side: UserSide { lost: 4, ..UserSide::default() }, counts: PartCounts::default() };
        assert_eq!(whole.kept_from(9).map(|side| side.lost), Some(4));
    }
}
