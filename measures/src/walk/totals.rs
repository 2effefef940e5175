//! Sums over the pieces of many walks.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet},
};

use super::{
    Blame, Piece, Sum,
    labels::Labels,
    members::Many,
    ranking::{Largest, Ranking},
    sums::Sums,
    waits::{Culprits, Waits},
    waits_for::WaitsFor,
};
use crate::{By, History, Interval, map::Map};

/// The key of a sum, as text for people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// A word for what happened.
    pub(crate) cause: &'static str,
    /// Whether it was the time of the actor that the walk began with.
    pub(crate) is_own: bool,
    /// What was waited for in the meantime, and who held it, in sums that include this.
    pub(crate) waits_for: Option<String>,
    /// Who or what took the time; `None` for the actor itself.
    pub(crate) culprit: Option<String>,
}

/// The maximum number of culprits of a cause with sums of their own.
pub(crate) const MOST_CULPRITS: usize = 20;

/// The key of a sum, without the culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Of {
    /// The part of the walks.
    pub(super) part: u32,
    /// The index of the cause in `Totals::causes`.
    pub(super) cause: u8,
    /// Whether the actor is the one that the walk began with.
    pub(super) is_own: bool,
    pub(super) waits_for: Option<WaitsFor>,
}

/// Pieces of some walks in a slice.
pub(crate) struct Pieces {
    /// How culprits are grouped.
    by: By,
    /// There are few causes. Texts are compared only if their addresses differ.
    causes: Vec<&'static str>,
    others: Sums,
    waits: Waits<Of>,
    /// Who held the objects that were waited for.
    holders: Sums,
}

impl Pieces {
    /// `by` is the grouping of the answer's culprits. Culprits need not be grouped already; without it there are more
    /// of them.
    pub(crate) fn new(by: By) -> Pieces {
        let (causes, others, waits, holders) = Default::default();
        Pieces { by, causes, others, waits, holders }
    }

    /// Adds a piece of some walks with a word for its cause. `goes_on`: the piece was already counted, and this is the
    /// rest of it.
    pub(crate) fn add(
        &mut self,
        history: &History,
        cause: &'static str,
        walks: Many,
        piece: &Piece,
        goes_on: bool,
    ) {
        let of = Of { part: walks.part, cause: self.cause(cause), is_own: walks.is_own, waits_for: None };
        self.add_of(history, of, Blame::of(history, piece, walks.is_own), (walks, piece, goes_on));
    }

    /// As [`add`](Self::add), with what was waited for in the meantime.
    pub(crate) fn add_with_waits(
        &mut self,
        history: &History,
        cause: &'static str,
        walks: Many,
        piece: &Piece,
        goes_on: bool,
    ) {
        let Many { part, is_own, count } = walks;
        let found = WaitsFor::of(history, piece, is_own);
        let waits_for = found.map(|(waits_for, _)| waits_for);
        let of = Of { part, cause: self.cause(cause), is_own, waits_for };
        if let Some((_, Some(holder))) = found {
            let of_holder = Of { part: 0, cause: 0, is_own: false, waits_for };
            let sum = Sum::of(count, piece.interval.ticks(), goes_on);
            self.holders.add(history, By::Name, (of_holder, Blame::Who(holder)), sum);
        }
        let blame = Blame::of(history, piece, is_own);
        let blame = blame.map(|blame| waits_for.map_or(blame, |waits_for| waits_for.culprit(blame)));
        self.add_of(history, of, blame, (walks, piece, goes_on));
    }

    fn add_of(
        &mut self,
        history: &History,
        of: Of,
        blame: Option<Blame>,
        (walks, piece, goes_on): (Many, &Piece, bool),
    ) {
        let count = walks.count;
        match blame {
            Some(blame) => {
                let sum = Sum::of(count, piece.interval.ticks(), goes_on);
                self.others.add(history, self.by, (of, blame.at_level(self.by, piece)), sum);
            }
            None => self.waits.push(history, of, piece, count),
        }
    }

    /// Adds a part of a piece with a known culprit that is no thread or LWP, for `count` walks.
    pub(crate) fn add_known(
        &mut self,
        (part, cause): (u32, &'static str),
        blame: Blame,
        ticks: i64,
        count: u64,
        goes_on: bool,
    ) {
        let of = Of { part, cause: self.cause(cause), is_own: false, waits_for: None };
        let sum = Sum::of(count, ticks, goes_on);
        self.others.add_grouped((of, blame), sum);
    }

    /// The index of a cause.
    fn cause(&mut self, cause: &'static str) -> u8 {
        let same = |known: &&str| std::ptr::eq(known.as_ptr(), cause.as_ptr()) && known.len() == cause.len();
        let place = self.causes.iter().position(same);
        let place = place.or_else(|| self.causes.iter().position(|known| *known == cause));
        place.unwrap_or_else(|| {
            self.causes.push(cause);
            self.causes.len() - 1
        }) as u8
    }

    /// Adds the sums of another.
    pub(crate) fn merge(&mut self, history: &History, other: Pieces) {
        let places: Vec<u8> = other.causes.iter().map(|cause| self.cause(cause)).collect();
        let of = |of: Of| Of { cause: places[usize::from(of.cause)], ..of };
        for ((key, blame), sum) in other.others.finish(history, other.by) {
            self.others.add_grouped((of(key), blame), sum);
        }
        self.waits.merge(other.waits, of);
        for (key, sum) in other.holders.finish(history, By::Name) {
            self.holders.add_grouped(key, sum);
        }
    }
}

/// Sums of pieces for several parts of the walks, slice by slice.
pub(crate) struct Totals {
    /// The sums that a part of the walks counts in.
    parts: fn(u32) -> Vec<u32>,
    /// The pieces that were added since the last slice.
    pieces: Pieces,
    labels: Labels,
    others: Map<Of, Ranking>,
    waits: Culprits<Of>,
    /// By the names of holders without numbers.
    holders: Map<WaitsFor, Ranking>,
    holder_labels: Labels,
}

impl Totals {
    /// `parts` gives the sums that a part of the walks counts in.
    pub(crate) fn new(parts: fn(u32) -> Vec<u32>) -> Totals {
        let (labels, others, holders, holder_labels) = Default::default();
        let (pieces, waits) = (Pieces::new(By::Thread), Culprits::new(MOST_CULPRITS));
        Totals { parts, pieces, labels, others, waits, holders, holder_labels }
    }

