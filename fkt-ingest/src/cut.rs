//! Cuts bytes from the front of a slice. Each cut has a name, which its error contains; none reads past the end.
//!
//! Numbers are little endian, except for a [`Cut`] with another byte order ([`Cut::with_order`]).

use crate::error::ParseError;

/// The byte order of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    /// Little endian.
    #[default]
    Little,
    /// Big endian.
    Big,
}

impl ByteOrder {
    #[inline]
    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        if self == ByteOrder::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    }

    #[inline]
    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        if self == ByteOrder::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    }

    #[inline]
    pub(crate) fn u64(self, bytes: [u8; 8]) -> u64 {
        if self == ByteOrder::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
    }

    #[inline]
    pub(crate) fn u32_at(self, bytes: &[u8], at: usize) -> Option<u32> {
        bytes.get(at..)?.first_chunk().map(|chunk| self.u32(*chunk))
    }

    #[inline]
    pub(crate) fn u64_at(self, bytes: &[u8], at: usize) -> Option<u64> {
        bytes.get(at..)?.first_chunk().map(|chunk| self.u64(*chunk))
    }
}

/// The remaining bytes, and their position in the file.
#[derive(Clone, Debug)]
pub(crate) struct Cut<'a> {
    bytes: &'a [u8],
    at: u64,
    order: ByteOrder,
}

impl<'a> Cut<'a> {
    /// All of `bytes`, which begin at byte `at` of the file.
    pub(crate) fn new(bytes: &'a [u8], at: u64) -> Cut<'a> {
        Cut { bytes, at, order: ByteOrder::Little }
    }

    /// The same bytes, with this byte order for numbers.
    pub(crate) fn with_order(self, order: ByteOrder) -> Cut<'a> {
        Cut { order, ..self }
    }

    /// The byte order of numbers.
    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    /// The bytes of the file from byte `at` on; empty if the file ends before.
    pub(crate) fn of_file(file: &'a [u8], at: u64) -> Cut<'a> {
        let bytes = usize::try_from(at).ok().and_then(|at| file.get(at..)).unwrap_or_default();
        Cut::new(bytes, at)
    }

    /// The position of the next byte in the file.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// The remaining bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn bytes(&mut self, len: u64, part: &'static str) -> Result<&'a [u8], ParseError> {
        let cut = usize::try_from(len).ok().and_then(|len| self.bytes.split_at_checked(len));
        let Some((taken, rest)) = cut else {
            return Err(self.parse_error(
                part,
                format!("{len} bytes"),
                format!("{} bytes", self.bytes.len()),
            ));
        };
        self.bytes = rest;
        self.at += len;
        Ok(taken)
    }

    /// The next `len` bytes, to be cut further.
    pub(crate) fn part(&mut self, len: u64, part: &'static str) -> Result<Cut<'a>, ParseError> {
        let at = self.at;
        Ok(Cut { bytes: self.bytes(len, part)?, at, order: self.order })
    }

    pub(crate) fn u8(&mut self, part: &'static str) -> Result<u8, ParseError> {
        Ok(self.array::<1>(part)?[0])
    }

    pub(crate) fn u16(&mut self, part: &'static str) -> Result<u16, ParseError> {
        Ok(self.order.u16(self.array(part)?))
    }

    pub(crate) fn u32(&mut self, part: &'static str) -> Result<u32, ParseError> {
        Ok(self.order.u32(self.array(part)?))
    }

    pub(crate) fn u64(&mut self, part: &'static str) -> Result<u64, ParseError> {
        Ok(self.order.u64(self.array(part)?))
    }

    /// The bytes up to the next NUL, as text. The NUL is consumed as well.
    pub(crate) fn text(&mut self, part: &'static str) -> Result<String, ParseError> {
        let Some(len) = self.bytes.iter().position(|b| *b == 0) else {
            let found = format!("none in {} bytes", self.bytes.len());
            return Err(self.parse_error(part, "a NUL".to_owned(), found));
        };
        let text = String::from_utf8_lossy(self.bytes(len as u64, part)?).into_owned();
        self.bytes(1, part)?;
        Ok(text)
    }

    /// Consumes exactly these bytes.
    pub(crate) fn tag(&mut self, tag: &[u8], part: &'static str) -> Result<(), ParseError> {
        let mut ahead = self.clone();
        let found = ahead.bytes(tag.len() as u64, part)?;
        if found != tag {
            return Err(self.parse_error(
                part,
                format!("{:?}", tag.escape_ascii().to_string()),
                quoted(found),
            ));
        }
        *self = ahead;
        Ok(())
    }

    pub(crate) fn parse_error(&self, part: &'static str, expected: String, found: String) -> ParseError {
        ParseError { at: self.at, part, expected, found }
    }

    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], ParseError> {
        let Some((taken, rest)) = self.bytes.split_first_chunk::<N>() else {
            return Err(self.parse_error(part, format!("{N} bytes"), format!("{} bytes", self.bytes.len())));
        };
        self.bytes = rest;
        self.at += N as u64;
        Ok(*taken)
    }
}

fn quoted(bytes: &[u8]) -> String {
    format!("{:?}", bytes.escape_ascii().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_that_does_not_fit_names_the_place_and_leaves_the_rest() {
        let mut cut = Cut::new(&[1, 0, 2], 4096);
        assert_eq!(cut.u16("length").unwrap(), 1);
        let parse_error = cut.u32("body").unwrap_err();
        assert_eq!(parse_error.to_string(), "at byte 4098 (body): expected 4 bytes, found 1 bytes");
        assert_eq!(cut.rest(), [2]);
    }

    #[test]
    fn numbers_are_read_in_the_order_of_the_cut() {
        let mut cut = Cut::new(&[1, 2, 3, 4, 5, 6, 7], 0).with_order(ByteOrder::Big);
        assert_eq!(
            (cut.u16("a").unwrap(), cut.part(4, "b").unwrap().u32("b").unwrap()),
            (0x102, 0x0304_0506)
        );
    }

    #[test]
    fn a_text_ends_at_its_nul() {
        let mut cut = Cut::new(b"zstd\x001.5", 0);
        assert_eq!(cut.text("compression").unwrap(), "zstd");
        assert!(cut.text("version").is_err());
    }
}
