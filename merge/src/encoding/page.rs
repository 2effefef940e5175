//! A page of a column chunk: its header, with a checksum, and its compressed bytes.
//!
//! ```text
//!   head                                                     | bytes
//!   kind, length uncompressed, length, CRC-32 of the bytes,  |
//!   number of values, encodings                              |
//! ```
//!
//! The header is a `PageHeader` of parquet.thrift in the compact protocol of Thrift. A field is a byte (distance to the
//! number of the previous field, type) and its value; 0 ends a struct. The writer of the parquet crate does not write
//! checksums. Without them, a bit that has changed on a disk would silently change a value in a result.

use bytes::Bytes;
use parquet::basic::Encoding;

use super::varint::{varint, zigzag};

/// Approximate length of a header in bytes.
pub(super) const HEAD: usize = 32;

/// Compressed bytes with their checksum.
#[derive(Clone, Debug, Default)]
pub(super) struct Compressed {
    pub(super) bytes: Bytes,
    crc: u32,
}

/// A page.
pub(super) struct Page {
    pub(super) content: Content,
    pub(super) values: usize,
    pub(super) uncompressed: usize,
    pub(super) compressed: Compressed,
}

/// The contents of a page.
pub(super) enum Content {
    /// The values that occur, ordered by their first row.
    Dictionary,
    /// Rows.
    Data(Encoding),
}

impl Compressed {
    pub(super) fn new(bytes: Bytes) -> Compressed {
        let crc = crc32fast::hash(&bytes);
        Compressed { bytes, crc }
    }
}

/// Types of fields, in the compact protocol.
const TRUE_OR_FALSE: [u8; 2] = [2, 1];
const I32: u8 = 5;
const STRUCT: u8 = 12;

/// `PageType` of parquet.thrift.
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;

impl Page {
    /// Appends the page, and returns the length of its header.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> usize {
        let begin = out.len();
        let (kind, field) = match self.content {
            Content::Data(_) => (DATA_PAGE, 5),
            Content::Dictionary => (DICTIONARY_PAGE, 7),
        };
        let mut head = Struct { out, last: 0 };
        head.i32(1, kind);
        head.i32(2, self.uncompressed as i64);
        head.i32(3, self.compressed.bytes.len() as i64);
        head.i32(4, i64::from(self.compressed.crc as i32));
        head.field(field, STRUCT);
        let mut of_kind = Struct { out: head.out, last: 0 };
        of_kind.i32(1, self.values as i64);
        match self.content {
            Content::Data(encoding) => {
                of_kind.i32(2, encoding as i64);
                // The encodings of the definition levels, and of the repetition levels.
                of_kind.i32(3, Encoding::RLE as i64);
                of_kind.i32(4, Encoding::RLE as i64);
            }
            Content::Dictionary => {
                of_kind.i32(2, Encoding::PLAIN as i64);
                of_kind.bool(3, false);
            }
        }
        of_kind.end();
        Struct { out, last: field }.end();
        let head = out.len() - begin;
        out.extend_from_slice(&self.compressed.bytes);
        head
    }
}

/// A struct that is being written.
struct Struct<'o> {
    out: &'o mut Vec<u8>,
    /// The number of the last field that was written.
    last: u8,
}

impl Struct<'_> {
    fn field(&mut self, number: u8, ty: u8) {
        varint(u64::from((number - self.last) << 4 | ty), self.out);
        self.last = number;
    }

    fn i32(&mut self, number: u8, value: i64) {
        self.field(number, I32);
        zigzag(value, self.out);
    }

    fn bool(&mut self, number: u8, value: bool) {
        self.field(number, TRUE_OR_FALSE[usize::from(value)]);
    }

    fn end(self) {
        self.out.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes are made by hand, from parquet.thrift: the reader of the crate may skip this field, so it
    /// proves nothing.
    #[test]
    fn a_head_has_the_checksum_of_what_follows() {
        let compressed = Compressed::new(Bytes::from_static(b"123456789"));
        // The check value of CRC-32 (ISO-HDLC).
        assert_eq!(compressed.crc, 0xcbf4_3926);
        let page = |content| Page { content, values: 100, uncompressed: 300, compressed: compressed.clone() };
        let mut out = Vec::new();
        assert_eq!(page(Content::Data(Encoding::RLE_DICTIONARY)).write(&mut out), 25);
        let crc = [0x15, 0xb3, 0x9b, 0xde, 0xc0, 0x06];
        let head = [[0x15, 0, 0x15, 0xd8, 0x04, 0x15, 18].as_slice(), &crc, &[0x1c]].concat();
        let of_data = [0x15, 0xc8, 0x01, 0x15, 16, 0x15, 6, 0x15, 6, 0, 0];
        assert_eq!(out, [head.as_slice(), &of_data, b"123456789"].concat());
    }
}
