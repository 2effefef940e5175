//! Rows as bytes, one row after the other. Cells that are read together are stored together, because rows are read in
//! another order than they were made.
//!
//! A cell is a first byte, and the bytes of its number. The first byte gives the kind of the cell and how many bytes
//! follow. Leading zeros of the number are left out (for a fraction: trailing zeros). A cell that is equal to the one
//! before it is a single byte; the figures of a single length, for example, are equal.

use std::io;

use super::spill::Spill;
use crate::{Value, texts::Texts};

/// A number is read as this many bytes, whatever its width. So there must be padding at the end.
const PADDING: usize = 8;

/// How many bytes are read at a time of rows that were spilled.
const WINDOW: usize = 1 << 11;

/// Rows of cells. They can be read from the beginning of any row.
#[derive(Clone)]
pub(super) struct Packed {
    /// With [`PADDING`] at the end. Empty if they were spilled.
    bytes: Vec<u8>,
    /// Without their bytes, if these were spilled.
    texts: Texts,
    spilled: Option<Spilled>,
}

/// Where bytes were spilled to.
#[derive(Clone)]
struct Spilled {
    to: Spill,
    /// The offset of the cells, and how many bytes they have, with the padding.
    cells: (u64, usize),
    /// The same of the texts.
    texts: (u64, usize),
}

/// Bytes that were spilled and read again. Kept from one row of a part to the next.
#[derive(Default)]
pub(super) struct Windows {
    cells: Window,
    /// The first texts of the part, which are those that most rows have: words, and names of culprits.
    first_texts: Window,
    /// The names of threads come in the order of the rows.
    texts: Window,
}

#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    /// Where in its part it begins.
    from: usize,
}

impl Window {
    /// The bytes from `at` on, at least `least`. They are read if they are not in the window.
    #[inline]
    fn bytes(&mut self, spill: &Spill, (offset, len): (u64, usize), (at, least): (usize, usize)) -> &[u8] {
        if at < self.from || at + least > self.from + self.bytes.len() {
            let end = len.min(at + least.max(WINDOW));
            spill.read(offset, at..end, &mut self.bytes);
            self.from = at;
        }
        &self.bytes[at - self.from..]
    }
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
        Packed { bytes: vec![0; PADDING], texts: Texts::default(), spilled: None }
    }
}

impl Packed {
    /// Where the next row begins.
    pub(super) fn end(&self) -> usize {
        self.spilled.as_ref().map_or(self.bytes.len(), |spilled| spilled.cells.1) - PADDING
    }

    /// Adds a row, if no rows were spilled.
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

    /// Moves the rows out of memory, if they are in it. No more may be added then.
    pub(super) fn spill(&mut self, to: &Spill) -> io::Result<()> {
        if self.spilled.is_none() {
            let cells = (to.append(&self.bytes)?, self.bytes.len());
            let texts = (to.append(self.texts.bytes())?, self.texts.bytes().len());
            self.spilled = Some(Spilled { to: to.clone(), cells, texts });
            self.bytes = Vec::new();
            self.texts.forget_bytes();
        }
        Ok(())
    }

    /// Whether the rows were moved out of memory.
    pub(super) fn is_spilled(&self) -> bool {
        self.spilled.is_some()
    }

    /// Why rows could not be read.
    pub(super) fn failure(&self) -> Option<&str> {
        self.spilled.as_ref()?.to.failure()
    }

    /// The cells from this offset on. A row has to begin there. `windows` are of the same part, or empty.
    pub(super) fn cells(&self, from: usize, windows: Windows) -> Cells<'_> {
        Cells { packed: self, at: from, before: (tag::NULL, 0), windows }
    }
}

/// Reads cells one after the other, across the ends of rows.
pub(super) struct Cells<'p> {
    packed: &'p Packed,
    at: usize,
    before: (u8, u64),
    windows: Windows,
}

impl<'p> Cells<'p> {
    /// What was read of the part, for other rows of it.
    pub(super) fn into_windows(self) -> Windows {
        self.windows
    }

    /// The bytes of the next cell, and more.
    #[inline]
    fn bytes(&mut self) -> &[u8] {
        match &self.packed.spilled {
            None => &self.packed.bytes[self.at..],
            Some(Spilled { to, cells, .. }) => self.windows.cells.bytes(to, *cells, (self.at, 1 + PADDING)),
        }
    }

    #[inline]
    fn read(&mut self) -> (u8, u64) {
        let bytes = self.bytes();
        let (tag, width) = (bytes[0] & ((1 << tag::BITS) - 1), usize::from(bytes[0] >> tag::BITS));
        let mut number = [0; PADDING];
        number.copy_from_slice(&bytes[1..][..PADDING]);
        self.at += 1 + width;
        if tag == tag::SAME {
            return self.before;
        }
        // The other bytes belong to the next cells.
        let others = u64::BITS - u8::BITS * width as u32;
        self.before = (tag, u64::from_le_bytes(number) & u64::MAX.checked_shr(others).unwrap_or(0));
        self.before
    }

    fn text(&mut self, number: u32) -> Value<'p> {
        let Packed { texts, spilled, .. } = self.packed;
        let Some(Spilled { to, texts: all, .. }) = spilled else { return texts.text(number).into() };
        let Some(place) = texts.place(number) else { return Value::Null };
        let Windows { first_texts, texts, .. } = &mut self.windows;
        let bytes = match place.end <= WINDOW {
            true => &first_texts.bytes(to, *all, (0, place.end))[place.start..place.end],
            false => &texts.bytes(to, *all, (place.start, place.len()))[..place.len()],
        };
        String::from_utf8_lossy(bytes).into_owned().into()
    }

    /// Skips cells, to get to the beginning of a row.
    pub(super) fn skip(&mut self, cells: usize) {
        for _ in 0..cells {
            let first = self.bytes()[0];
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
            tag::TEXT => self.text(bits as u32),
            _ => Value::Null,
        })
    }
}
