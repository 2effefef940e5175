//! The lives of user threads or LWPs, by their numbers. Compact, because there may be millions.

use std::sync::Arc;

use crate::{Interval, texts::Texts};

/// A user thread or an LWP: a row of `threads` or `lwps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life<'n> {
    /// Its name, if it has one.
    pub name: Option<&'n str>,
    /// Its process, if known.
    pub pid: Option<u32>,
    /// From its creation to its end. Without an end: to the end of the trace.
    pub interval: Interval,
    /// The user thread that created it.
    pub created_by: Option<u64>,
}

/// Lives, by the number of the user thread or LWP. Clones share the data.
#[derive(Debug)]
pub struct Lives<K>(Arc<All<K>>);

#[derive(Clone, Debug)]
struct All<K> {
    /// Sorted by number; each number occurs once.
    rows: Vec<Row<K>>,
    names: Texts,
    /// For each name, the place of a row that has it. `u32::MAX` for names that no row has any more.
    namesakes: Vec<u32>,
    /// The few numbers that several had, one after the other: when the first of these began. Sorted.
    used_before: Vec<(K, i64)>,
}

/// A [`Life`] in 40 bytes.
#[derive(Clone, Copy, Debug)]
struct Row<K> {
    number: K,
    interval: Interval,
    /// `u64::MAX` if it is unknown; no user thread has that number.
    created_by: u64,
    /// `u32::MAX` if it has no name.
    name: u32,
    /// `u32::MAX` if it is unknown; no process has that number.
    pid: u32,
}

impl<K> Clone for Lives<K> {
    fn clone(&self) -> Lives<K> {
        Lives(Arc::clone(&self.0))
    }
}

impl<K> Default for Lives<K> {
    fn default() -> Lives<K> {
        Lives(Arc::default())
    }
}

impl<K> Default for All<K> {
    fn default() -> All<K> {
        All { rows: Vec::new(), names: Texts::default(), namesakes: Vec::new(), used_before: Vec::new() }
    }
}

impl<K: Copy + Ord + Into<u64>> Lives<K> {
    /// The number of lives.
    pub fn len(&self) -> usize {
        self.0.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.rows.is_empty()
    }

    /// Whether there is a life with this number.
    pub fn contains(&self, number: K) -> bool {
        self.0.place(number).is_ok()
    }

    /// The life with this number.
    pub fn get(&self, number: K) -> Option<Life<'_>> {
        let place = self.0.place(number).ok()?;
        Some(self.0.life(&self.0.rows[place]))
    }

    /// The place of this number among all numbers, in their order.
    pub(crate) fn place_of(&self, number: K) -> Option<usize> {
        self.0.place(number).ok()
    }

    /// When the first user thread or LWP with this number began.
    pub(crate) fn begin(&self, number: K) -> Option<i64> {
        let life = self.get(number)?;
        let before = &self.0.used_before;
        let place = before.binary_search_by_key(&number, |(number, _)| *number).ok();
        Some(place.map_or(i64::MAX, |place| before[place].1).min(life.interval.from))
    }

    /// The number of one with the same name. It is usually the same one for all with that name. `None` if it has no
    /// name.
    pub(crate) fn namesake(&self, number: K) -> Option<K> {
        let row = &self.0.rows[self.0.place(number).ok()?];
        let place = *self.0.namesakes.get(row.name as usize)?;
        Some(self.0.rows.get(place as usize)?.number)
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = (K, Life<'_>)> {
        self.0.rows.iter().map(|row| (row.number, self.0.life(row)))
    }

    /// All numbers, in order.
    pub fn numbers(&self) -> impl Iterator<Item = K> {
        self.0.rows.iter().map(|row| row.number)
    }

    /// Adds a life, or replaces the one with this number. It takes time in proportion to the number of lives.
    pub fn insert(&mut self, number: K, life: Life<'_>) {
        let all = Arc::make_mut(&mut self.0);
        let name = all.names.number_of(life.name);
        let row = Row::new(number, life, name);
        match all.place(number) {
            Ok(place) => all.rows[place] = row,
            Err(place) => all.rows.insert(place, row),
        }
        all.find_namesakes();
    }
}

