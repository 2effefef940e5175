//! Parquet's hybrid of run lengths and bit packing, for small numbers (parquet-format, Encodings.md, "RLE = 3").
//!
//! ```text
//!   run       varint(length << 1)      value, in as few bytes as hold the width
//!   literals  varint(groups << 1 | 1)  groups × 8 values of `width` bits each, the first in the lowest bits
//! ```

/// Values in a group of literals.
const GROUP: usize = 8;
/// Shorter runs are cheaper as literals.
const SHORTEST_RUN: usize = 16;

/// Bits that hold all numbers up to `most`; one at least.
pub(super) fn width_of(most: u32) -> u32 {
    (u32::BITS - most.leading_zeros()).max(1)
}

/// Appends the values, none of which needs more than `width` bits.
pub(super) fn encode(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut at, mut literals_from) = (0, 0);
    while at < values.len() {
        let run = run_length(&values[at..]);
        if run < SHORTEST_RUN {
            at = (at + GROUP).min(values.len());
            continue;
        }
        literals(&values[literals_from..at], width, out);
        varint((run as u64) << 1, out);
        out.extend_from_slice(&values[at].to_le_bytes()[..width.div_ceil(8) as usize]);
        at += run;
        literals_from = at;
    }
    literals(&values[literals_from..], width, out);
}

fn run_length(values: &[u32]) -> usize {
    let first = values[0];
    values.iter().position(|value| *value != first).unwrap_or(values.len())
}

/// The last group is filled up with zeros, which readers know by the number of values.
fn literals(values: &[u32], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    varint((values.len().div_ceil(GROUP) as u64) << 1 | 1, out);
    for group in values.chunks(GROUP) {
        if width <= 16 {
            // All 8 fit into 128 bits.
            let bits = group.iter().rev().fold(0u128, |bits, value| bits << width | u128::from(*value));
            out.extend_from_slice(&bits.to_le_bytes()[..width as usize]);
        } else {
            wide_group(group, width, out);
        }
    }
}

/// 8 values of more than 16 bits: together they are whole bytes, each alone is not.
fn wide_group(group: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0u64, 0);
    for index in 0..GROUP {
        bits |= u64::from(group.get(index).copied().unwrap_or(0)) << held;
        held += width;
        while held >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(values: &[u32], width: u32) -> Vec<u8> {
        let mut out = Vec::new();
        encode(values, width, &mut out);
        out
    }

    // The example of Encodings.md: 0 1 2 3 4 5 6 7 in 3 bits each are 10001000 11000110 11111010.
    #[test]
    fn literals_are_packed_as_the_specification_draws_them() {
        assert_eq!(encoded(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        assert_eq!(encoded(&[1, 0, 1], 1), [3, 0b101]);
    }

    #[test]
    fn a_long_run_is_its_length_and_its_value() {
        assert_eq!(encoded(&[5; 100], 3), [200, 1, 5]);
        let mut values = vec![1, 2, 3, 4, 5, 6, 7, 0];
        values.extend([9; 16]);
        assert_eq!(encoded(&values, 4), [3, 0x21, 0x43, 0x65, 0x07, 32, 9]);
    }

    /// Reads literals of up to 8 groups back, bit by bit.
    fn unpacked(bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
        let bit = |at: usize| u32::from(bytes[1 + at / 8] >> (at % 8) & 1);
        let value = |n: usize| (0..width as usize).map(|b| bit(n * width as usize + b) << b).sum();
        (0..count).map(value).collect()
    }

    #[test]
    fn values_of_every_width_come_back() {
        for width in 1..=32 {
            let most = u32::MAX >> (32 - width);
            let values: Vec<u32> = (0..21).map(|n: u32| n.wrapping_mul(0x9e37_79b9) & most).collect();
            let bytes = encoded(&values, width);
            assert_eq!((bytes[0], bytes.len()), (3 << 1 | 1, 1 + 3 * width as usize), "width {width}");
            assert_eq!(unpacked(&bytes, width, values.len()), values, "width {width}");
        }
    }

    #[test]
    fn the_width_holds_the_largest() {
        assert_eq!([0, 1, 2, 255, 256, u32::MAX].map(width_of), [1, 1, 2, 8, 9, 32]);
    }
}
