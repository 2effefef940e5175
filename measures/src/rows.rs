//! The rows of an answer, column by column in blocks: small, since there may be millions.

use std::fmt;

use crate::{Value, texts::Texts};

/// The rows of a block.
const BLOCK: usize = 4096;

/// Rows of cells. All have the same number of these.
#[derive(Clone, Default)]
pub struct Rows {
    len: usize,
    columns: Vec<Cells>,
    texts: Texts,
}

/// The cells of a column.
#[derive(Clone, Default)]
struct Cells {
    blocks: Vec<Block>,
    /// Those after the last block.
    last: Vec<Cell>,
}

/// A value: what it is, and its bits or the number of its text.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cell {
    tag: Tag,
    bits: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Null,
    Number,
    Fraction,
    Text,
}

/// Cells as distances from the smallest, in as few bytes as the largest takes.
#[derive(Clone)]
struct Block {
    tags: Tags,
    smallest: i64,
    /// Of each cell.
    width: usize,
    bytes: Box<[u8]>,
}

#[derive(Clone)]
enum Tags {
    Same(Tag),
    Each(Box<[Tag]>),
}

impl Rows {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one.
    ///
    /// # Panics
    /// When it has not as many cells as the others.
    pub fn push(&mut self, row: Vec<Value>) {
        if self.is_empty() {
            self.columns.resize_with(row.len(), Cells::default);
        }
        assert_eq!(row.len(), self.columns.len(), "as many cells as in the other rows");
        for (cells, value) in self.columns.iter_mut().zip(row) {
            let (tag, bits) = match value {
                Value::Null => (Tag::Null, 0),
                Value::Number(number) => (Tag::Number, number),
                Value::Fraction(number) => (Tag::Fraction, number.to_bits() as i64),
                Value::Text(text) => (Tag::Text, self.texts.number(&text).into()),
            };
            cells.push(Cell { tag, bits });
        }
        self.len += 1;
    }

    /// A cell; [`Value::Null`] if there is no such row or column.
    pub fn cell(&self, row: usize, column: usize) -> Value {
        let cell = self.columns.get(column).filter(|_| row < self.len).map(|cells| cells.get(row));
        let Some(Cell { tag, bits }) = cell else { return Value::Null };
        match tag {
            Tag::Null => Value::Null,
            Tag::Number => Value::Number(bits),
            Tag::Fraction => Value::Fraction(f64::from_bits(bits as u64)),
            Tag::Text => Value::from(self.texts.text(bits as u32).map(str::to_string)),
        }
    }

    /// Each in its order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Vec<Value>> + '_ {
        (0..self.len).map(|row| (0..self.columns.len()).map(|column| self.cell(row, column)).collect())
    }

    /// All of them: for few.
    pub fn to_vec(&self) -> Vec<Vec<Value>> {
        self.iter().collect()
    }

    /// Those at these places, in this order.
    pub(crate) fn at(self, places: &[u32]) -> Rows {
        let Rows { columns, texts, .. } = self;
        let at = |cells: Cells| {
            let mut at = Cells::default();
            places.iter().for_each(|place| at.push(cells.get(*place as usize)));
            at
        };
        // One column is there twice at a time.
        Rows { len: places.len(), columns: columns.into_iter().map(at).collect(), texts }
    }
}

impl Cells {
    fn push(&mut self, cell: Cell) {
        self.last.push(cell);
        if self.last.len() == BLOCK {
            self.blocks.push(Block::new(&self.last));
            self.last.clear();
        }
    }

    fn get(&self, row: usize) -> Cell {
        match self.blocks.get(row / BLOCK) {
            Some(block) => block.get(row % BLOCK),
            None => self.last[row % BLOCK],
        }
    }
}

