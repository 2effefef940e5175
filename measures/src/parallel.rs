//! Work on all CPUs.
//!
//! What rayon makes of a closure is generic in it: jobs, splitting, stealing, and what catches a panic. Of this crate's
//! machine code, 38 % was that. Here, rayon gets one closure, of all the work there is.

use std::{
    iter,
    sync::{Mutex, MutexGuard, PoisonError},
    vec,
};

use rayon::prelude::*;

/// The number of collections that [`fold`] makes for each CPU: if one takes longer, the other CPUs have others meanwhile.
const PER_CPU: usize = 8;

/// What a function makes of each item, in the order of the items. Items should be few and large: chunks, or parts.
pub(crate) fn map<I, R>(items: I, each: impl Fn(I::Item) -> R + Sync) -> Vec<R>
where
    I: IntoIterator<Item: Send, IntoIter: ExactSizeIterator + Send>,
    R: Send,
{
    let items = items.into_iter();
    let made: Vec<Mutex<Option<R>>> = iter::repeat_with(Mutex::default).take(items.len()).collect();
    let items = Mutex::new(items.zip(&made));
    // If there are many items, whoever is done with one takes the next: they are not jobs of their own.
    let jobs = made.len().min(PER_CPU * rayon::current_num_threads());
    times(jobs, &|| {
        loop {
            let next = lock(&items).next();
            let Some((item, made)) = next else { break };
            *lock(made) = Some(each(item));
        }
    });
    drop(items);
    made.into_iter().filter_map(|made| made.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Makes several collections, in the order of the items. `add` adds an item to the collection that has the items just
/// before it.
///
/// Each thread fills its own collections, so nothing is shared. Their number is small, however many items there are.
pub(crate) fn fold<T: Sync, C: Send>(
    items: &[T],
    new: impl Fn() -> C + Sync,
    add: impl Fn(&mut C, &T) + Sync,
) -> Vec<C> {
    let length = items.len().div_ceil(PER_CPU * rayon::current_num_threads()).max(1);
    map(items.chunks(length), |chunk| {
        let mut collection = new();
        chunk.iter().for_each(|item| add(&mut collection, item));
        collection
    })
}

/// Items in chunks of this length that own them.
pub(crate) fn chunks<T>(items: Vec<T>, length: usize) -> Chunks<T> {
    Chunks { rest: items.into_iter(), length }
}

/// Made by [`chunks`].
pub(crate) struct Chunks<T> {
    rest: vec::IntoIter<T>,
    length: usize,
}

impl<T> Iterator for Chunks<T> {
    type Item = Vec<T>;

    fn next(&mut self) -> Option<Vec<T>> {
        let chunk: Vec<T> = self.rest.by_ref().take(self.length).collect();
        (!chunk.is_empty()).then_some(chunk)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let chunks = self.rest.len().div_ceil(self.length);
        (chunks, Some(chunks))
    }
}

impl<T> ExactSizeIterator for Chunks<T> {}

/// Calls a function so many times.
fn times(count: usize, call: &(dyn Fn() + Sync)) {
    match count {
        0 | 1 => (0..count).for_each(|_| call()),
        _ => (0..count).into_par_iter().with_max_len(1).for_each(|_| call()),
    }
}

/// Whoever panicked while it was locked, the panic goes on, and nobody looks into it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_in_the_order_of_the_items() {
        for count in [0, 1, 2, 3, 1000] {
            let squares: Vec<usize> = (0..count).map(|n| n * n).collect();
            assert_eq!(map(0..count, |n| n * n), squares);
            let all: Vec<usize> = (0..count).collect();
            let parts = fold(&all, Vec::new, |part, n| part.push(n * n));
            assert!(parts.len() <= PER_CPU * rayon::current_num_threads());
            assert_eq!(parts.concat(), squares);
        }
    }

    #[test]
    fn chunks_own_all_items() {
        let items: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(chunks(items.clone(), 4).len(), 3);
        let lengths = map(chunks(items.clone(), 4), |chunk| chunk.len());
        assert_eq!(lengths, [4, 4, 2]);
        assert_eq!(map(chunks(items.clone(), 4), |chunk| chunk).concat(), items);
    }

    #[test]
    #[should_panic(expected = "seven")]
    fn a_panic_reaches_the_caller() {
        map(0..100, |n| assert_ne!(n, 7, "seven"));
    }
}
