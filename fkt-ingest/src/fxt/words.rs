//! Reads numbers in the byte order of the recording machine.

use crate::cut::{ByteOrder, Cut};
use crate::error::ParseError;

/// Cuts numbers of one byte order from the front of a slice.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    cut: Cut<'a>,
    order: ByteOrder,
}

impl<'a> Words<'a> {
    pub(super) fn new(cut: Cut<'a>, order: ByteOrder) -> Words<'a> {
        Words { cut, order }
    }

    pub(super) fn left(&self) -> usize {
        self.cut.rest().len()
    }

    pub(super) fn u32(&mut self, part: &'static str) -> Result<u32, ParseError> {
        let bytes = self.cut.bytes(4, part)?;
        Ok(self.order.u32(bytes.try_into().unwrap_or_default()))
    }

    pub(super) fn u64(&mut self, part: &'static str) -> Result<u64, ParseError> {
        let bytes = self.cut.bytes(8, part)?;
        Ok(self.order.u64(bytes.try_into().unwrap_or_default()))
    }

    /// A text of `len` bytes, up to its first NUL.
    pub(super) fn text(&mut self, len: u64, part: &'static str) -> Result<String, ParseError> {
        Ok(text_of(self.cut.bytes(len, part)?))
    }
}

/// The bytes up to the first NUL, as text.
pub(super) fn text_of(bytes: &[u8]) -> String {
    let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}
