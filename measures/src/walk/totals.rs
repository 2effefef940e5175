//! Sums over the pieces of many walks.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

use rayon::prelude::*;

use super::{
    Blame, Piece, Sum, Waits,
    labels::{Label, Labels},
    sums::Sums,
};
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
        let mut sums: Map<Of, Vec<(Label, Sum)>> = Map::default();
        let all = |of: Of| parts(of.part).into_iter().map(move |part| Of { part, ..of });
        for ((of, blame), sum) in others.finish() {
            let label = labels.of(blame);
            all(of).for_each(|of| sums.entry(of).or_default().push((label, sum)));
        }
        for (of, shares) in waits.finish(all) {
            let shares = shares.into_iter().map(|(blame, sum)| (labels.of(blame), sum));
            sums.entry(of).or_default().extend(shares);
        }
        let largest = |(of, sums)| (of, Largest::of(sums, &labels));
        let largest: Vec<(Of, Largest)> = sums.into_par_iter().map(largest).collect();
        // Each with whether it is of several others.
        let mut of_parts: BTreeMap<u32, Vec<(bool, Key, Sum)>> = BTreeMap::new();
        for (Of { part, cause, is_own }, Largest { sums, others: (count, sum) }) in largest {
            let key = |culprit| Key { cause: causes[usize::from(cause)], is_own, culprit };
            let of_part = of_parts.entry(part).or_default();
            of_part.extend(sums.into_iter().map(|(culprit, sum)| (false, key(culprit), sum)));
            of_part.extend((count > 0).then(|| (true, key(Some(format!("{count} others"))), sum)));
        }
        for sums in of_parts.values_mut() {
            sums.sort_unstable_by(|(is_of_others, key, sum), (other_is, other_key, other)| {
                let by_ticks = if *is_of_others { Ordering::Equal } else { other.ticks.cmp(&sum.ticks) };
                is_of_others.cmp(other_is).then(by_ticks).then_with(|| key.cmp(other_key))
            });
        }
        let without = |(_, key, sum)| (key, sum);
        let of_parts = of_parts.into_iter().filter(|(_, sums)| !sums.is_empty());
        of_parts.map(|(part, sums)| (part, sums.into_iter().map(without).collect())).collect()
    }
}

/// The largest sums of a cause, with their culprits, and the number and sum of the rest.
#[derive(Debug, PartialEq)]
struct Largest {
    sums: Vec<(Option<String>, Sum)>,
    others: (usize, Sum),
}

impl Largest {
    /// Of sums that may have several of one culprit. Of equal ones those count as larger whose text is less.
    fn of(mut sums: Vec<(Label, Sum)>, labels: &Labels<'_>) -> Largest {
        sums.sort_unstable_by_key(|(label, _)| *label);
        sums.dedup_by(|(label, sum), (before, into)| {
            let is_same = label == before;
            if is_same {
                into.count += sum.count;
                into.ticks += sum.ticks;
            }
            is_same
        });
        sums.retain(|(_, sum)| sum.ticks > 0);
        let mut others = Vec::new();
        if sums.len() > MOST_CULPRITS {
            let by_ticks = |(_, sum): &(Label, Sum)| Reverse(sum.ticks);
            let (_, (_, last), _) = sums.select_nth_unstable_by_key(MOST_CULPRITS - 1, by_ticks);
            let least = last.ticks;
            // Which of those that are as large as the last of the largest have a row: the only ones whose texts are compared.
            let larger = sums.iter().filter(|(_, sum)| sum.ticks > least).count();
            sums.sort_unstable_by_key(|(_, sum)| (sum.ticks != least, Reverse(sum.ticks)));
            let equal = sums.iter().take_while(|(_, sum)| sum.ticks == least).count();
            sums[..equal].sort_by_cached_key(|(label, _)| labels.text(*label));
            others = sums.split_off(equal + larger);
            others.extend(sums.drain(MOST_CULPRITS - larger..equal));
        }
        let mut sum_of_others = Sum::default();
        for (_, Sum { count, ticks }) in &others {
            sum_of_others.count += count;
            sum_of_others.ticks += ticks;
        }
        let sums = sums.into_iter().map(|(label, sum)| (labels.text(label), sum)).collect();
        Largest { sums, others: (others.len(), sum_of_others) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Actor;

    #[test]
    fn the_smallest_culprits_of_a_cause_are_one_sum() {
        let history = History::default();
        let labels = Labels::new(&history, By::Thread);
        // Of 45 threads; some are there twice, and those from 10 to 29 are equal.
        let ticks = |thread: u64| if (10..30).contains(&thread) { 70 } else { 100 - thread as i64 };
        let mut sums = Vec::new();
        for thread in (0..45).rev() {
            let label = Label::Who(Actor::Thread(thread));
            sums.push((label, Sum { count: 1, ticks: ticks(thread) - 30 }));
            sums.push((label, Sum { count: 1, ticks: 30 }));
        }
        let Largest { mut sums, others } = Largest::of(sums, &labels);
        sums.sort_by_key(|(text, sum)| (Reverse(sum.ticks), text.clone()));
        let of = |thread: u64| (Some(thread.to_string()), Sum { count: 2, ticks: ticks(thread) });
        assert_eq!(sums, (0..20).map(of).collect::<Vec<_>>());
        assert_eq!(others, (25, Sum { count: 50, ticks: (20..45).map(ticks).sum() }));
    }

    #[test]
    fn few_culprits_leave_no_others() {
        let history = History::default();
        let labels = Labels::new(&history, By::Thread);
        let sums = (0..20).map(|thread| (Label::Who(Actor::Thread(thread)), Sum { count: 1, ticks: 1 }));
        let Largest { sums, others } = Largest::of(sums.collect(), &labels);
        assert_eq!((sums.len(), others), (20, (0, Sum::default())));
    }
}
