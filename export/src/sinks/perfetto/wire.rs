//! The parts of the wire format of protocol buffers that are needed here (protobuf.dev/programming-guides/encoding).
//!
//! ```text
//! message:  | tag | value | tag | value | …        tag = field number << 3 | wire type, as a varint
//! value:    varint (type 0) | 8 bytes (type 1) | length, then that many bytes (type 2: texts, messages, packed numbers)
//! varint:   7 bits a byte, the lowest first; bit 7: more follow
//! ```

const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const COUNTED: u64 = 2;

/// Appends fields to a message.
pub(super) trait Wire {
    fn raw_varint(&mut self, value: u64);
    /// A number, an enum's value, or a bool.
    fn number(&mut self, field: u32, value: u64);
    fn signed(&mut self, field: u32, value: i64);
    fn fixed64(&mut self, field: u32, value: u64);
    fn counted(&mut self, field: u32, bytes: &[u8]);
    fn text(&mut self, field: u32, text: &str);
    /// A nested message, filled by `fill`.
    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Vec<u8>));
}

impl Wire for Vec<u8> {
    #[inline]
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    #[inline]
    fn number(&mut self, field: u32, value: u64) {
        self.raw_varint(u64::from(field) << 3 | VARINT);
        self.raw_varint(value);
    }

    /// `int32` and `int64`: a negative number takes ten bytes.
    #[inline]
    fn signed(&mut self, field: u32, value: i64) {
        self.number(field, value as u64);
    }

    #[inline]
    fn fixed64(&mut self, field: u32, value: u64) {
        self.raw_varint(u64::from(field) << 3 | EIGHT_BYTES);
        self.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn counted(&mut self, field: u32, bytes: &[u8]) {
        self.raw_varint(u64::from(field) << 3 | COUNTED);
        self.raw_varint(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn text(&mut self, field: u32, text: &str) {
        self.counted(field, text.as_bytes());
    }

    /// The length is known only at the end. One byte is reserved for it; contents of more than 127 bytes are moved.
    #[inline]
    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        self.raw_varint(u64::from(field) << 3 | COUNTED);
        self.push(0);
        let from = self.len();
        fill(self);
        set_length(self, from);
    }
}

/// Writes the length of the contents that begin at `from`. One byte is reserved for it, immediately before `from`. The
/// length of more than 127 bytes of contents takes more than one byte, so these contents are moved.
#[inline]
pub(super) fn set_length(bytes: &mut Vec<u8>, from: usize) {
    let len = bytes.len() - from;
    if len < 0x80 {
        bytes[from - 1] = len as u8;
    } else {
        lengthen(bytes, from, len);
    }
}

#[cold]
fn lengthen(bytes: &mut Vec<u8>, from: usize, len: usize) {
    let mut length = Short::default();
    length.raw_varint(len as u64);
    let more = length.len - 1;
    bytes.extend_from_slice(&[0; Short::MAX][..more]);
    bytes.copy_within(from..from + len, from + more);
    bytes[from - 1..from + more].copy_from_slice(&length.bytes[..length.len]);
}

/// A few fields that are assembled here, and then appended together. If each byte were appended separately, most of the
/// time would be spent on checking the capacity.
pub(super) struct Short {
    bytes: [u8; Short::MAX],
    len: usize,
}

impl Default for Short {
    fn default() -> Short {
        Short { bytes: [0; Short::MAX], len: 0 }
    }
}

impl Short {
    /// The largest number of bytes.
    pub(super) const MAX: usize = 64;

    /// The number of bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// # Panics
    /// If there is no room, like all methods that append.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    pub(super) fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    /// A number, an enum's value, or a bool.
    #[inline]
    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.raw_varint(u64::from(field) << 3 | VARINT);
        self.raw_varint(value);
    }

    #[inline]
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.raw_varint(u64::from(field) << 3 | EIGHT_BYTES);
        self.bytes[self.len..self.len + 8].copy_from_slice(&value.to_le_bytes());
        self.len += 8;
    }

    /// Begins a nested message, and reserves the byte of its length: see [`set_length`].
    #[inline]
    pub(super) fn begin(&mut self, field: u32) {
        self.raw_varint(u64::from(field) << 3 | COUNTED);
        self.byte(0);
    }

    /// Ends the nested message whose contents begin at byte `from`. It has at most [`MAX`](Self::MAX) bytes, so its
    /// length takes one byte.
    #[inline]
    pub(super) fn end(&mut self, from: usize) {
        self.bytes[from - 1] = (self.len - from) as u8;
    }

    /// Appends the bytes.
    #[inline]
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        let len = out.len() + self.len;
        // Copying a length that the compiler knows takes only a few instructions.
        out.extend_from_slice(&self.bytes);
        out.truncate(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        let mut bytes = Vec::new();
        bytes.number(1, 150);
        assert_eq!(bytes, [0x08, 0x96, 0x01]);
        bytes.clear();
        bytes.text(2, "testing");
        assert_eq!(bytes, b"\x12\x07testing");
        bytes.clear();
        bytes.message(3, |inner| inner.number(1, 150));
        assert_eq!(bytes, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        bytes.clear();
        bytes.signed(1, -2);
        assert_eq!(bytes, [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }

    #[test]
    fn what_is_put_together_first_is_the_same() {
        for value in [0, 127, 128, 1 << 35, u64::MAX] {
            let (mut at_once, mut expected) = (vec![7; 3], vec![7; 3]);
            expected.message(4, |inner| {
                inner.number(1, value);
                inner.fixed64(47, value);
            });
            let mut short = Short::default();
            short.begin(4);
            let from = short.len();
            short.number(1, value);
            short.fixed64(47, value);
            short.end(from);
            short.append_to(&mut at_once);
            assert_eq!(at_once, expected);
        }
    }

    #[test]
    fn a_long_message_gets_a_long_length() {
        for len in [127, 128, 16_383, 16_384] {
            let mut bytes = vec![7];
            bytes.message(1, |inner| inner.resize(inner.len() + len, b'x'));
            let mut expected = vec![7, 0x0a];
            expected.raw_varint(len as u64);
            expected.resize(expected.len() + len, b'x');
            assert_eq!(bytes, expected);
        }
    }
}
