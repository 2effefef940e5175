//! Parquet's hybrid of run lengths and bit packing, for small numbers (parquet-format, Encodings.md, "RLE = 3").
//!
//! ```text
//!   run       varint(length << 1)      value, in as few bytes as hold the width
//!   literals  varint(groups << 1 | 1)  groups × 8 values of `width` bits each, the first in the lowest bits
//! ```

use super::{
    bits::{self, Bits},
    packing::{GROUP, aligned, pack},
    varint::varint,
};

/// Shorter runs are cheaper as literals.
const SHORTEST_RUN: usize = 16;

/// The width of numbers up to `most`; at least one bit.
pub(super) fn width_of(most: u32) -> u32 {
    aligned((u32::BITS - most.leading_zeros()).max(1))
}

/// Appends the values, none of which needs more than `width` bits.
pub(super) fn encode(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut at, mut literals_from) = (0, 0);
    while at < values.len() {
        if !begins_with_a_run(&values[at..]) {
            at = (at + GROUP).min(values.len());
            continue;
        }
        let length = run_length(&values[at..]);
        literals(&values[literals_from..at], width, out);
        run(u64::from(values[at]), length, width, out);
        at += length;
        literals_from = at;
    }
    literals(&values[literals_from..], width, out);
}

/// Most stretches are not runs. Comparing all values of one takes less time than searching for its first difference.
fn begins_with_a_run(values: &[u32]) -> bool {
    let Some(stretch) = values.first_chunk::<SHORTEST_RUN>() else { return false };
    stretch.iter().fold(0, |differences, value| differences | (value ^ stretch[0])) == 0
}

fn run_length(values: &[u32]) -> usize {
    values.iter().position(|value| *value != values[0]).unwrap_or(values.len())
}

/// Appends numbers that are already packed. A run is a sequence of words that repeat one number.
pub(super) fn encode_bits(bits: &Bits, width: usize, out: &mut Vec<u8>) {
    let word_values = bits::WORD / width;
    let mut left = bits.len() / width;
    let mut words = bits.words(width).peekable();
    let mut literals = Vec::new();
    while let Some(word) = words.next() {
        if word != bits::repeated(word, width) {
            literals.extend(word.to_le_bytes());
            left = left.saturating_sub(word_values);
            continue;
        }
        packed_literals(&mut literals, width, out);
        let mut length = word_values;
        while words.next_if_eq(&word).is_some() {
            length += word_values;
        }
        let value = word & (u64::MAX >> (bits::WORD - width));
        run(value, length.min(left), width as u32, out);
        left = left.saturating_sub(length);
    }
    // The last word has more numbers than remain.
    let surplus = (bits.len() / width).next_multiple_of(word_values) - (bits.len() / width);
    literals.truncate(literals.len().saturating_sub(surplus / GROUP * width));
    packed_literals(&mut literals, width, out);
}

fn run(value: u64, length: usize, width: u32, out: &mut Vec<u8>) {
    varint((length as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Appends literals. Readers know from the number of values where the last group ends.
fn literals(values: &[u32], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    varint((values.len().div_ceil(GROUP) as u64) << 1 | 1, out);
    pack(values, width, out);
}

/// The same, from whole groups. The vector is empty afterwards.
fn packed_literals(groups: &mut Vec<u8>, width: usize, out: &mut Vec<u8>) {
    if groups.is_empty() {
        return;
    }
    varint(((groups.len() / width) as u64) << 1 | 1, out);
    out.append(groups);
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

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
        assert_eq!([0, 1, 2, 4, 16, 255, 256, 1 << 16].map(width_of), [1, 1, 2, 4, 8, 8, 16, 17]);
    }

    /// Decodes a whole encoding, according to the specification.
    fn decoded(mut bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
        let mut values = Vec::new();
        while values.len() < count {
            let (mut header, mut shift) = (0u64, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            let length = (header >> 1) as usize;
            if header & 1 == 0 {
                let (value, rest) = bytes.split_at(width.div_ceil(8) as usize);
                let value = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
                values.extend(std::iter::repeat_n(value, length));
                assert!(values.len() <= count, "a run goes beyond the end");
                bytes = rest;
            } else {
                let (groups, rest) = bytes.split_at(length * width as usize);
                let bit = |at: usize| u32::from(groups[at / 8] >> (at % 8) & 1);
                let width = width as usize;
                values.extend(
                    (0..length * 8).map(|n| (0..width).map(|b| bit(n * width + b) << b).sum::<u32>()),
                );
                bytes = rest;
            }
        }
        assert!(bytes.is_empty(), "{} bytes behind the last value", bytes.len());
        values.truncate(count);
        values
    }

    proptest! {
        // Stretches of one number and stretches of different numbers, of any length, in any order.
        #[test]
        fn runs_and_literals_come_back(
            width in 1u32..=20,
            stretches in vec((any::<u32>(), 1usize..200, any::<bool>()), 0..12),
        ) {
            let most = u32::MAX >> (32 - width);
            let stretch = |(number, length, is_run): &(u32, usize, bool)| -> Vec<u32> {
                let step = if *is_run { 0 } else { 0x9e37_79b9 };
                (0..*length as u32).map(|n| number.wrapping_add(n.wrapping_mul(step)) & most).collect()
            };
            let values: Vec<u32> = stretches.iter().flat_map(stretch).collect();
            prop_assert_eq!(&decoded(&encoded(&values, width), width, values.len()), &values);
            if width <= 2 {
                let (mut bits, mut out) = (Bits::default(), Vec::new());
                values.iter().for_each(|value| bits.push(u64::from(*value), width));
                encode_bits(&bits, width as usize, &mut out);
                prop_assert_eq!(decoded(&out, width, values.len()), values);
            }
        }
    }
}