impl<K: Copy + Ord + Into<u64>> All<K> {
    /// Where this number is, or would be inserted. Most numbers follow each other without holes, so its distance from
    /// the first is a good guess.
    fn place(&self, number: K) -> Result<usize, usize> {
        let first = self.rows.first().map_or(0, |row| row.number.into());
        let guess = number.into().wrapping_sub(first) as usize;
        if self.rows.get(guess).is_some_and(|row| row.number == number) {
            return Ok(guess);
        }
        self.rows.binary_search_by_key(&number, |row| row.number)
    }

    fn find_namesakes(&mut self) {
        self.namesakes.clear();
        self.namesakes.resize(self.names.len(), u32::MAX);
        for (place, row) in self.rows.iter().enumerate().rev() {
            if let Some(namesake) = self.namesakes.get_mut(row.name as usize) {
                *namesake = place as u32;
            }
        }
    }

    fn life(&self, row: &Row<K>) -> Life<'_> {
        Life {
            name: self.names.text(row.name),
            pid: Some(row.pid).filter(|pid| *pid != u32::MAX),
            interval: row.interval,
            created_by: Some(row.created_by).filter(|thread| *thread != u64::MAX),
        }
    }
}

impl<K> Row<K> {
    fn new(number: K, life: Life<'_>, name: u32) -> Row<K> {
        let Life { pid, interval, created_by, .. } = life;
        let (pid, created_by) = (pid.unwrap_or(u32::MAX), created_by.unwrap_or(u64::MAX));
        Row { number, interval, created_by, name, pid }
    }
}

/// Collects [`Lives`], in any order. If several have the same number, the last one counts.
#[derive(Debug)]
pub struct LivesBuilder<K>(All<K>);

impl<K> Default for LivesBuilder<K> {
    fn default() -> LivesBuilder<K> {
        LivesBuilder(All::default())
    }
}

impl<K: Copy + Ord + Into<u64>> LivesBuilder<K> {
    /// Makes room for so many.
    pub fn reserve(&mut self, lives: usize) {
        self.0.rows.reserve_exact(lives);
    }

    /// Adds one.
    pub fn push(&mut self, number: K, life: Life<'_>) {
        let name = self.0.names.number_of(life.name);
        self.0.rows.push(Row::new(number, life, name));
    }

    /// The lives that were added. Linear, if there are few holes between the numbers.
    pub fn build(self) -> Lives<K> {
        let LivesBuilder(mut all) = self;
        let All { rows, names, used_before, .. } = &mut all;
        if !rows.is_sorted_by(|a, b| a.number < b.number) {
            (*rows, *used_before) = sorted(std::mem::take(rows));
        }
        rows.shrink_to_fit();
        names.shrink_to_fit();
        all.find_namesakes();
        Lives(Arc::new(all))
    }
}

impl<'n, K: Copy + Ord + Into<u64>> FromIterator<(K, Life<'n>)> for Lives<K> {
    fn from_iter<I: IntoIterator<Item = (K, Life<'n>)>>(lives: I) -> Lives<K> {
        let mut builder = LivesBuilder::default();
        lives.into_iter().for_each(|(number, life)| builder.push(number, life));
        builder.build()
    }
}

