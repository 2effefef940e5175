//! The dictionary of a chunk of numbers or texts: each value that has occurred so far, and its index.
//!
//! Most values have occurred shortly before. So a small table of recent values answers most look-ups with one
//! comparison. Each value has one slot in this table, and shares it with other values. A value that is not in its slot
//! is looked up by its hash.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use parquet::basic::Type;

use super::{column::Texts, dictionary::NONE};

/// Number of slots for recent values. They fit into the fastest cache, beside the other data (16 and 24 KiB).
const SLOT_BITS: u32 = 10;
const SLOTS: usize = 1 << SLOT_BITS;

/// The values that have an index, ordered by their first row.
pub(super) trait ValueIndex: Default {
    /// The values of some rows, contiguous.
    type Values: Plain;

    /// The values that have an index, in the order of their indexes.
    fn known(&self) -> &Self::Values;

    /// Appends the indexes of all these values to `places`. A new value gets the next index.
    fn find(&mut self, values: &Self::Values, places: &mut Vec<u32>);
}

/// Values that can be written as they are.
pub(super) trait Plain {
    /// Number of values.
    fn count(&self) -> usize;

    /// Appends the values; numbers in the width of `physical`.
    fn put(&self, physical: Type, out: &mut Vec<u8>);

    /// The smallest and the largest number, if these are numbers.
    fn range(&self) -> Option<(i64, i64)>;
}

/// The dictionary of a column of numbers.
pub(super) struct NumberIndex {
    numbers: Vec<i64>,
    known: HashMap<i64, u32, RandomState>,
    recent: Box<[(i64, u32); SLOTS]>,
}

impl Default for NumberIndex {
    fn default() -> NumberIndex {
        // At first, each slot has a number that belongs to another slot. So a number that is found in its slot has an
        // index.
        let mut recent = Box::new([(0, NONE); SLOTS]);
        recent[slot(0)].0 = 1;
        debug_assert_ne!(slot(0), slot(1));
        NumberIndex { numbers: Vec::new(), known: HashMap::default(), recent }
    }
}

impl NumberIndex {
    #[inline]
    fn place(&mut self, number: i64) -> u32 {
        let recent = self.recent[slot(number as u64)];
        if recent.0 == number { recent.1 } else { self.look_up(number) }
    }

    fn look_up(&mut self, number: i64) -> u32 {
        let next = self.numbers.len() as u32;
        let place = *self.known.entry(number).or_insert(next);
        if place == next {
            self.numbers.push(number);
        }
        self.recent[slot(number as u64)] = (number, place);
        place
    }
}

impl ValueIndex for NumberIndex {
    type Values = Vec<i64>;

    fn known(&self) -> &Vec<i64> {
        &self.numbers
    }

    fn find(&mut self, numbers: &Vec<i64>, places: &mut Vec<u32>) {
        places.extend(numbers.iter().map(|number| self.place(*number)));
    }
}

impl Plain for Vec<i64> {
    fn count(&self) -> usize {
        self.len()
    }

    fn put(&self, physical: Type, out: &mut Vec<u8>) {
        match physical {
            Type::INT32 => self.iter().for_each(|number| out.extend((*number as i32).to_le_bytes())),
            _ => self.iter().for_each(|number| out.extend(number.to_le_bytes())),
        }
    }

    fn range(&self) -> Option<(i64, i64)> {
        let first = *self.first()?;
        Some(
            self.iter().fold((first, first), |(least, most), number| (least.min(*number), most.max(*number))),
        )
    }
}

/// The dictionary of a column of texts.
pub(super) struct TextIndex {
    texts: Texts,
    known: HashMap<Box<[u8]>, u32, RandomState>,
    recent: Box<[(Short, u32); SLOTS]>,
}

impl Default for TextIndex {
    fn default() -> TextIndex {
        let recent = Box::new([(Short::default(), NONE); SLOTS]);
        TextIndex { texts: Texts::default(), known: HashMap::default(), recent }
    }
}

impl TextIndex {
    #[inline]
    fn place(&mut self, text: &[u8]) -> u32 {
        let Some(short) = Short::of(text) else { return self.look_up(text) };
        let slot = short.slot();
        let recent = self.recent[slot];
        if recent.0 == short && recent.1 != NONE {
            return recent.1;
        }
        let place = self.look_up(text);
        self.recent[slot] = (short, place);
        place
    }

