//! Numbers in as many bytes as they need, 7 bits each, the lowest first (LEB128).

/// Appends a number.
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number that may be negative: 0, -1, 1, -2, … as 0, 1, 2, 3, …
pub(super) fn zigzag(value: i64, out: &mut Vec<u8>) {
    varint((value << 1 ^ value >> 63) as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_protocol_buffers_encoding_says() {
        let mut out = Vec::new();
        [1, 150, u64::MAX].iter().for_each(|n| varint(*n, &mut out));
        assert_eq!(out[..3], [1, 0x96, 1]);
        assert_eq!((out.len(), out[12]), (13, 1));
        out.clear();
        [0, -1, 1, i64::MIN].iter().for_each(|n| zigzag(*n, &mut out));
        assert_eq!(out, [0, 1, 2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    }
}
