//! Lengths by group, and within it by kind.

use std::cmp::Reverse;

use crate::{Distribution, Group, History, Value, distribution::Lengths, map::Map};

/// Collects lengths.
pub(crate) struct Tally<K> {
    groups: Map<Group, Map<K, Lengths>>,
}

impl<K: Copy + Ord + std::hash::Hash> Tally<K> {
    pub(crate) fn new() -> Tally<K> {
        Tally { groups: Map::default() }
    }

    /// The lengths of a group, to add to.
    pub(crate) fn of(&mut self, group: Group) -> &mut Map<K, Lengths> {
        self.groups.entry(group).or_default()
    }

    /// Adds those of another.
    pub(crate) fn merge(&mut self, other: Tally<K>) {
        for (group, kinds) in other.groups {
            let of_group = self.of(group);
            for (kind, lengths) in kinds {
                of_group.entry(kind).or_default().merge(lengths);
            }
        }
    }

    /// The distribution of each group and kind, the longest sum first.
    pub(crate) fn finish(self) -> Vec<(Group, K, Distribution)> {
        let kinds = |(group, kinds): (Group, Map<K, Lengths>)| {
            kinds.into_iter().map(move |(kind, lengths)| (group.clone(), kind, lengths.into()))
        };
        let mut rows: Vec<(Group, K, Distribution)> = self.groups.into_iter().flat_map(kinds).collect();
        rows.retain(|(_, _, lengths)| lengths.count() > 0);
        rows.sort_by_cached_key(|(group, kind, lengths)| (Reverse(lengths.total()), group.clone(), *kind));
        rows
    }
}

/// The cells of a row: group, kind, distribution.
pub(crate) fn cells(
    history: &History,
    group: &Group,
    kind: &'static str,
    lengths: &Distribution,
) -> Vec<Value> {
    let mut row = group.cells(history);
    row.push(kind.into());
    row.extend(lengths.cells());
    row
}
