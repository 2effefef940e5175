//! Columns of a table that are being filled.
//!
//! ```text
//!   rows     7     NULL   9
//!   levels   1     0      1         what is there: levels.rs
//!   values   7            9         without NULLs, contiguous
//! ```

use std::sync::Arc;

use sigmund_model::tables::ColumnType;

use super::{
    bits::Bits,
    dictionary::{Keys, NONE, Values},
    levels::{Levels, Stretch},
};

/// The contents of a column.
pub(crate) enum Cells {
    /// Numbers, or lists of numbers. Fractions are stored as their bits.
    Numbers(Filled<Vec<i64>>),
    /// Texts, or lists of them.
    Texts(Filled<Texts>),
    /// Indexes into a list of values.
    Keys(Keys),
    /// A boolean for each row.
    Bools(Bits),
}

/// A column of any type.
pub(crate) enum Column {
    Numbers(Filled<Vec<i64>>),
    Texts(Filled<Texts>),
    Words(Words),
    Bools(Bits),
}

impl Column {
    pub(crate) fn new(ty: ColumnType) -> Column {
        match ty {
            ColumnType::Int64 | ColumnType::Int32 | ColumnType::Float64 | ColumnType::Numbers => {
                Column::Numbers(Filled::default())
            }
            ColumnType::Text | ColumnType::Texts => Column::Texts(Filled::default()),
            ColumnType::Word => Column::Words(Words::default()),
            ColumnType::Bool => Column::Bools(Bits::default()),
        }
    }

    /// Takes the contents; the column is empty afterwards.
    pub(crate) fn finish(&mut self) -> Cells {
        match self {
            Column::Numbers(numbers) => Cells::Numbers(numbers.take()),
            Column::Texts(texts) => Cells::Texts(texts.take()),
            Column::Words(words) => words.finish(),
            Column::Bools(bits) => Cells::Bools(std::mem::take(bits)),
        }
    }
}

/// The values of some rows, and which rows have one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filled<V> {
    pub(crate) levels: Levels,
    pub(crate) values: V,
}

/// Contiguous values.
pub(crate) trait Append: Default {
    type Value<'v>;
    fn append(&mut self, value: Self::Value<'_>);
    /// An empty value of this type, with room for as many values as this one has.
    fn as_roomy(&self) -> Self;
}

impl<V: Append> Filled<V> {
    /// Adds a row of a flat column.
    #[inline]
    pub(crate) fn push(&mut self, value: Option<V::Value<'_>>) {
        self.levels.push(value.is_some());
        if let Some(value) = value {
            self.values.append(value);
        }
    }

    /// Adds a list.
    #[inline]
    pub(crate) fn push_list<'v>(&mut self, elements: impl Iterator<Item = Option<V::Value<'v>>>) {
        let mut list = Stretch::default();
        for element in elements {
            self.levels.push_element(&mut list, element.is_some());
            if let Some(value) = element {
                self.values.append(value);
            }
        }
        self.levels.end_list(list);
    }

    /// Adds empty lists.
    pub(crate) fn push_empty_lists(&mut self, lists: usize) {
        self.levels.push_empty_lists(lists);
    }

    /// Takes the contents. The column is empty afterwards, with room for as many rows.
    pub(crate) fn take(&mut self) -> Filled<V> {
        let empty = Filled { levels: Levels::default(), values: self.values.as_roomy() };
        std::mem::replace(self, empty)
    }
}

impl Filled<Vec<i64>> {
    /// Adds a list of numbers without NULL.
    #[inline]
    pub(crate) fn push_numbers(&mut self, numbers: impl ExactSizeIterator<Item = i64>) {
        self.levels.push_full_list(numbers.len());
        self.values.extend(numbers);
    }
}

/// Number of rows that are [`Gathered`]: one for each bit of a word.
pub(crate) const GATHERED_ROWS: usize = u64::BITS as usize;

/// A few rows of a flat column of numbers, before they are added to it together. Adding them takes one word of levels
/// and, as most columns have a value in all of the rows or in none, one copy or nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gathered {
    values: [i64; GATHERED_ROWS],
    /// A bit for each row with a value.
    has_value: u64,
}

