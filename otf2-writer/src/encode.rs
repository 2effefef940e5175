//! The encoding of integers, texts and records; the [crate]'s documentation describes it.

/// `OTF2_UNDEFINED_UINT32`: no such definition.
pub(crate) const UNDEFINED_U32: u32 = u32::MAX;
/// `OTF2_UNDEFINED_UINT64`, `OTF2_UNDEFINED_TIMESTAMP`.
pub(crate) const UNDEFINED_U64: u64 = u64::MAX;

/// An unsigned integer: its length in bytes, then these bytes, little-endian; 0 is `00`, and the maximum is `ff`.
#[inline]
pub(crate) fn u32(out: &mut Vec<u8>, value: u32) {
    if value == u32::MAX {
        return out.push(0xff);
    }
    u64(out, value.into());
}

/// Like [`u32()`]; `ff` is `u64::MAX`.
#[inline]
pub(crate) fn u64(out: &mut Vec<u8>, value: u64) {
    if value == u64::MAX {
        return out.push(0xff);
    }
    let bytes = 8 - value.leading_zeros() as usize / 8;
    let mut encoded = [0; 9];
    encoded[0] = bytes as u8;
    encoded[1..].copy_from_slice(&value.to_le_bytes());
    out.extend_from_slice(&encoded[..=bytes]);
}

/// A signed integer. It is encoded like an unsigned one, but -1 (all bits set) has no short form.
pub(crate) fn i64(out: &mut Vec<u8>, value: i64) {
    if value == -1 {
        out.push(8);
        return out.extend_from_slice(&value.to_le_bytes());
    }
    u64(out, value as u64);
}

/// A text: its bytes, then a zero byte. A zero byte inside would end it, so it is replaced by `␀` (U+2400).
pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    for (index, part) in text.split('\0').enumerate() {
        if index > 0 {
            out.extend_from_slice("\u{2400}".as_bytes());
        }
        out.extend_from_slice(part.as_bytes());
    }
    out.push(0);
}

/// A record: its kind, the length of its body, its body.
#[inline]
pub(crate) fn record(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[kind, 0]);
    let begin = out.len();
    body(out);
    let length = out.len() - begin;
    match u8::try_from(length) {
        Ok(short) if short < 0xff => out[begin - 1] = short,
        _ => {
            out[begin - 1] = 0xff;
            out.splice(begin..begin, (length as u64).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    // value            bytes
    // 0                00
    // 300              02 2c 01
    // 70000            03 70 11 01
    // undefined        ff
    #[test]
    fn an_integer_is_its_length_and_its_bytes() {
        assert_eq!(bytes(|out| u32(out, 0)), [0]);
        assert_eq!(bytes(|out| u32(out, 300)), [2, 0x2c, 1]);
        assert_eq!(bytes(|out| u32(out, 70000)), [3, 0x70, 0x11, 1]);
        assert_eq!(bytes(|out| u32(out, u32::MAX)), [0xff]);
        assert_eq!(bytes(|out| u64(out, u32::MAX.into())), [4, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(bytes(|out| u64(out, u64::MAX)), [0xff]);
        assert_eq!(bytes(|out| u64(out, u64::MAX - 1)), [8, 0xfe, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(bytes(|out| i64(out, -1)), [8, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(bytes(|out| i64(out, -2)), [8, 0xfe, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(bytes(|out| i64(out, 5)), [1, 5]);
    }

    #[test]
    fn a_zero_does_not_end_a_text() {
        assert_eq!(bytes(|out| text(out, "a\0b")), b"a\xe2\x90\x80b\0");
    }

    #[test]
    fn a_long_record_has_a_long_length() {
        let body = [7; 255];
        let short = bytes(|out| record(out, 10, |out| out.extend_from_slice(&body[..254])));
        assert_eq!((&short[..3], short.len()), (&[10, 254, 7][..], 256));
        let long = bytes(|out| record(out, 10, |out| out.extend_from_slice(&body)));
        assert_eq!((&long[..11], long.len()), (&[10, 255, 255, 0, 0, 0, 0, 0, 0, 0, 7][..], 265));
    }
}
