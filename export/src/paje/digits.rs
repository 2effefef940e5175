//! Short texts and numbers at the end of a line, with copies of a length that the compiler knows: a call of `memcpy` for
//! each of them was a seventh of the time that an export of system calls took.

use sigmund_model::Nanos;

/// A short text that is appended often. It is kept in blocks, and the surplus of the last one is cut off again.
#[derive(Clone, Debug, Default)]
pub(super) struct Short {
    blocks: Vec<[u8; BLOCK]>,
    len: usize,
}

const BLOCK: usize = 16;

impl Short {
    pub(super) fn new(text: &[u8]) -> Short {
        let mut short = Short::default();
        short.set(text);
        short
    }

    /// From now on it is this text.
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

/// `12.000000400`.
pub(super) fn seconds(out: &mut Vec<u8>, nanos: Nanos) {
    decimal(out, nanos.0 / 1_000_000_000);
    let rest = nanos.0 % 1_000_000_000;
    out.extend_from_slice(&[b'.', b'0' + (rest / EIGHT) as u8]);
    out.extend_from_slice(&(digits(rest % EIGHT) | ZEROS).to_le_bytes());
}

/// The digits of a number.
pub(super) fn decimal(out: &mut Vec<u8>, number: u64) {
    if number >= EIGHT {
        decimal(out, number / EIGHT);
        return out.extend_from_slice(&(digits(number % EIGHT) | ZEROS).to_le_bytes());
    }
    let digits = digits(number);
    let leading = (digits.trailing_zeros() / 8).min(7);
    let end = out.len() + 8 - leading as usize;
    out.extend_from_slice(&((digits | ZEROS) >> (8 * leading)).to_le_bytes());
    out.truncate(end);
}

/// What has up to eight digits is less.
const EIGHT: u64 = 100_000_000;

/// `00000000`.
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// The values of the eight last digits of a number below [`EIGHT`], the first in the lowest byte. Halves, quarters and
/// single digits are found side by side in one word: a table of pairs has its bytes stored and loaded again.
fn digits(number: u64) -> u64 {
    let halves = number / 10_000 | (number % 10_000) << 32;
    // ⌈2^20 / 100⌉ and ⌈2^10 / 10⌉ are exact below 10^4 and 10^2.
    let hundreds = (halves * 10_486 >> 20) & 0x7f_0000_007f;
    let quarters = hundreds | (halves - hundreds * 100) << 16;
    let tens = (quarters * 103 >> 10) & 0x000f_000f_000f_000f;
    tens | (quarters - tens * 10) << 8
}

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
                let [whole, rest] = [number / 1_000_000_000, number % 1_000_000_000];
                assert_eq!(written(|out| seconds(out, Nanos(number))), format!("{whole}.{rest:09}"));
            }
        }
    }

    #[test]
    fn eight_digits_are_those_of_every_number() {
        let all = (0..10_000).chain((0..EIGHT).step_by(9973)).chain((0..10_000).map(|n| n * 10_000));
        for number in all {
            assert_eq!((digits(number) | ZEROS).to_le_bytes(), *format!("{number:08}").as_bytes());
        }
    }

    #[test]
    fn a_short_text_is_appended_whole_whatever_its_length() {
        let text: String = ('a'..='z').cycle().take(70).collect();
        let mut short = Short::default();
        for len in (0..=70).rev() {
            short.set(text[..len].as_bytes());
            assert_eq!(written(|out| short.append_to(out)), text[..len]);
        }
    }
}