/// The rows sorted by number, only the last of each number; and for numbers with several rows, when the first one
/// began.
fn sorted<K: Copy + Ord + Into<u64>>(mut rows: Vec<Row<K>>) -> (Vec<Row<K>>, Vec<(K, i64)>) {
    let mut used_before = Vec::new();
    let numbers = || rows.iter().map(|row| row.number.into());
    let (first, last) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    let span = usize::try_from(last - first).unwrap_or(usize::MAX);
    if span / 4 <= rows.len() && rows.len() < u32::MAX as usize {
        let mut places = vec![u32::MAX; span + 1];
        for (place, row) in rows.iter().enumerate() {
            let before = std::mem::replace(&mut places[(row.number.into() - first) as usize], place as u32);
            used_before.extend(rows.get(before as usize).map(|before| (row.number, before.interval.from)));
        }
        rows = places.into_iter().filter_map(|place| rows.get(place as usize).copied()).collect();
    } else {
        rows.sort_by_key(|row| row.number);
        // `dedup_by` keeps the first of equal numbers. The order is reversed so that this is the last one.
        rows.reverse();
        rows.dedup_by(|row, last| {
            let is_same = row.number == last.number;
            used_before.extend(is_same.then_some((row.number, row.interval.from)));
            is_same
        });
        rows.reverse();
    }
    used_before.sort_unstable();
    used_before.dedup_by_key(|(number, _)| *number);
    (rows, used_before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(name: Option<&str>, pid: u32) -> Life<'_> {
        Life { name, pid: Some(pid), interval: Interval::new(3, 9), created_by: Some(7) }
    }

    #[test]
    fn a_life_is_found_by_its_number_whatever_the_order_and_the_holes() {
        let mut builder = LivesBuilder::default();
        for (number, name) in [(9, Some("b")), (4, None), (5, Some("a")), (2_000, Some("a")), (4, Some(""))] {
            builder.push(number, life(name, number));
        }
        let mut lives: Lives<u32> = builder.build();
        lives.insert(7, life(Some("c"), 1));
        lives.insert(9, life(Some("c"), 2));
        let expected = [(4, "", 4), (5, "a", 5), (7, "c", 1), (9, "c", 2), (2_000, "a", 2_000)];
        let expected = expected.map(|(number, name, pid)| (number, life(Some(name), pid)));
        assert_eq!(lives.iter().collect::<Vec<_>>(), expected);
        for (number, life) in expected {
            assert_eq!(lives.get(number), Some(life));
        }
        for number in [0, 3, 6, 8, 10, 1_999, 2_001, u32::MAX] {
            assert_eq!(lives.get(number), None, "{number}");
        }
        for (number, namesake) in
            [(4, Some(4)), (5, Some(5)), (7, Some(7)), (9, Some(7)), (2_000, Some(5)), (3, None)]
        {
            assert_eq!(lives.namesake(number), namesake, "{number}");
        }
    }

    #[test]
    fn numbers_with_few_holes_and_with_many_are_sorted_alike() {
        for factor in [1_u64, 3, 1 << 40] {
            let mut builder = LivesBuilder::default();
            for (pid, number) in [7, 3, 9, 3, 8, 5, 9, 3].into_iter().enumerate() {
                let from = 5 - (pid as i64 - 2).abs();
                builder.push(
                    number * factor,
                    Life { interval: Interval::new(from, 9), ..life(None, pid as u32) },
                );
            }
            let lives = builder.build();
            let begins = [3, 5, 7, 8, 9, 4].map(|number| lives.begin(number * factor));
            assert_eq!(begins, [Some(0), Some(2), Some(3), Some(3), Some(1), None]);
            let found: Vec<_> = lives.iter().map(|(number, life)| (number / factor, life.pid)).collect();
            assert_eq!(found, [(3, Some(7)), (5, Some(5)), (7, Some(0)), (8, Some(4)), (9, Some(6))]);
        }
    }

    #[test]
    fn what_is_not_known_of_a_life_stays_so() {
        let unknown = Life { name: None, pid: None, interval: Interval::new(0, 1), created_by: None };
        let lives: Lives<u64> = [(u64::MAX - 1, unknown)].into_iter().collect();
        assert_eq!(lives.get(u64::MAX - 1), Some(unknown));
    }
}
