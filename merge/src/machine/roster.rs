//! The known LWPs and user threads, by number.
//!
//! The numbers come from files, so no table is indexed by them: memory grows with the entries that live. The hash has a
//! random key, so numbers cannot be chosen to collide. One event needs the same entry several times. All look-ups but
//! the first find it in a small cache, without the hash. An event that changes nothing costs the machine 41 ns of CPU
//! time, and 88 ns with std's maps (one thread of a 2-CPU guest with 8 other compilations on it; this crate optimised;
//! the command is in `cost.rs`, mix "plain events").

use std::{collections::HashMap, hash::Hash};

use foldhash::fast::RandomState;
use sigmund_model::{Lwp, Thread};

/// Number of entries of the cache; a power of two.
const RECENT: usize = 64;

/// The number of an LWP or user thread.
pub(super) trait Number: Copy + Eq + Hash {
    fn low_bits(self) -> usize;
}

impl Number for Lwp {
    fn low_bits(self) -> usize {
        self.0 as usize
    }
}

impl Number for Thread {
    fn low_bits(self) -> usize {
        self.0 as usize
    }
}

/// Entries by number.
#[derive(Debug)]
pub(super) struct Roster<K, V> {
    /// The entries; some places are free.
    entries: Vec<Option<V>>,
    free: Vec<usize>,
    places: HashMap<K, usize, RandomState>,
    /// The numbers that were looked up last, each with the place of its entry. Removed entries are not kept here.
    recent: [Option<(K, usize)>; RECENT],
}

impl<K: Number, V> Roster<K, V> {
    pub(super) fn new() -> Roster<K, V> {
        Roster { entries: Vec::new(), free: Vec::new(), places: HashMap::default(), recent: [None; RECENT] }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    #[inline]
    fn place(&self, number: K) -> Option<usize> {
        match self.recent[number.low_bits() % RECENT] {
            Some((recent, place)) if recent == number => Some(place),
            _ => self.places.get(&number).copied(),
        }
    }

    #[inline]
    pub(super) fn get(&self, number: K) -> Option<&V> {
        self.entries.get(self.place(number)?)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: K) -> Option<&mut V> {
        let place = self.place(number)?;
        self.recent[number.low_bits() % RECENT] = Some((number, place));
        self.entries.get_mut(place)?.as_mut()
    }

    /// The entry of this number. If there is none, `new` makes it.
    #[inline]
    pub(super) fn entry(&mut self, number: K, new: impl FnOnce() -> V) -> &mut V {
        let place = match self.place(number) {
            Some(place) => place,
            None => self.add(number),
        };
        self.recent[number.low_bits() % RECENT] = Some((number, place));
        self.entries[place].get_or_insert_with(new)
    }

    fn add(&mut self, number: K) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.places.insert(number, place);
        place
    }

    /// Removes the entry of this number.
    pub(super) fn remove(&mut self, number: K) -> Option<V> {
        let place = self.places.remove(&number)?;
        self.recent[number.low_bits() % RECENT] = None;
        self.free.push(place);
        self.entries[place].take()
    }

    /// All entries, in no order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().flatten()
    }

    /// All entries, in no order.
    pub(super) fn into_values(self) -> impl Iterator<Item = V> {
        self.entries.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_share_a_place_in_the_cache_are_not_taken_for_each_other() {
        let mut roster = Roster::new();
        for n in [7, 71, 135, u32::MAX] {
            *roster.entry(Lwp(n), || 0) = n;
        }
        assert_eq!(roster.remove(Lwp(71)), Some(71));
        assert_eq!((roster.get(Lwp(71)), roster.len()), (None, 3));
        *roster.entry(Lwp(199), || 0) = 199;
        let found = [7, 71, 135, 199, u32::MAX].map(|n| roster.get_mut(Lwp(n)).copied());
        assert_eq!(found, [Some(7), None, Some(135), Some(199), Some(u32::MAX)]);
        assert_eq!(roster.iter_mut().count(), 4, "the place of the one that is gone is used again");
    }
}
