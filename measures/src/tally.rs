//! Lengths by group, and within it by kind.

use std::cmp::Reverse;

use crate::{
    Distribution, Group, History, Value,
    distribution::Lengths,
    growing::{Growing, Run},
    map::Map,
};

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

    /// Adds all to the sums of an answer.
    pub(crate) fn add_to(self, growing: &mut Growing<Map<K, Lengths>>) {
        for (group, kinds) in self.groups {
            growing.add(group, kinds, |of_group, kinds| {
                kinds
                    .into_iter()
                    .for_each(|(kind, lengths)| of_group.entry(kind).or_default().merge(lengths));
            });
        }
    }
}

/// A row for each kind of a group. Over all groups, that with the longest sum comes first.
pub(crate) fn runs<'h, K: Copy + Ord>(
    history: &'h History,
    group: &Group,
    kinds: Map<K, Lengths>,
    name: impl Fn(K) -> &'static str,
) -> Vec<Run<'h>> {
    let mut rows: Vec<(K, Distribution)> = of_kinds(kinds);
    rows.sort_by_key(|(kind, lengths)| (Reverse(lengths.total()), *kind));
    let run = |(kind, lengths): (K, Distribution)| {
        let cells = cells(history, group, name(kind), &lengths);
        Run { order: lengths.total(), rows: vec![(cells, Some(lengths))] }
    };
    rows.into_iter().map(run).collect()
}

/// The distribution of each kind that has lengths.
pub(crate) fn of_kinds<K>(kinds: Map<K, Lengths>) -> Vec<(K, Distribution)> {
    let all = kinds.into_iter().map(|(kind, lengths)| (kind, lengths.into()));
    all.filter(|(_, lengths): &(K, Distribution)| lengths.count() > 0).collect()
}

/// The cells of a row: group, kind, distribution.
pub(crate) fn cells<'h>(
    history: &'h History,
    group: &Group,
    kind: &'static str,
    lengths: &Distribution,
) -> Vec<Value<'h>> {
    let mut row = group.cells(history);
    row.push(kind.into());
    row.extend(lengths.cells());
    row
}
