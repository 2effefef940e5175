//! Sums over the pieces of many walks.

use std::collections::BTreeMap;

use super::{Blame, Piece, Sum, Waits, sums::Sums};
use crate::{By, History, Interval};

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

    /// Finds the culprits of the waits in a slice, all of whose pieces were added.
    pub(crate) fn add_slice(&mut self, history: &History, by: By, slice: Interval) {
        self.waits.add_slice(history, by, slice);
    }

    /// The sums of each part, the largest first. Culprits are grouped. A wait counts for each stretch of a culprit in it.
    /// `parts` are those that a part of the walks is in.
    pub(crate) fn finish(
        self,
        history: &History,
        by: By,
        parts: impl Fn(u32) -> Vec<u32>,
    ) -> BTreeMap<u32, Vec<(Key, Sum)>> {
        let Totals { causes, others, waits } = self;
        let mut sums: BTreeMap<u32, BTreeMap<Key, Sum>> = BTreeMap::new();
        let mut add = |Of { part, cause, is_own }: Of, blame: Blame, sum: Sum| {
            let key = Key { cause: causes[usize::from(cause)], is_own, culprit: blame.label(history, by) };
            let into = sums.entry(part).or_default().entry(key).or_default();
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
        let sorted = |(part, sums): (u32, BTreeMap<Key, Sum>)| {
            let mut sums: Vec<(Key, Sum)> = sums.into_iter().filter(|(_, sum)| sum.ticks > 0).collect();
            sums.sort_by_key(|(_, sum)| -sum.ticks);
            (part, sums)
        };
        sums.into_iter().map(sorted).collect()
    }
}
