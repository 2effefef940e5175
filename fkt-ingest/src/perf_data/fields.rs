//! Fields in the byte order of the recording machine, cut from the front of a slice.

use crate::cut::ByteOrder;

/// The remaining bytes. Methods return `None` if a field does not fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8], order: ByteOrder) -> Fields<'a> {
        Fields { rest: bytes, order }
    }

    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn bytes(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let number = self.order.u32_at(self.rest, 0)?;
        self.rest = &self.rest[4..];
        Some(number)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let number = self.order.u64_at(self.rest, 0)?;
        self.rest = &self.rest[8..];
        Some(number)
    }

    /// `u32 n, n bytes`: a text padded with NULs.
    pub(super) fn string(&mut self) -> Option<String> {
        let len = self.u32()?;
        self.bytes(u64::from(len)).map(text)
    }
}

/// The text before the first NUL.
pub(super) fn text(bytes: &[u8]) -> String {
    let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}
