//! Rows as bytes, one row after the other. Cells that are read together are stored together, because rows are read in
//! another order than they were made.
//!
//! A cell is a first byte, and the bytes of its number. The first byte gives the kind of the cell and how many bytes
//! follow. Leading zeros of the number are left out (for a fraction: trailing zeros). A cell that is equal to the one
//! before it is a single byte; the figures of a single length, for example, are equal.

use crate::{Value, texts::Texts};

/// A number is read as this many bytes, whatever its width. So there must be padding at the end.
const PADDING: usize = 8;

/// Rows of cells. They can be read from the beginning of any row.
#[derive(Clone)]
pub(super) struct Packed {
    /// With [`PADDING`] at the end.
    bytes: Vec<u8>,
    texts: Texts,
}

/// The kind of a cell, in the lower bits of its first byte. The upper bits are the number of bytes that follow.
mod tag {
    pub(super) const NULL: u8 = 0;
    pub(super) const NUMBER: u8 = 1;
    /// All bits of the number are inverted.
    pub(super) const NEGATIVE: u8 = 2;
    /// The bytes of the number are in reverse order.
    pub(super) const FRACTION: u8 = 3;
    /// A text, by its number.
    pub(super) const TEXT: u8 = 4;
    /// The same as the cell before.
    pub(super) const SAME: u8 = 5;
    pub(super) const BITS: u32 = 3;
}

impl Default for Packed {
    fn default() -> Packed {
        Packed { bytes: vec![0; PADDING], texts: Texts::default() }
    }
}

impl Packed {
    /// Where the next row begins.
    pub(super) fn end(&self) -> usize {
        self.bytes.len() - PADDING
    }

    pub(super) fn push(&mut self, row: &[Value<'_>]) {
        self.bytes.truncate(self.end());
        let mut before = (tag::NULL, 0);
        for value in row {
            let cell = match value {
                Value::Null => (tag::NULL, 0),
                Value::Number(number @ 0..) => (tag::NUMBER, *number as u64),
                Value::Number(number) => (tag::NEGATIVE, !*number as u64),
                Value::Fraction(number) => (tag::FRACTION, number.to_bits().swap_bytes()),
                Value::Text(text) => (tag::TEXT, self.texts.number(text).into()),
            };
            self.push_cell(cell, before);
            before = cell;
        }
        self.bytes.extend([0; PADDING]);
    }

    #[inline]
    fn push_cell(&mut self, cell @ (tag, bits): (u8, u64), before: (u8, u64)) {
        let width = (u64::BITS - bits.leading_zeros()).div_ceil(u8::BITS) as usize;
        if cell == before && width > 0 {
            self.bytes.push(tag::SAME);
            return;
        }
        self.bytes.push(tag | (width as u8) << tag::BITS);
        self.bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
    }

    /// To be called when no more rows, or few, will be added. Frees the memory that is needed only for adding.
    pub(super) fn seal(&mut self) {
        self.bytes.shrink_to_fit();
        self.texts.shrink_to_fit();
    }

    /// The cells from this offset on. A row has to begin there.
    pub(super) fn cells(&self, from: usize) -> Cells<'_> {
        Cells { packed: self, at: from, before: (tag::NULL, 0) }
    }
}

/// Reads cells one after the other, across the ends of rows.
pub(super) struct Cells<'p> {
    packed: &'p Packed,
    at: usize,
    before: (u8, u64),
}

impl<'p> Cells<'p> {
    #[inline]
    fn read(&mut self) -> (u8, u64) {
        let bytes = &self.packed.bytes[self.at..];
        let (tag, width) = (bytes[0] & ((1 << tag::BITS) - 1), usize::from(bytes[0] >> tag::BITS));
        self.at += 1 + width;
        if tag == tag::SAME {
            return self.before;
        }
        let mut number = [0; PADDING];
        number.copy_from_slice(&bytes[1..][..PADDING]);
        // The other bytes belong to the next cells.
        let others = u64::BITS - u8::BITS * width as u32;
        self.before = (tag, u64::from_le_bytes(number) & u64::MAX.checked_shr(others).unwrap_or(0));
        self.before
    }

    /// Skips cells, to get to the beginning of a row.
    pub(super) fn skip(&mut self, cells: usize) {
        for _ in 0..cells {
            let first = self.packed.bytes[self.at];
            self.at += 1 + usize::from(first >> tag::BITS);
        }
    }
}

impl<'p> Iterator for Cells<'p> {
    type Item = Value<'p>;

    #[inline]
    fn next(&mut self) -> Option<Value<'p>> {
        let (tag, bits) = self.read();
        Some(match tag {
            tag::NUMBER => Value::Number(bits as i64),
            tag::NEGATIVE => Value::Number(!bits as i64),
            tag::FRACTION => Value::Fraction(f64::from_bits(bits.swap_bytes())),
            tag::TEXT => self.packed.texts.text(bits as u32).into(),
            _ => Value::Null,
        })
    }
}
