//! The rows of an answer, column by column in blocks: small, since there may be millions.

use std::{fmt, ops::Range, sync::Arc};

use rayon::prelude::*;

use crate::{Value, texts::Texts};

/// The rows of a block.
const BLOCK: usize = 4096;

/// Bytes that are read and written at once: a number of any width.
const PADDING: usize = 8;

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

/// Cells as distances from the smallest, in as few bytes as the largest takes; those that are NULL take none.
#[derive(Clone)]
struct Block {
    tags: Tags,
    smallest: i64,
    /// Of each cell.
    width: usize,
    /// With [`PADDING`] at the end.
    bytes: Box<[u8]>,
}

#[derive(Clone)]
enum Tags {
    Same(Tag),
    /// Of one kind, but for those that are NULL: 64 cells a word, and how many there are before it.
    Some(Tag, Box<[(u64, u32)]>),
    /// Each takes bytes, also if it is NULL.
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
        debug_assert!(self.columns.iter().all(|cells| cells.last.len() == self.len % BLOCK), "not sealed");
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

    /// No more may be added until they are [gathered](Self::gather): what is kept to add some is freed.
    pub(crate) fn seal(&mut self) {
        self.columns.iter_mut().for_each(Cells::seal);
        self.texts.shrink_to_fit();
    }

    /// The rows of several parts, which are sealed, in this order: their numbers are counted through all parts.
    pub(crate) fn gather(parts: Vec<Rows>, order: &[Range<u32>]) -> Rows {
        let mut texts = Texts::default();
        let mut columns: Vec<Vec<Part>> = Vec::new();
        let mut first = 0;
        for part in parts {
            let numbers: Arc<[u32]> = part.texts.iter().map(|text| texts.number(text)).collect();
            columns.resize_with(part.columns.len().max(columns.len()), Vec::new);
            for (column, cells) in columns.iter_mut().zip(part.columns) {
                column.push(Part { first, cells, numbers: numbers.clone() });
            }
            first += part.len as u32;
        }
        texts.shrink_to_fit();
        // As many columns are there twice at a time as there are CPUs.
        let columns = columns.into_par_iter().map(|parts| Part::gather(&parts, order)).collect();
        Rows { len: order.iter().map(ExactSizeIterator::len).sum(), columns, texts }
    }
}

/// A column of some rows.
struct Part {
    /// The number of the first.
    first: u32,
    cells: Cells,
    /// Of its texts.
    numbers: Arc<[u32]>,
}

impl Part {
    fn gather(parts: &[Part], order: &[Range<u32>]) -> Cells {
        let mut gathered = Cells::default();
        for rows in order {
            let Some(part) = parts[..parts.partition_point(|part| part.first <= rows.start)].last() else {
                continue;
            };
            for row in rows.clone() {
                let Cell { tag, bits } = part.cells.get((row - part.first) as usize);
                let bits = if tag == Tag::Text { part.numbers[bits as usize].into() } else { bits };
                gathered.push(Cell { tag, bits });
            }
        }
        gathered
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

    /// The last block may be smaller than the others.
    fn seal(&mut self) {
        let last = std::mem::take(&mut self.last);
        if !last.is_empty() {
            self.blocks.push(Block::new(&last));
        }
        self.blocks.shrink_to_fit();
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
        let tags = Tags::new(cells);
        let values = || cells.iter().filter(|cell| cell.tag != Tag::Null).map(|cell| cell.bits);
        let smallest = values().min().unwrap_or(0);
        let distance = |bits: i64| bits.wrapping_sub(smallest) as u64;
        let largest = values().map(distance).max().unwrap_or(0);
        let width = (u64::BITS - largest.leading_zeros()).div_ceil(u8::BITS) as usize;
        let is_kept = |cell: &&Cell| cell.tag != Tag::Null || matches!(tags, Tags::Each(_));
        let mut bytes = vec![0; cells.iter().filter(is_kept).count() * width + PADDING];
        for (place, Cell { tag, bits }) in cells.iter().filter(is_kept).enumerate() {
            let distance = if *tag == Tag::Null { 0 } else { distance(*bits) };
            bytes[place * width..][..PADDING].copy_from_slice(&distance.to_le_bytes());
        }
        Block { tags, smallest, width, bytes: bytes.into() }
    }

    fn get(&self, place: usize) -> Cell {
        let (tag, place) = self.tags.get(place);
        if tag == Tag::Null {
            return Cell { tag, bits: 0 };
        }
        let mut distance = [0; PADDING];
        distance.copy_from_slice(&self.bytes[place * self.width..][..PADDING]);
        let others = u64::BITS - u8::BITS * self.width as u32;
        // Those of the cells after it.
        let distance = u64::from_le_bytes(distance) & u64::MAX.checked_shr(others).unwrap_or(0);
        Cell { tag, bits: self.smallest.wrapping_add(distance as i64) }
    }
}

impl Tags {
    fn new(cells: &[Cell]) -> Tags {
        let mut kinds = cells.iter().map(|cell| cell.tag).filter(|tag| *tag != Tag::Null);
        let Some(first) = kinds.next() else { return Tags::Same(Tag::Null) };
        if !kinds.all(|tag| tag == first) {
            return Tags::Each(cells.iter().map(|cell| cell.tag).collect());
        }
        let mut before = 0;
        let words = cells.chunks(u64::BITS as usize).map(|cells| {
            let bit = |(place, cell): (usize, &Cell)| u64::from(cell.tag != Tag::Null) << place;
            let word = cells.iter().enumerate().map(bit).fold(0, |word, bit| word | bit);
            before += word.count_ones();
            (word, before - word.count_ones())
        });
        let words: Box<[(u64, u32)]> = words.collect();
        if before as usize == cells.len() { Tags::Same(first) } else { Tags::Some(first, words) }
    }

