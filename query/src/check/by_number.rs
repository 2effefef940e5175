//! A map with numbers as keys. The numbers of user threads, for example, have few holes: such keys are indices into a
//! list. Only the other keys are hashed.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// The length of the list is at most this, plus twice the number of keys in the list.
const FREE: usize = 1024;

/// Values by number.
#[derive(Clone, Debug)]
pub(super) struct ByNumber<V> {
    near: Vec<Option<V>>,
    /// The number of keys in the list.
    there: usize,
    far: HashMap<i64, V, RandomState>,
}

impl<V> Default for ByNumber<V> {
    fn default() -> ByNumber<V> {
        ByNumber { near: Vec::new(), there: 0, far: HashMap::default() }
    }
}

impl<V> ByNumber<V> {
    /// The value of a key.
    #[inline]
    pub(super) fn get(&self, key: i64) -> Option<&V> {
        let near = usize::try_from(key).ok().and_then(|place| self.near.get(place)?.as_ref());
        near.or_else(|| if self.far.is_empty() { None } else { self.far.get(&key) })
    }

    /// Sets the value of a key, and returns its previous value.
    #[inline]
    pub(super) fn insert(&mut self, key: i64, value: V) -> Option<V> {
        let most = FREE + 2 * self.there;
        let Some(place) = usize::try_from(key).ok().filter(|place| *place < most.max(self.near.len())) else {
            return self.far.insert(key, value);
        };
        if place >= self.near.len() {
            self.near.resize_with(place + 1, || None);
        }
        let before = self.near[place].replace(value);
        if before.is_some() {
            return before;
        }
        self.there += 1;
        if self.far.is_empty() { None } else { self.far.remove(&key) }
    }

    /// All values, in no order.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.near.iter().flatten().chain(self.far.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map_whatever_the_order_of_its_keys() {
        let keys = [
            (0..5000).collect::<Vec<i64>>(),
            (0..5000).rev().collect(),
            (0..5000).map(|n| n * n % 4999 * 3).collect(),
            vec![i64::MIN, -1, i64::MAX, 0, 1 << 40, -1, 1 << 40, 3000, 3000],
        ];
        for keys in keys {
            let (mut map, mut expected) = (ByNumber::default(), HashMap::new());
            for (value, key) in keys.iter().enumerate() {
                assert_eq!(map.insert(*key, value), expected.insert(*key, value));
                assert!(map.near.len() <= FREE + 2 * map.there.max(1));
            }
            assert!(expected.iter().all(|(key, value)| map.get(*key) == Some(value)));
            assert_eq!((map.get(7777), map.get(-7)), (expected.get(&7777), None));
            let (mut found, mut all): (Vec<_>, Vec<_>) =
                (map.values().collect(), expected.values().collect());
            found.sort();
            all.sort();
            assert_eq!(found, all);
        }
    }
}