impl Default for Gathered {
    fn default() -> Gathered {
        Gathered { values: [0; GATHERED_ROWS], has_value: 0 }
    }
}

impl Gathered {
    /// Fills a row, which must be below [`GATHERED_ROWS`]. Each row is filled once.
    #[inline]
    pub(crate) fn fill(&mut self, row: usize, value: Option<i64>) {
        self.values[row % GATHERED_ROWS] = value.unwrap_or_default();
        self.has_value |= u64::from(value.is_some()) << (row % GATHERED_ROWS);
    }
}

impl Filled<Vec<i64>> {
    /// Adds the first `rows` gathered rows. Afterwards, none are left.
    pub(crate) fn push_gathered(&mut self, gathered: &mut Gathered, rows: usize) {
        let has_value = std::mem::take(&mut gathered.has_value);
        self.levels.push_rows(has_value, rows);
        let values = &gathered.values[..rows];
        if has_value.count_ones() as usize == rows {
            self.values.extend_from_slice(values);
            return;
        }
        let mut left = has_value;
        while left != 0 {
            self.values.push(values[left.trailing_zeros() as usize]);
            left &= left - 1;
        }
    }
}

impl Append for Vec<i64> {
    type Value<'v> = i64;

    #[inline]
    fn append(&mut self, value: i64) {
        self.push(value);
    }

    fn as_roomy(&self) -> Vec<i64> {
        Vec::with_capacity(self.len())
    }
}

/// Contiguous texts, and the end of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub(crate) fn append_bytes(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |end| {
            let text = &self.bytes[from..*end];
            from = *end;
            text
        })
    }
}

impl Append for Texts {
    type Value<'v> = &'v str;

    #[inline]
    fn append(&mut self, value: &str) {
        self.append_bytes(value.as_bytes());
    }

    fn as_roomy(&self) -> Texts {
        Texts { bytes: Vec::with_capacity(self.bytes.len()), ends: Vec::with_capacity(self.ends.len()) }
    }
}

/// A column with few different words. The cells are indexes into a list of words, which is kept from batch to batch.
///
/// The list is searched linearly, so it should be short: the words of a table are states, reasons and the like. (Event
/// names are not searched: see [`EventRows`](super::EventRows).)
#[derive(Default)]
pub(crate) struct Words {
    words: Vec<Box<str>>,
    keys: Vec<u32>,
    /// The words as they are written. `None` if a word was added since.
    values: Option<Arc<Values>>,
}

impl Words {
    #[inline]
    pub(crate) fn append(&mut self, word: Option<&str>) {
        let key = word.map_or(NONE, |word| self.key(word));
        self.keys.push(key);
    }

    #[inline]
    fn key(&mut self, word: &str) -> u32 {
        if let Some(key) = self.words.iter().position(|known| **known == *word) {
            return key as u32;
        }
        self.values = None;
        self.words.push(word.into());
        self.words.len() as u32 - 1
    }

    fn finish(&mut self) -> Cells {
        let values = self.values.get_or_insert_with(|| Values::texts(self.words.iter().map(|word| &**word)));
        let rows = self.keys.len();
        let keys = std::mem::replace(&mut self.keys, Vec::with_capacity(rows));
        Cells::Keys(Keys { keys: Arc::new(keys), values: Arc::clone(values) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        // Stretches with a value in every row, in none, and in some, split at any row.
        #[test]
        fn gathered_rows_are_those_that_are_added_one_by_one(
            stretches in vec((0u8..3, 1usize..=GATHERED_ROWS, any::<u64>()), 1..12),
        ) {
            let (mut one_by_one, mut together) = (Filled::<Vec<i64>>::default(), Filled::<Vec<i64>>::default());
            let mut gathered = Gathered::default();
            for (kind, rows, chance) in stretches {
                for row in 0..rows {
                    let has_value = [true, false, chance >> row & 1 == 1][usize::from(kind)];
                    let value = has_value.then_some(row as i64 + 1);
                    one_by_one.push(value);
                    gathered.fill(row, value);
                }
                together.push_gathered(&mut gathered, rows);
            }
            prop_assert_eq!(&together.values, &one_by_one.values);
            prop_assert_eq!(&together.levels, &one_by_one.levels);
        }
    }
}
