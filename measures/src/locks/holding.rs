//! Which holder of a lock counts at each instant, and what it does then.

use std::{cmp::Reverse, collections::BinaryHeap};

use sigmund_model::{LwpState, ThreadState};

use crate::{Interval, Searches, groups::Owner, map::Map, stretches};

/// What a holder did, as it matters to waiters. If several hold a lock (readers), the first of these classes counts: a
/// lock is not in a convoy while one of its holders runs, or may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Active,
    Unknown,
    Off,
}

/// A stretch in which one holder did one thing. It may extend beyond the waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Does {
    pub(super) interval: Interval,
    pub(super) class: Class,
    pub(super) holder: Owner,
}

/// What the holder that counts did while somebody waited. The result is sorted and disjoint. `holds` are in the order
/// of acquisition.
///
/// The number of steps is that of the holds, and of the states of holders in which somebody waited. If holds overlap,
/// there is a logarithmic factor.
pub(super) fn each_holder(
    searches: &mut Searches<'_>,
    holds: Vec<(Interval, Owner)>,
    waited: &[Interval],
) -> Vec<Does> {
    let are_disjoint = are_disjoint(&holds);
    let mut pieces = Vec::with_capacity(holds.len());
    let mut runs: Map<Owner, usize> = Map::default();
    for (hold, holder) in holds {
        let run = runs.entry(holder).or_default();
        add_pieces(&mut pieces, searches, holder, hold, waited, run);
    }
    if are_disjoint { pieces } else { decisive(&pieces) }
}

fn are_disjoint(holds: &[(Interval, Owner)]) -> bool {
    holds.is_sorted_by(|(one, _), (next, _)| one.to <= next.from)
}

/// Adds what a holder did in an interval. Where it has no state, it is unknown.
fn add_pieces(
    pieces: &mut Vec<Does>,
    searches: &mut Searches<'_>,
    holder: Owner,
    hold: Interval,
    waited: &[Interval],
    run: &mut usize,
) {
    let mut push = |interval, class| pieces.push(Does { interval, class, holder });
    match holder {
        Owner::Thread(thread) => {
            let cursor = searches.threads.of(thread);
            let mut hints = (cursor.hints.0, *run);
            stretches(cursor.track, waited, hold, &mut hints, |interval, stay| {
                push(
                    interval,
                    match stay.map(|stay| stay.state) {
                        Some(ThreadState::Active) => Class::Active,
                        None | Some(ThreadState::Unknown | ThreadState::Mounted) => Class::Unknown,
                        Some(_) => Class::Off,
                    },
                );
            });
            (cursor.hints.0, *run) = hints;
        }
        Owner::Lwp(lwp) => {
            let cursor = searches.lwps.of(lwp.into());
            let mut hints = (cursor.hints.0, *run);
            stretches(cursor.track, waited, hold, &mut hints, |interval, stay| {
                push(
                    interval,
                    match stay.map(|stay| stay.state) {
                        Some(LwpState::Running) => Class::Active,
                        None | Some(LwpState::Unknown) => Class::Unknown,
                        Some(_) => Class::Off,
                    },
                );
            });
            (cursor.hints.0, *run) = hints;
        }
    }
}

/// Disjoint stretches. At each instant, the piece with the first class decides; of several with the same class, the one
/// that was added first.
fn decisive(pieces: &[Does]) -> Vec<Does> {
    let mut begins: Vec<u32> = (0..pieces.len() as u32).collect();
    begins.sort_unstable_by_key(|place| pieces[*place as usize].interval.from);
    let mut begins = begins.into_iter().peekable();
    // For each class, the pieces that have begun. Pieces that have ended are removed when they come to the top.
    let mut open: [BinaryHeap<Reverse<u32>>; 3] = Default::default();
    let mut ends: BinaryHeap<Reverse<i64>> = BinaryHeap::new();
    let mut decided: Vec<Does> = Vec::with_capacity(pieces.len());
    let mut at = i64::MIN;
    loop {
        for heap in &mut open {
            while heap.peek().is_some_and(|Reverse(place)| pieces[*place as usize].interval.to <= at) {
                heap.pop();
            }
        }
        while ends.peek().is_some_and(|Reverse(end)| *end <= at) {
            ends.pop();
        }
        let next_begin = begins.peek().map(|place| pieces[*place as usize].interval.from);
        let next_end = ends.peek().map(|Reverse(end)| *end);
        let Some(next) = next_begin.into_iter().chain(next_end).min() else { return decided };
        if let Some(Reverse(first)) = open.iter().find_map(BinaryHeap::peek).filter(|_| at < next) {
            let Does { class, holder, .. } = pieces[*first as usize];
            decided.push(Does { interval: Interval::new(at, next), class, holder });
        }
        at = next;
        while let Some(place) = begins.next_if(|place| pieces[*place as usize].interval.from <= at) {
            let piece = &pieces[place as usize];
            open[piece.class as usize].push(Reverse(place));
            ends.push(Reverse(piece.interval.to));
        }
    }
}
