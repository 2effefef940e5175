//! Lengths by group, and within it by kind.

use std::{cmp::Reverse, iter::once};

use crate::{
    Distribution, Group, History,
    distribution::Lengths,
    growing::{Growing, Runs},
    map::Map,
};

/// The lengths of each kind in a group, in the order in which kinds occurred. There are few kinds.
pub(crate) struct Kinds<K>(Vec<(K, Lengths)>);

impl<K> Default for Kinds<K> {
    fn default() -> Kinds<K> {
        Kinds(Vec::new())
    }
}

impl<K: PartialEq> Kinds<K> {
    /// The lengths of a kind, to add to.
    pub(crate) fn of(&mut self, kind: K) -> &mut Lengths {
        let known = self.0.iter().position(|(known, _)| *known == kind);
        let place = known.unwrap_or_else(|| {
            self.0.push((kind, Lengths::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }

    pub(crate) fn merge(&mut self, other: Kinds<K>) {
        other.0.into_iter().for_each(|(kind, lengths)| self.of(kind).merge(lengths));
    }

    /// Their distributions.
    pub(crate) fn into_distributions(self) -> impl Iterator<Item = (K, Distribution)> {
        self.0.into_iter().map(|(kind, lengths)| (kind, lengths.into()))
    }
}

/// Collects lengths.
pub(crate) struct Tally<K> {
    /// In the order in which they occurred.
    groups: Vec<(Group, Kinds<K>)>,
    places: Map<Group, u32>,
}

impl<K: Copy + Ord> Tally<K> {
    pub(crate) fn new() -> Tally<K> {
        Tally { groups: Vec::new(), places: Map::default() }
    }

    /// The lengths of a group, to add to.
    pub(crate) fn of(&mut self, group: Group) -> &mut Kinds<K> {
        let next = self.groups.len();
        let place = match self.groups.last() {
            Some((last, _)) if *last == group => next - 1,
            _ => *self.places.entry(group).or_insert_with_key(|group| {
                self.groups.push((group.clone(), Kinds::default()));
                next as u32
            }) as usize,
        };
        &mut self.groups[place].1
    }

    /// The groups with their lengths, in the order in which they occurred.
    pub(crate) fn into_groups(self) -> Vec<(Group, Kinds<K>)> {
        self.groups
    }

    /// Adds everything to the sums of an answer.
    pub(crate) fn add_to(self, growing: &mut Growing<Kinds<K>>) {
        for (group, kinds) in self.groups {
            growing.add(group, kinds, Kinds::merge);
        }
    }
}

/// A row for each kind that has lengths. Over all groups, the row with the largest sum comes first.
pub(crate) fn runs<'h, K: Copy + Ord>(
    history: &'h History,
    group: &Group,
    kinds: Kinds<K>,
    name: impl Fn(K) -> &'static str,
    out: &mut Runs<'_, 'h>,
) {
    let all = kinds.into_distributions();
    let mut rows: Vec<(K, Distribution)> = all.filter(|(_, lengths)| lengths.count() > 0).collect();
    rows.sort_by_key(|(kind, lengths)| (Reverse(lengths.total()), *kind));
    out.head(history, group);
    for (kind, lengths) in rows {
        out.begin(lengths.total());
        out.row(once(name(kind).into()).chain(lengths.figures()), Some(lengths));
    }
}
