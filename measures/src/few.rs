//! Maps that mostly have few keys: one for each of millions of threads.

use std::{hash::Hash, mem};

use crate::map::Map;

/// A map. Few entries are a list that is searched from its beginning; more are hashed.
#[derive(Debug)]
pub(crate) enum Few<K, V> {
    List(Vec<(K, V)>),
    Hashed(Map<K, V>),
}

/// The longest list.
const LONGEST: usize = 16;

impl<K, V> Default for Few<K, V> {
    fn default() -> Few<K, V> {
        Few::List(Vec::new())
    }
}

impl<K: Eq + Hash, V: Default> Few<K, V> {
    /// With room for so many entries.
    pub(crate) fn with_capacity(entries: usize) -> Few<K, V> {
        Few::List(Vec::with_capacity(entries.min(LONGEST)))
    }

    /// The value of a key. If it has none, a default is inserted.
    pub(crate) fn of(&mut self, key: K) -> &mut V {
        if let Few::List(list) = self
            && list.len() == LONGEST
            && list.iter().all(|(known, _)| *known != key)
        {
            *self = Few::Hashed(mem::take(list).into_iter().collect());
        }
        match self {
            Few::Hashed(map) => map.entry(key).or_default(),
            Few::List(list) => {
                let place = list.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
                    list.push((key, V::default()));
                    list.len() - 1
                });
                &mut list[place].1
            }
        }
    }

    /// Adds the entries of another.
    pub(crate) fn merge(&mut self, other: Few<K, V>, add: impl Fn(&mut V, V)) {
        other.into_entries().into_iter().for_each(|(key, value)| add(self.of(key), value));
    }
}

impl<K, V> Few<K, V> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Few::List(list) => list.len(),
            Few::Hashed(map) => map.len(),
        }
    }

    /// All entries, in any order.
    pub(crate) fn into_entries(self) -> Vec<(K, V)> {
        match self {
            Few::List(list) => list,
            Few::Hashed(map) => map.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map_however_many_keys_there_are() {
        for count in [0, 1, LONGEST, LONGEST + 1, 100] {
            let mut few: Few<usize, usize> = Few::default();
            for turn in 0..3 {
                (0..count).for_each(|key| *few.of(key) += key + turn);
            }
            let mut twice: Few<usize, usize> = Few::with_capacity(1);
            *twice.of(0) += 1;
            twice.merge(few, |sum, other| *sum += other);
            assert_eq!(twice.len(), count.max(1));
            let mut entries = twice.into_entries();
            entries.sort_unstable();
            let mut expected: Vec<_> = (0..count.max(1)).map(|key| (key, 3 * key + 3)).collect();
            expected[0].1 = if count == 0 { 1 } else { 4 };
            assert_eq!(entries, expected, "{count}");
        }
    }
}
