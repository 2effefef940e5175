//! Walks of many instances, on all CPUs.

use rayon::prelude::*;

use super::{Actor, Piece, Totals, Walks};
use crate::{By, History, Interval};

/// Instances that one task walks, one after the other.
const CHUNK: usize = 4096;

/// Walks back each instance; `add` puts its pieces into the totals of all.
pub(crate) fn sum_walks<'h, I: Sync>(
    history: &'h History,
    by: By,
    instances: &[I],
    walk: impl Fn(&I) -> (Actor, Interval) + Sync,
    add: impl Fn(&I, &Piece, &mut Totals<'h>) + Sync,
) -> Totals<'h> {
    fold_walks(
        history,
        instances,
        || Totals::new(history, by),
        |walks, totals, instance| {
            let (actor, interval) = walk(instance);
            walks.each_piece(actor, interval, |piece| add(instance, &piece, totals));
        },
        Totals::merge,
    )
}

/// Folds over instances in parallel, each task with walks and an accumulator of its own, and merges the accumulators.
pub(crate) fn fold_walks<'h, I: Sync, T: Send>(
    history: &'h History,
    instances: &[I],
    new: impl Fn() -> T + Sync,
    fold: impl Fn(&mut Walks<'h>, &mut T, &I) + Sync,
    merge: impl Fn(&mut T, T) + Sync,
) -> T {
    let part = |chunk: &[I]| {
        let (mut walks, mut sum) = (Walks::new(history), new());
        chunk.iter().for_each(|instance| fold(&mut walks, &mut sum, instance));
        sum
    };
    let merged = |mut sum: T, part: T| {
        merge(&mut sum, part);
        sum
    };
    // Few long chunks: each has totals of its own.
    let length = instances.len().div_ceil(rayon::current_num_threads() * 4).max(CHUNK);
    instances.par_chunks(length).map(part).reduce_with(merged).unwrap_or_else(new)
}
