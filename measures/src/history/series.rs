//! Intervals of many threads, LWPs or CPUs, found by number and time.

use std::{mem, ops::Range};

use crate::map::Map;

use super::Track;
use crate::Interval;

/// Intervals with a value, by key and time.
///
/// The intervals of one key are sorted and do not overlap. The time between them is unknown.
#[derive(Clone, Debug)]
pub struct Series<T> {
    /// Sorted.
    keys: Vec<u64>,
    /// For each key, the end of its intervals, which follow those of the key before it.
    ends: Vec<usize>,
    from: Vec<i64>,
    to: Vec<i64>,
    values: Vec<T>,
}

impl<T> Default for Series<T> {
    fn default() -> Series<T> {
        Series { keys: Vec::new(), ends: Vec::new(), from: Vec::new(), to: Vec::new(), values: Vec::new() }
    }
}

/// Collects a [`Series`], row by row in any order.
#[derive(Clone, Debug)]
pub struct SeriesBuilder<T> {
    keys: Vec<u64>,
    intervals: Vec<Interval>,
    values: Vec<T>,
}

impl<T> Default for SeriesBuilder<T> {
    fn default() -> SeriesBuilder<T> {
        SeriesBuilder { keys: Vec::new(), intervals: Vec::new(), values: Vec::new() }
    }
}

impl<T: Clone> SeriesBuilder<T> {
    /// Adds a row.
    pub fn push(&mut self, key: u64, interval: Interval, value: T) {
        self.keys.push(key);
        self.intervals.push(interval);
        self.values.push(value);
    }

    /// As [`build`](Self::build), but leaves out a row that begins before an earlier row of its key has ended.
    pub(super) fn build_disjoint(self) -> Series<T> {
        let all = self.build();
        let is_disjoint = |place: Range<usize>| place.skip(1).all(|row| all.from[row] >= all.to[row - 1]);
        if (0..all.keys.len()).all(|number| is_disjoint(all.place(number))) {
            return all;
        }
        let mut disjoint = SeriesBuilder::default();
        for (key, track) in all.iter() {
            let mut until = i64::MIN;
            for (interval, value) in track.iter() {
                if interval.from >= until {
                    until = interval.to;
                    disjoint.push(key, interval, value.clone());
                }
            }
        }
        disjoint.build()
    }

    /// Groups the rows by key. Linear, if the rows of each key are in time order.
    pub fn build(self) -> Series<T> {
        let SeriesBuilder { keys, intervals, values } = self;
        Series::grouped(keys, intervals.into_iter().zip(values))
    }
}

/// The keys of rows, sorted, and the number of rows of each.
struct Numbered {
    keys: Vec<u64>,
    counts: Vec<usize>,
}

/// Replaces the key of each row by its place among all keys.
fn numbered(rows: &mut [u64]) -> Numbered {
    let range = rows.iter().min().copied().zip(rows.iter().max().copied());
    let least = range.map_or(0, |(least, _)| least);
    let span = range.and_then(|(least, most)| usize::try_from(most - least).ok()?.checked_add(1));
    // Numbers of threads in a slice are near each other, those of LWPs not always.
    match span.filter(|span| *span <= 4 * rows.len()) {
        Some(span) => numbered_by_place(rows, least, span),
        None => numbered_by_hash(rows),
    }
}

fn numbered_by_place(rows: &mut [u64], least: u64, span: usize) -> Numbered {
    let mut counts = vec![0_u32; span];
    rows.iter().for_each(|key| counts[(key - least) as usize] += 1);
    let mut numbered = Numbered { keys: Vec::new(), counts: Vec::new() };
    for (place, count) in counts.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
        numbered.counts.push(mem::replace(count, numbered.keys.len() as u32) as usize);
        numbered.keys.push(least + place as u64);
    }
    rows.iter_mut().for_each(|key| *key = counts[(*key - least) as usize].into());
    numbered
}

