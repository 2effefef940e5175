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
        let len = self.len() - from;
        if len < 0x80 {
            self[from - 1] = len as u8;
        } else {
            lengthen(self, from, len);
        }
    }
}

/// Writes a length of two or more bytes before the contents that begin at `from`, where one byte is reserved.
#[cold]
fn lengthen(bytes: &mut Vec<u8>, from: usize, len: usize) {
    let mut length = Vec::with_capacity(10);
    length.raw_varint(len as u64);
    bytes.splice(from - 1..from, length);
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
