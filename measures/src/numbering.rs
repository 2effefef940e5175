//! Numbers the rows by their keys, on all CPUs: each key gets a number, and for each number the rows are listed.

use std::hash::Hash;

use crate::{map::Map, parallel};

/// The number of rows in a chunk.
const CHUNK: usize = 1 << 17;

/// The keys in the order in which they first occur, and for each row the number of its key.
pub(crate) fn number<K: Copy + Eq + Hash + Send>(
    rows: usize,
    key: impl Fn(usize) -> K + Sync,
) -> (Vec<K>, Vec<u32>) {
    let mut numbers = vec![0; rows];
    // First each chunk is numbered on its own. Then its numbers are translated to the common ones.
    let of_chunk = |(chunk, numbers): (usize, &mut [u32])| {
        let (mut keys, mut known): (Vec<K>, Map<K, u32>) = Default::default();
        for (place, number) in numbers.iter_mut().enumerate() {
            let key = key(chunk * CHUNK + place);
            *number = *known.entry(key).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            });
        }
        keys
    };
    let of_chunks: Vec<Vec<K>> = parallel::map(numbers.chunks_mut(CHUNK).enumerate(), of_chunk);
    let (mut keys, mut known): (Vec<K>, Map<K, u32>) = Default::default();
    let mut of_all = |key: &K| {
        *known.entry(*key).or_insert_with(|| {
            keys.push(*key);
            keys.len() as u32 - 1
        })
    };
    let of_all: Vec<Vec<u32>> = of_chunks.iter().map(|keys| keys.iter().map(&mut of_all).collect()).collect();
    parallel::map(numbers.chunks_mut(CHUNK).zip(of_all), |(numbers, of_all)| {
        numbers.iter_mut().for_each(|number| *number = of_all[*number as usize]);
    });
    (keys, numbers)
}

/// The rows of each number, in their order.
#[derive(Debug, Default)]
pub(crate) struct ByNumber {
    /// The end of the rows of each number in `order`.
    ends: Vec<u32>,
    order: Vec<u32>,
}

impl ByNumber {
    /// `numbers` has the number of each row. All are less than `count`.
    pub(crate) fn new(count: usize, numbers: &[u32]) -> ByNumber {
        let mut ends = vec![0_u32; count];
        numbers.iter().for_each(|number| ends[*number as usize] += 1);
        let mut next = 0;
        for end in &mut ends {
            (*end, next) = (next, next + *end);
        }
        let mut order = vec![0; numbers.len()];
        for (row, number) in numbers.iter().enumerate() {
            let end = &mut ends[*number as usize];
            order[*end as usize] = row as u32;
            *end += 1;
        }
        ByNumber { ends, order }
    }

    /// The number of numbers.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The rows with this number, in their order.
    pub(crate) fn of(&self, number: u32) -> &[u32] {
        let from = number.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.order[from as usize..self.ends[number as usize] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_many_chunks_are_numbered_as_those_of_one() {
        let rows = 3 * CHUNK + 5;
        let key = |row: usize| row * row % 1009 + row / CHUNK;
        let (keys, numbers) = number(rows, key);
        assert!((0..rows).all(|row| keys[numbers[row] as usize] == key(row)));
        let mut next = 0;
        assert!(numbers.iter().all(|number| {
            next = next.max(*number + 1);
            *number < next && next <= keys.len() as u32
        }));
        let by_number = ByNumber::new(keys.len(), &numbers);
        assert_eq!(by_number.len(), keys.len());
        let mut count = 0;
        for (number, key_of_number) in (0..).zip(&keys) {
            let of_number = by_number.of(number);
            assert!(
                of_number.is_sorted() && of_number.iter().all(|row| key(*row as usize) == *key_of_number)
            );
            count += of_number.len();
        }
        assert_eq!(count, rows);
    }
}