fn numbered_by_hash(rows: &mut [u64]) -> Numbered {
    let mut numbers: Map<u64, u32> = Map::default();
    let (mut keys, mut counts): (Vec<u64>, Vec<usize>) = (Vec::new(), Vec::new());
    for key in rows.iter_mut() {
        let number = *numbers.entry(*key).or_insert_with(|| {
            keys.push(*key);
            counts.push(0);
            keys.len() as u32 - 1
        });
        counts[number as usize] += 1;
        *key = number.into();
    }
    let mut sorted: Vec<u32> = (0..keys.len() as u32).collect();
    sorted.sort_by_key(|number| keys[*number as usize]);
    let mut places = vec![0_u32; keys.len()];
    for (place, number) in sorted.iter().enumerate() {
        places[*number as usize] = place as u32;
    }
    rows.iter_mut().for_each(|number| *number = places[*number as usize].into());
    Numbered {
        keys: sorted.iter().map(|number| keys[*number as usize]).collect(),
        counts: sorted.iter().map(|number| counts[*number as usize]).collect(),
    }
}

impl<T: Clone> Series<T> {
    /// Groups rows by key, as [`SeriesBuilder::build`] does. There is a key for each of the rows, which are read once.
    pub(super) fn grouped(mut keys: Vec<u64>, mut rows: impl Iterator<Item = (Interval, T)>) -> Series<T> {
        let count = keys.len();
        let Some(first) = rows.next() else { return Series::default() };
        let numbered = numbered(&mut keys);
        let mut places = numbered.counts;
        // From the number of rows of each key to the place of its first row.
        let (mut ends, mut next) = (Vec::with_capacity(numbered.keys.len()), 0);
        for place in &mut places {
            next += mem::replace(place, next);
            ends.push(next);
        }
        let mut series = Series {
            keys: numbered.keys,
            ends,
            from: vec![0; count],
            to: vec![0; count],
            values: vec![first.1.clone(); count],
        };
        // Each row is written to its place once: reading rows in the order of their places would take a pass for each column.
        let mut put = |number: &u64, (interval, value): (Interval, T)| {
            let place = &mut places[*number as usize];
            (series.from[*place], series.to[*place]) = (interval.from, interval.to);
            series.values[*place] = value;
            *place += 1;
        };
        put(&keys[0], first);
        keys[1..].iter().zip(rows).for_each(|(number, row)| put(number, row));
        series.sort_all();
        series
    }

    /// Adds a row after all others. Keys have to come in their order.
    pub(super) fn push_last(&mut self, key: u64, interval: Interval, value: T) {
        self.from.push(interval.from);
        self.to.push(interval.to);
        self.values.push(value);
        match self.ends.last_mut().filter(|_| self.keys.last() == Some(&key)) {
            Some(end) => *end += 1,
            None => {
                self.keys.push(key);
                self.ends.push(self.values.len());
            }
        }
    }

    /// Sorts the intervals of each key.
    pub(super) fn sort_all(&mut self) {
        (0..self.keys.len()).for_each(|number| self.sort(self.place(number)));
    }

    /// Sorts the intervals of one key.
    fn sort(&mut self, rows: Range<usize>) {
        let at = |row: usize| (self.from[row], self.to[row]);
        if rows.clone().is_sorted_by_key(at) {
            return;
        }
        let mut sorted: Vec<((i64, i64), T)> =
            rows.clone().map(|row| (at(row), self.values[row].clone())).collect();
        sorted.sort_by_key(|(at, _)| *at);
        for (row, (at, value)) in rows.zip(sorted) {
            (self.from[row], self.to[row]) = at;
            self.values[row] = value;
        }
    }
}

