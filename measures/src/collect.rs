//! Collections from many items, on all CPUs.

use rayon::prelude::*;

/// Several collections, in the order of the items: `each` adds an item to the one that has those just before it.
///
/// Each CPU has its own, so that nothing is shared; there are few of them, however many items there are.
pub(crate) fn collect<T: Sync, C: Send>(
    items: &[T],
    new: impl Fn() -> C + Sync + Send,
    each: impl Fn(&mut C, &T) + Sync + Send,
) -> Vec<C> {
    let add = |mut collection: C, item: &T| {
        each(&mut collection, item);
        collection
    };
    items.par_iter().fold(new, add).collect()
}
