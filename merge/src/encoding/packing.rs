//! Numbers of equal width, packed in groups of 8. A group of `width`-bit numbers takes exactly `width` bytes.
//!
//! ```text
//!   width 3   |v7 |v6 |v5 |v4 |v3 |v2 |v1 |v0 |     24 bits, the lowest byte first
//! ```

/// Numbers in a group.
pub(super) const GROUP: usize = 8;

/// The width in which numbers of `bits` bits are packed: a width that does not split bytes, if that adds only a few
/// bits.
///
/// zstd finds repetitions and frequencies by whole bytes. For system calls and switches (hackbench, 8.1 M events), a
/// super-trace takes 2.59 bytes per event with these widths, and 2.79 with the narrowest ones.
pub(super) fn aligned(bits: u32) -> u32 {
    match bits {
        0..=2 => bits,
        3..=4 => 4,
        5..=8 => 8,
        9..=16 => 16,
        _ => bits,
    }
}

/// Appends the values, none of which needs more than `width` bits, at most 64. The last group is padded with zeros.
pub(super) fn pack<T: Copy + Default + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + values.len().div_ceil(GROUP) * width as usize, 0);
    let out = &mut out[from..];
    // If the compiler knows the width, the shifts are by constants, which takes a quarter of the time.
    macro_rules! by_width {
        ($($known:literal)*) => {
            match width {
                0 => {}
                $($known => groups(values, $known, out),)*
                _ => groups(values, width as usize, out),
            }
        };
    }
    by_width!(1 2 4 8 16 17 18 19 20 21 22 23 24);
}

#[inline(always)]
fn groups<T: Copy + Default + Into<u64>>(values: &[T], width: usize, out: &mut [u8]) {
    let mut packed = out.chunks_exact_mut(width);
    let (groups, rest) = values.as_chunks::<GROUP>();
    for (group, out) in groups.iter().zip(&mut packed) {
        pack_group(group, width, out);
    }
    if let Some(out) = packed.next() {
        let mut group = [T::default(); GROUP];
        group[..rest.len()].copy_from_slice(rest);
        pack_group(&group, width, out);
    }
}

#[inline(always)]
fn pack_group<T: Copy + Into<u64>>(group: &[T; GROUP], width: usize, out: &mut [u8]) {
    let mut words = [0u64; GROUP];
    for (index, value) in group.iter().enumerate() {
        let value: u64 = (*value).into();
        let (word, shift) = (index * width / 64, index * width % 64);
        words[word] |= value << shift;
        if shift + width > 64 {
            words[word + 1] |= value >> (64 - shift);
        }
    }
    for (word, bytes) in words.iter().zip(out.chunks_mut(8)) {
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aligned_width_holds_the_bits_and_divides_bytes_or_is_made_of_them() {
        for bits in 0..=64 {
            let width = aligned(bits);
            assert!(width >= bits && (bits <= 16 || width == bits), "{bits} bits in {width}");
            assert!(bits > 16 || [0, 1, 2, 4, 8, 16].contains(&width), "{bits} bits in {width}");
        }
    }

    /// The number at an index, read bit by bit.
    fn number(bytes: &[u8], width: usize, place: usize) -> u64 {
        let bit = |at: usize| u64::from(bytes[at / 8] >> (at % 8) & 1);
        (0..width).fold(0, |number, b| number | bit(place * width + b) << b)
    }

    // The example of Encodings.md: 0 1 2 3 4 5 6 7 in 3 bits each are 10001000 11000110 11111010.
    #[test]
    fn groups_are_packed_as_the_specification_draws_them() {
        let mut out = vec![1];
        pack(&[0u32, 1, 2, 3, 4, 5, 6, 7], 3, &mut out);
        assert_eq!(out, [1, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn numbers_of_every_width_and_count_come_back() {
        for width in 0..=64 {
            for count in [0, 1, 7, 8, 9, 16, 63, 64, 65] {
                let most = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
                let values: Vec<u64> =
                    (0..count).map(|n: u64| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & most).collect();
                let mut out = Vec::new();
                pack(&values, width, &mut out);
                assert_eq!(out.len(), values.len().div_ceil(8) * width as usize, "{count} of width {width}");
                let read: Vec<u64> = (0..values.len()).map(|n| number(&out, width as usize, n)).collect();
                assert_eq!(read, values, "{count} of width {width}");
            }
        }
    }
}
