//! Sums over the pieces of many walks.

use std::collections::BTreeMap;

use super::{Blame, Piece, Sum, Waits, labels::Labels, sums::Sums};
use crate::{By, History, Interval, map::Map};

/// What a sum is of, for people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// A word for what happened.
    pub(crate) cause: &'static str,
    /// Whether it was the time of the actor that the walk began with.
    pub(crate) is_own: bool,
    /// Who or what; `None` for itself.
    pub(crate) culprit: Option<String>,
}

/// So many culprits of a cause have sums of their own.
pub(crate) const MOST_CULPRITS: usize = 20;

/// What a sum is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Of {
    /// Which walks.
    pub(super) part: u32,
    /// Its place in `Totals::causes`.
    pub(super) cause: u8,
    /// Whether the actor is the one that the walk began with.
    pub(super) is_own: bool,
}

/// Sums of pieces, of several parts of all walks.
#[derive(Default)]
pub(crate) struct Totals {
    /// There are few. Texts are compared only if their addresses differ.
    causes: Vec<&'static str>,
    others: Sums,
    waits: Waits<Of>,
}

impl Totals {
    /// Adds a piece, by this word, of a walk of this part; and whether its actor is the one that the walk began with, where
    /// that matters. `goes_on`: the piece counts already, and this is the rest of it.
    pub(crate) fn add(
        &mut self,
        history: &History,
        (part, cause, is_own): (u32, &'static str, bool),
        piece: &Piece,
        goes_on: bool,
    ) {
        let of = Of { part, cause: self.cause(cause), is_own };
        match Blame::of(history, piece, is_own) {
            Some(blame) => {
                let sum = Sum { count: u64::from(!goes_on), ticks: piece.interval.ticks() };
                self.others.add((of, blame), sum);
            }
            None => self.waits.push(history, of, piece),
        }
    }

    /// Adds a part of a piece whose culprit is known.
    pub(crate) fn add_known(
        &mut self,
        (part, cause): (u32, &'static str),
        blame: Blame,
        ticks: i64,
        goes_on: bool,
    ) {
        let of = Of { part, cause: self.cause(cause), is_own: false };
        self.others.add((of, blame), Sum { count: u64::from(!goes_on), ticks });
    }

    /// The place of a cause.
    fn cause(&mut self, cause: &'static str) -> u8 {
        let same = |known: &&str| std::ptr::eq(known.as_ptr(), cause.as_ptr()) && known.len() == cause.len();
        let place = self.causes.iter().position(same);
        let place = place.or_else(|| self.causes.iter().position(|known| *known == cause));
        place.unwrap_or_else(|| {
            self.causes.push(cause);
            self.causes.len() - 1
        }) as u8
    }

    /// Adds all of another, which has seen no slice.
    pub(crate) fn merge(&mut self, other: Totals) {
        let places: Vec<u8> = other.causes.iter().map(|cause| self.cause(cause)).collect();
        let of = |of: Of| Of { cause: places[usize::from(of.cause)], ..of };
        for ((key, blame), sum) in other.others.finish() {
            self.others.add((of(key), blame), sum);
        }
        self.waits.merge(other.waits, of);
    }

    /// Takes away what was added once too often: pieces of this part of the walks, which another has after all slices.
    pub(crate) fn take_away(&mut self, other: Totals) {
        let places: Vec<u8> = other.causes.iter().map(|cause| self.cause(cause)).collect();
        let of = |of: Of| Of { cause: places[usize::from(of.cause)], ..of };
        for ((key, blame), Sum { count, ticks }) in other.others.finish() {
            self.others.take_away((of(key), blame), Sum { count, ticks });
        }
        self.waits.take_away(other.waits, of);
    }

    /// Finds the culprits of the waits in a slice, all of whose pieces were added.
    pub(crate) fn add_slice(&mut self, history: &History, by: By, slice: Interval) {
        self.waits.add_slice(history, by, slice);
    }

    /// The sums of each part, the largest first, and at the end those of the culprits after the first [`MOST_CULPRITS`] of a
    /// cause as one. Culprits are grouped. A wait counts for each stretch of a culprit in it.
    /// `parts` are those that a part of the walks is in.
    pub(crate) fn finish(
        self,
        history: &History,
        by: By,
        parts: impl Fn(u32) -> Vec<u32>,
    ) -> BTreeMap<u32, Vec<(Key, Sum)>> {
        let Totals { causes, others, waits } = self;
        let mut labels = Labels::new(history, by);
        let mut sums: Map<(Of, u32), Sum> = Map::default();
        let mut add = |of: Of, blame: Blame, sum: Sum| {
            let into = sums.entry((of, labels.number(blame))).or_default();
            into.count += sum.count;
            into.ticks += sum.ticks;
        };
        let all = |of: Of| parts(of.part).into_iter().map(move |part| Of { part, ..of });
        for ((of, blame), sum) in others.finish() {
            all(of).for_each(|of| add(of, blame, sum));
        }
        for (of, shares) in waits.finish(all) {
            shares.into_iter().for_each(|(blame, sum)| add(of, blame, sum));
        }
        let mut of_parts: BTreeMap<u32, Vec<(Key, Sum)>> = BTreeMap::new();
        for ((Of { part, cause, is_own }, label), sum) in sums {
            let culprit = labels.text(label).map(str::to_string);
            let key = Key { cause: causes[usize::from(cause)], is_own, culprit };
            of_parts.entry(part).or_default().push((key, sum));
        }
        for sums in of_parts.values_mut() {
            sums.retain(|(_, sum)| sum.ticks > 0);
            sums.sort_unstable_by(|(a, of_a), (b, of_b)| of_b.ticks.cmp(&of_a.ticks).then_with(|| a.cmp(b)));
            unite_others(sums);
        }
        of_parts
    }
}

/// Makes one sum of those of each cause after its first, which are the largest.
fn unite_others(sums: &mut Vec<(Key, Sum)>) {
    let mut seen: BTreeMap<(&'static str, bool), (usize, Sum)> = BTreeMap::new();
    sums.retain(|(Key { cause, is_own, .. }, sum)| {
        let (culprits, others) = seen.entry((*cause, *is_own)).or_default();
        *culprits += 1;
        if *culprits > MOST_CULPRITS {
            others.count += sum.count;
            others.ticks += sum.ticks;
        }
        *culprits <= MOST_CULPRITS
    });
    for ((cause, is_own), (culprits, others)) in seen {
        if culprits > MOST_CULPRITS {
            let culprit = Some(format!("{} others", culprits - MOST_CULPRITS));
            sums.push((Key { cause, is_own, culprit }, others));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_culprits_of_a_cause_are_one_sum() {
        let sum = |cause, culprit: u64| {
            let key = Key { cause, is_own: false, culprit: Some(format!("{culprit}")) };
            (key, Sum { count: 1, ticks: 100 - culprit as i64 })
        };
        let mut sums: Vec<_> = (0..20).map(|culprit| sum("ready", culprit)).collect();
        sums.extend((0..25).map(|culprit| sum("stalled", culprit)));
        let before = sums.clone();
        unite_others(&mut sums);
        assert_eq!(sums[..40], before[..40]);
        let (key, others) = &sums[40];
        assert_eq!((key.cause, key.culprit.as_deref()), ("stalled", Some("5 others")));
        assert_eq!(*others, Sum { count: 5, ticks: (76..=80).sum() });
        assert_eq!(sums.len(), 41);
    }
}