    /// The sums to which the pieces of the next slice are added.
    pub(crate) fn pieces(&mut self) -> &mut Pieces {
        &mut self.pieces
    }

    /// Finds the culprits of the waits in a slice. All pieces of the slice must have been added.
    pub(crate) fn add_slice(&mut self, history: &History, by: By, slice: Interval) {
        let parts = self.parts;
        let all = |of: Of| parts(of.part).into_iter().map(move |part| Of { part, ..of });
        self.add_known(history, by);
        let waits = std::mem::take(&mut self.pieces.waits);
        self.waits.add_slice(history, (by, &mut self.labels), slice, waits, all);
        for ranking in self.others.values_mut() {
            ranking.settle(history, &self.labels, slice.from);
        }
    }

    /// Adds the pieces whose culprits are known.
    fn add_known(&mut self, history: &History, by: By) {
        for ((of, blame), sum) in std::mem::take(&mut self.pieces.others).finish(history, by) {
            let label = self.labels.of(history, by, blame);
            for part in (self.parts)(of.part) {
                let new = || Ranking::new(MOST_CULPRITS);
                self.others.entry(Of { part, ..of }).or_insert_with(new).add(label, sum);
            }
        }
        for ((of, holder), sum) in std::mem::take(&mut self.pieces.holders).finish(history, By::Name) {
            let Some(waits_for) = of.waits_for else { continue };
            let label = self.holder_labels.of(history, By::Pattern, holder);
            self.holders.entry(waits_for).or_insert_with(|| Ranking::new(usize::MAX)).add(label, sum);
        }
    }

    /// The sums of each part, the largest first. At the end are the sums of culprits that are not among the first
    /// [`MOST_CULPRITS`] of a cause, as one sum. Culprits are grouped. A wait counts for each stretch of a culprit in
    /// it.
    pub(crate) fn finish(mut self, history: &History, by: By) -> BTreeMap<u32, Vec<(Key, Sum)>> {
        self.add_known(history, by);
        let Totals { pieces, mut labels, others, waits, holders, holder_labels, .. } = self;
        let held_by = |waits_for: WaitsFor| -> Option<String> {
            let holders = holders.get(&waits_for)?;
            holders.largest(history, &holder_labels)
        };
        let mut all: Map<Of, Largest> = Map::default();
        for (of, ranking) in others {
            all.insert(of, ranking.finish(history, &labels));
        }
        for (of, largest) in waits.finish(history, (by, &mut labels)) {
            all.entry(of).or_default().merge(largest);
        }
        let other_waits =
            cut_waits(&mut all, |waits_for| waits_for.label(history, held_by(waits_for).as_deref(), 0));
        // With each, whether it is the sum of several others.
        let mut of_parts: BTreeMap<u32, Vec<(bool, Key, Sum)>> = BTreeMap::new();
        for (Of { part, cause, is_own, waits_for }, mut largest) in all {
            let waits_for = waits_for
                .map(|waits_for| waits_for.label(history, held_by(waits_for).as_deref(), other_waits));
            largest.cut(MOST_CULPRITS, history, &labels);
            let Largest { sums, others } = largest;
            let cause = pieces.causes[usize::from(cause)];
            let key = |culprit| Key { cause, is_own, waits_for: waits_for.clone(), culprit };
            let of_part = of_parts.entry(part).or_default();
            of_part
                .extend(sums.into_iter().map(|(label, sum)| (false, key(labels.text(history, label)), sum)));
            let others_text = format!("{} others", others.culprits);
            of_part.extend((others.sum.ticks > 0).then(|| (true, key(Some(others_text)), others.sum)));
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

/// Keeps the [`MOST_CULPRITS`] objects that were waited for longest, over all sums, and combines the others. Returns
/// the number of others.
fn cut_waits(all: &mut Map<Of, Largest>, label: impl Fn(WaitsFor) -> String) -> usize {
    let mut sums: Map<WaitsFor, i64> = Map::default();
    for (of, largest) in &*all {
        if let Some(waits_for) = of.waits_for {
            *sums.entry(waits_for).or_insert(0) += largest.ticks();
        }
    }
    if sums.len() <= MOST_CULPRITS {
        return 0;
    }
    let mut sums: Vec<(WaitsFor, i64)> = sums.into_iter().collect();
    sums.sort_by_cached_key(|(waits_for, ticks)| (Reverse(*ticks), label(*waits_for)));
    let others: BTreeSet<WaitsFor> = sums.drain(MOST_CULPRITS..).map(|(waits_for, _)| waits_for).collect();
    let is_other = |of: &Of| of.waits_for.is_some_and(|waits_for| others.contains(&waits_for));
    let moved: Vec<(Of, Largest)> = all.extract_if(|of, _| is_other(of)).collect();
    for (of, largest) in moved {
        all.entry(Of { waits_for: Some(WaitsFor::Others), ..of }).or_default().merge(largest);
    }
    others.len()
}
