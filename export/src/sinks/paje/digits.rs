//! Appends short texts and numbers to a line. Texts are copied in blocks of constant length: calls of `memcpy` took a
//! seventh of the time of an export of system calls.

use sigmund_model::Nanos;

/// A short text that is appended often. It is copied in whole blocks, and the padding of the last block is truncated.
#[derive(Clone, Debug, Default)]
pub(super) struct ShortText {
    blocks: Vec<[u8; BLOCK]>,
    len: usize,
}

const BLOCK: usize = 16;

impl ShortText {
    pub(super) fn new(text: &[u8]) -> ShortText {
        let mut short = ShortText::default();
        short.set(text);
        short
    }

    /// Replaces the text.
    pub(super) fn set(&mut self, text: &[u8]) {
        self.len = text.len();
        self.blocks.clear();
        self.blocks.extend(text.chunks(BLOCK).map(|part| {
            let mut block = [0; BLOCK];
            block[..part.len()].copy_from_slice(part);
            block
        }));
    }

    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.len;
        for block in &self.blocks {
            out.extend_from_slice(block);
        }
        out.truncate(end);
    }
}

/// Appends seconds with nine decimals: `12.000000400`.
pub(super) fn seconds(out: &mut Vec<u8>, nanos: Nanos) {
    decimal(out, nanos.0 / BILLION);
    let at = out.len();
    // BILLION adds a leading 1, which keeps the leading zeros; the point replaces it.
    decimal(out, BILLION + nanos.0 % BILLION);
    out[at] = b'.';
}

/// Appends the decimal digits of a number.
pub(super) fn decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends the hexadecimal digits of a number.
pub(super) fn hexadecimal(out: &mut Vec<u8>, number: u64) {
    let digits = (u64::BITS - (number | 1).leading_zeros()).div_ceil(4);
    let digit = |place: u32| b"0123456789abcdef"[(number >> (4 * place) & 15) as usize];
    out.extend((0..digits).rev().map(digit));
}

const BILLION: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"before ".to_vec();
        write(&mut out);
        String::from_utf8(out).unwrap().strip_prefix("before ").unwrap().to_string()
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        for near in powers.chain([u64::MAX - 1, 123_456_789]) {
            for number in near - 1..=near + 1 {
                assert_eq!(written(|out| decimal(out, number)), number.to_string());
                assert_eq!(written(|out| hexadecimal(out, number)), format!("{number:x}"));
                let [whole, rest] = [number / 1_000_000_000, number % 1_000_000_000];
                assert_eq!(written(|out| seconds(out, Nanos(number))), format!("{whole}.{rest:09}"));
            }
        }
    }

    #[test]
    fn a_short_text_is_appended_whole_whatever_its_length() {
        let text: String = ('a'..='z').cycle().take(70).collect();
        let mut short = ShortText::default();
        for len in (0..=70).rev() {
            short.set(&text.as_bytes()[..len]);
            assert_eq!(written(|out| short.append_to(out)), text[..len]);
        }
    }
}