    /// What a cell is, and the place of its bytes, if it has some.
    fn get(&self, place: usize) -> (Tag, usize) {
        match self {
            Tags::Same(tag) => (*tag, place),
            Tags::Each(tags) => (tags[place], place),
            Tags::Some(tag, words) => {
                let bit = place % u64::BITS as usize;
                let (word, before) = words[place / u64::BITS as usize];
                match word >> bit & 1 {
                    0 => (Tag::Null, 0),
                    _ => (*tag, before as usize + (word & ((1 << bit) - 1)).count_ones() as usize),
                }
            }
        }
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
            match number % 4 {
                0 => Value::Null,
                1 => Value::Number(1),
                _ => "two".into(),
            },
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
        assert_eq!((rows.cell(3 * BLOCK + 5, 0), rows.cell(0, 7)), (Value::Null, Value::Null));
        assert_eq!(rows, (0..rows.len()).map(row).collect::<Rows>());
        assert_ne!(rows, (0..rows.len() - 1).map(row).collect::<Rows>());
        rows.seal();
        assert!(rows.iter().enumerate().all(|(number, found)| found == row(number)));
    }

    #[test]
    fn rows_of_several_parts_are_put_in_order() {
        let of_parts = [0..3, 3..3 + BLOCK + 1, 3 + BLOCK + 1..3 * BLOCK];
        let parts = of_parts.clone().map(|rows| {
            let mut part: Rows = rows.map(row).collect();
            part.seal();
            part
        });
        let order: Vec<Range<u32>> = of_parts
            .into_iter()
            .flat_map(|part| {
                let (from, to) = (part.start as u32, part.end as u32);
                (from..to).step_by(700).map(move |first| first..to.min(first + 5))
            })
            .rev()
            .collect();
        let expected: Rows = order.iter().cloned().flatten().map(|number| row(number as usize)).collect();
        let mut gathered = Rows::gather(parts.into(), &order);
        assert_eq!(gathered, expected);
        gathered.push(row(7));
        assert_eq!(gathered.to_vec().pop(), Some(row(7)));
        assert_eq!(Rows::gather(Vec::new(), &[]), Rows::default());
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
            block.bytes.len() - PADDING
        };
        assert_eq!(of(&[Some(1 << 40); 9]), 0);
        assert_eq!(of(&[None, None]), 0);
        assert_eq!(of(&[Some((1 << 40) + 255), None, Some(1 << 40)]), 2);
        let many: Vec<_> = (0..1000).map(|value| (value % 3 != 0).then_some(value)).collect();
        assert_eq!(of(&many), 2 * 666);
        assert_eq!(of(&[Some(-1), Some(1 << 17)]), 6);
        assert_eq!(of(&[Some(i64::MIN), Some(i64::MAX)]), 16);
    }
}