impl Block {
    fn new(cells: &[Cell]) -> Block {
        let values = || cells.iter().filter(|cell| cell.tag != Tag::Null).map(|cell| cell.bits);
        let smallest = values().min().unwrap_or(0);
        let distance = |bits: i64| bits.wrapping_sub(smallest) as u64;
        let largest = values().map(distance).max().unwrap_or(0);
        let width = (u64::BITS - largest.leading_zeros()).div_ceil(u8::BITS) as usize;
        let mut bytes = Vec::with_capacity(cells.len() * width);
        for Cell { tag, bits } in cells {
            let distance = if *tag == Tag::Null { 0 } else { distance(*bits) };
            bytes.extend_from_slice(&distance.to_le_bytes()[..width]);
        }
        let first = cells.first().map_or(Tag::Null, |cell| cell.tag);
        let tags = match cells.iter().all(|cell| cell.tag == first) {
            true => Tags::Same(first),
            false => Tags::Each(cells.iter().map(|cell| cell.tag).collect()),
        };
        Block { tags, smallest, width, bytes: bytes.into() }
    }

    fn get(&self, place: usize) -> Cell {
        let tag = match &self.tags {
            Tags::Same(tag) => *tag,
            Tags::Each(tags) => tags[place],
        };
        let mut distance = [0; 8];
        distance[..self.width].copy_from_slice(&self.bytes[place * self.width..][..self.width]);
        let bits = self.smallest.wrapping_add(u64::from_le_bytes(distance) as i64);
        Cell { tag, bits: if tag == Tag::Null { 0 } else { bits } }
    }
}

impl PartialEq for Rows {
    fn eq(&self, other: &Rows) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Extend<Vec<Value>> for Rows {
    fn extend<I: IntoIterator<Item = Vec<Value>>>(&mut self, rows: I) {
        rows.into_iter().for_each(|row| self.push(row));
    }
}

impl FromIterator<Vec<Value>> for Rows {
    fn from_iter<I: IntoIterator<Item = Vec<Value>>>(all: I) -> Rows {
        let mut rows = Rows::default();
        rows.extend(all);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: usize) -> Vec<Value> {
        let large = number as i64 * 0x0123_4567_89ab;
        vec![
            7_i64.into(),
            (if number.is_multiple_of(3) { None } else { Some(large) }).into(),
            (if number.is_multiple_of(2) { i64::MIN } else { i64::MAX }).into(),
            (number as f64 / 7.0).into(),
            format!("name {}", number % 5).into(),
            if number < 5000 { Value::Null } else { "late".into() },
        ]
    }

    #[test]
    fn rows_are_what_they_were() {
        let mut rows = Rows::default();
        for number in 0..3 * BLOCK + 5 {
            assert_eq!(rows.len(), number);
            rows.push(row(number));
        }
        assert!(rows.iter().enumerate().all(|(number, found)| found == row(number)));
        assert_eq!(rows.cell(9, 4), Value::from("name 4"));
        assert_eq!((rows.cell(3 * BLOCK + 5, 0), rows.cell(0, 6)), (Value::Null, Value::Null));
        assert_eq!(rows, (0..rows.len()).map(row).collect::<Rows>());
        assert_ne!(rows, (0..rows.len() - 1).map(row).collect::<Rows>());
        let places: Vec<u32> = (0..rows.len() as u32).rev().step_by(7).collect();
        let expected: Rows = places.iter().map(|place| row(*place as usize)).collect();
        assert_eq!(rows.at(&places), expected);
    }

    #[test]
    fn a_column_takes_the_bytes_that_its_values_differ_by() {
        let of = |values: &[Option<i64>]| {
            let cell = |value: &Option<i64>| Cell {
                tag: value.map_or(Tag::Null, |_| Tag::Number),
                bits: value.unwrap_or(0),
            };
            let cells: Vec<Cell> = values.iter().map(cell).collect();
            let block = Block::new(&cells);
            assert!(cells.iter().enumerate().all(|(place, cell)| block.get(place) == *cell));
            block.bytes.len()
        };
        assert_eq!(of(&[Some(1 << 40); 9]), 0);
        assert_eq!(of(&[None, None]), 0);
        assert_eq!(of(&[Some((1 << 40) + 255), None, Some(1 << 40)]), 3);
        assert_eq!(of(&[Some(-1), Some(1 << 17)]), 6);
        assert_eq!(of(&[Some(i64::MIN), Some(i64::MAX)]), 16);
    }
}