    fn look_up(&mut self, text: &[u8]) -> u32 {
        if let Some(place) = self.known.get(text) {
            return *place;
        }
        let place = self.known.len() as u32;
        self.known.insert(text.into(), place);
        self.texts.append_bytes(text);
        place
    }
}

impl ValueIndex for TextIndex {
    type Values = Texts;

    fn known(&self) -> &Texts {
        &self.texts
    }

    fn find(&mut self, texts: &Texts, places: &mut Vec<u32>) {
        places.extend(texts.iter().map(|text| self.place(text)));
    }
}

impl Plain for Texts {
    fn count(&self) -> usize {
        self.len()
    }

    fn put(&self, _: Type, out: &mut Vec<u8>) {
        self.iter().for_each(|text| put_text(text, out));
    }

    fn range(&self) -> Option<(i64, i64)> {
        None
    }
}

/// A text, with its length in front.
pub(super) fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text);
}

/// A text of up to 16 bytes, all of which are in this value: the first 8 (or 4) bytes, and the last ones, which
/// overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Short {
    first: u64,
    last: u64,
    len: usize,
}

impl Short {
    #[inline]
    fn of(text: &[u8]) -> Option<Short> {
        let len = text.len();
        let (first, last) = match len {
            0 => (0, 0),
            1..4 => {
                let (middle, last) = (u64::from(text[len / 2]), u64::from(text[len - 1]));
                (u64::from(text[0]), middle << 8 | last)
            }
            4..8 => {
                let four = |bytes: Option<&[u8; 4]>| bytes.map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
                (four(text.first_chunk())?, four(text.last_chunk())?)
            }
            8..=16 => {
                let eight = |bytes: Option<&[u8; 8]>| bytes.map(|bytes| u64::from_le_bytes(*bytes));
                (eight(text.first_chunk())?, eight(text.last_chunk())?)
            }
            _ => return None,
        };
        Some(Short { first, last, len })
    }

    #[inline]
    fn slot(self) -> usize {
        slot(self.first ^ self.last.rotate_left(32) ^ self.len as u64)
    }
}

/// Fibonacci hashing: the highest bits of the product.
#[inline]
fn slot(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use std::hash::Hash;

    use proptest::{collection::vec, prelude::*};

    use super::{super::column::Append, *};

    /// The expected index of each value: the rank of its first row among all first rows.
    fn expected<V: Hash + Eq + Copy>(values: &[V]) -> Vec<u32> {
        let mut seen = HashMap::new();
        let place = |value: &V| {
            let next = seen.len() as u32;
            *seen.entry(*value).or_insert(next)
        };
        values.iter().map(place).collect()
    }

    fn places<P: ValueIndex>(values: &P::Values) -> (P, Vec<u32>) {
        let (mut dictionary, mut places) = (P::default(), Vec::new());
        dictionary.find(values, &mut places);
        (dictionary, places)
    }

    proptest! {
        // More different numbers than slots, some of which occur again.
        #[test]
        fn a_number_has_the_place_of_its_first_row(numbers in vec(-2000i64..2000, 0..3000)) {
            let (dictionary, found) = places::<NumberIndex>(&numbers);
            prop_assert_eq!(&found, &expected(&numbers));
            for (number, place) in numbers.iter().zip(&found) {
                prop_assert_eq!(dictionary.known()[*place as usize], *number);
            }
        }

        // Texts of few letters, so that many begin and end alike, at any length.
        #[test]
        fn a_text_has_the_place_of_its_first_row(texts in vec("[ab]{0,4}|[ab]{7,9}|[ab]{15,18}", 0..200)) {
            let mut column = Texts::default();
            texts.iter().for_each(|text| column.append(text));
            let (dictionary, found) = places::<TextIndex>(&column);
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            prop_assert_eq!(&found, &expected(&texts));
            prop_assert_eq!(dictionary.known().len(), found.iter().max().map_or(0, |most| *most as usize + 1));
        }
    }

    #[test]
    fn the_numbers_that_empty_slots_hold_get_a_place_too() {
        assert_eq!(places::<NumberIndex>(&vec![1, 0, 0, -1, 0, 1]).1, [0, 1, 1, 2, 1, 0]);
        let mut column = Texts::default();
        ["", "a", "", "\0"].iter().for_each(|text| column.append(text));
        assert_eq!(places::<TextIndex>(&column).1, [0, 1, 0, 2]);
    }
}