impl<T> Series<T> {
    /// The keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        self.keys.iter().copied()
    }

    /// The number of a key. In a slice, most threads began one after the other and recently, so the distance from the last
    /// key is a good guess.
    fn number(&self, key: u64) -> Option<usize> {
        let distance = usize::try_from(self.keys.last()?.checked_sub(key)?).ok()?;
        match (self.keys.len() - 1).checked_sub(distance) {
            Some(guess) if self.keys[guess] == key => Some(guess),
            _ => self.keys.binary_search(&key).ok(),
        }
    }

    /// The rows of the key with this number.
    fn place(&self, number: usize) -> Range<usize> {
        number.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[number]
    }

    /// The intervals of one key; empty if the key does not occur.
    pub fn of(&self, key: u64) -> Track<'_, T> {
        self.track(self.number(key).map_or(0..0, |number| self.place(number)))
    }

    fn track(&self, rows: Range<usize>) -> Track<'_, T> {
        Track { from: &self.from[rows.clone()], to: &self.to[rows.clone()], values: &self.values[rows] }
    }

    /// All keys with their intervals, in the order of [`keys`](Self::keys).
    pub fn iter(&self) -> impl Iterator<Item = (u64, Track<'_, T>)> {
        self.keys.iter().enumerate().map(|(number, key)| (*key, self.track(self.place(number))))
    }

    /// How many intervals there are of all keys.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no interval.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn() -> Series<char> {
        let mut builder = SeriesBuilder::default();
        for (key, from, to, value) in [(2, 5, 9, 'x'), (1, 10, 20, 'a'), (1, 30, 40, 'c'), (1, 20, 25, 'b')] {
            builder.push(key, Interval::new(from, to), value);
        }
        builder.build()
    }

    // 1  |aaaaaaaaa|bbbb|    |ccccccccc|
    //    10        20   25   30        40
    #[test]
    fn an_interval_is_found_by_a_tick_in_it_or_just_after_it() {
        let series = drawn();
        let one = series.of(1);
        let at = |tick| one.at(tick).map(|(_, value)| *value);
        let before = |tick| one.before(tick).map(|(_, value)| *value);
        assert_eq!(
            [9, 10, 19, 20, 25, 39, 40].map(at),
            [None, Some('a'), Some('a'), Some('b'), None, Some('c'), None]
        );
        assert_eq!(
            [10, 11, 20, 25, 26, 30, 40, 41].map(before),
            [None, Some('a'), Some('a'), Some('b'), None, None, Some('c'), None]
        );
        assert_eq!(series.of(3).at(7), None);
        for (tick, mut hint) in (0..50).flat_map(|tick| (0..5).map(move |hint| (tick, hint))) {
            assert_eq!(one.at_near(tick, &mut hint), one.at(tick), "{tick}");
            assert_eq!(one.before_near(tick, &mut hint), one.before(tick), "{tick}");
            assert_eq!(one.hole_before_near(tick, &mut hint), one.hole_before(tick), "{tick}");
            assert_eq!(one.count_from_near(tick, &mut hint), one.count_from(tick), "{tick}");
        }
        assert_eq!(series.len(), 4);
    }

    // Near keys are counted in a table, far ones are hashed.
    #[test]
    fn near_and_far_keys_give_the_same_series() {
        let rows: Vec<(u64, i64)> = (0..300).map(|n| (7 + n * n % 23, n as i64)).collect();
        for step in [1, 2, 1 << 40] {
            let mut builder = SeriesBuilder::default();
            rows.iter()
                .for_each(|(key, from)| builder.push(key * step, Interval::new(*from, from + 1), *from));
            let series = builder.build();
            let mut expected: Vec<u64> = rows.iter().map(|(key, _)| key * step).collect();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(series.keys().collect::<Vec<_>>(), expected);
            for key in expected {
                let of_key = rows.iter().filter(|(other, _)| other * step == key).map(|(_, from)| *from);
                assert_eq!(
                    series.of(key).iter().map(|(_, value)| *value).collect::<Vec<_>>(),
                    of_key.collect::<Vec<_>>()
                );
            }
        }
    }

    #[test]
    fn a_window_clips_and_its_partition_has_the_holes() {
        let series = drawn();
        let window = Interval::new(15, 35);
        let clipped: Vec<_> = series.of(1).within(window).map(|(i, v)| (i.from, i.to, *v)).collect();
        assert_eq!(clipped, [(15, 20, 'a'), (20, 25, 'b'), (30, 35, 'c')]);
        let parts: Vec<_> = series.of(1).partition(window).map(|(i, v)| (i.from, i.to, v.copied())).collect();
        assert_eq!(parts, [(15, 20, Some('a')), (20, 25, Some('b')), (25, 30, None), (30, 35, Some('c'))]);
        let none: Vec<_> = series.of(7).partition(window).map(|(i, v)| (i, v.copied())).collect();
        assert_eq!(none, [(window, None)]);
    }
}
