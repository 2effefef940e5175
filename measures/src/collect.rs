//! Makes collections from many items, on all CPUs.

use rayon::prelude::*;

/// Makes several collections, in the order of the items. `each` adds an item to the collection that has the items just
/// before it.
///
/// Each thread fills its own collections, so nothing is shared. Their number is small, however many items there are.
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
