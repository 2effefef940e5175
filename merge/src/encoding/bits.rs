//! Small numbers of equal width, packed in Parquet's format as they arrive. Used for levels and booleans.
//!
//! ```text
//!   bit   63        4 3 2 1 0
//!   word  | … | v2 | v1 | v0 |     the first in the lowest bits; a number may reach into the next word
//! ```

/// Bits in a word.
pub(crate) const WORD: usize = u64::BITS as usize;

/// Packed numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    /// The word that is being filled, and how many of its bits are filled; fewer than 64.
    open: u64,
    filled: u32,
}

impl Bits {
    /// Appends the lowest `count` bits of `bits`, at most 64. The bits above must be zero.
    #[inline]
    pub(crate) fn push(&mut self, bits: u64, count: u32) {
        self.open |= bits << self.filled;
        let filled = self.filled + count;
        if filled < u64::BITS {
            self.filled = filled;
            return;
        }
        self.words.push(self.open);
        self.filled = filled - u64::BITS;
        // The bits for which the full word had no room. If `filled` is 0, nothing remains.
        self.open = if self.filled == 0 { 0 } else { bits >> (count - self.filled) };
    }

    /// Number of bits.
    pub(crate) fn len(&self) -> usize {
        self.words.len() * WORD + self.filled as usize
    }

    /// The words. In the last word, the bits after those that were pushed repeat the last `width` of them.
    pub(crate) fn words(&self, width: usize) -> impl Iterator<Item = u64> + Clone {
        let last = (self.filled > 0).then(|| {
            let pattern = repeated(self.open >> (self.filled as usize - width), width);
            self.open | pattern << self.filled
        });
        self.words.iter().copied().chain(last)
    }
}

/// A word full of one number of `width` bits, a divisor of 64. Only the lowest `width` bits of `number` count.
pub(crate) fn repeated(number: u64, width: usize) -> u64 {
    let most = u64::MAX >> (WORD - width);
    u64::MAX / most * (number & most)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Compares pieces of any length with a model that handles one bit after the other.
    #[test]
    fn bits_stand_in_the_order_they_came_in() {
        let (mut bits, mut model) = (Bits::default(), Vec::new());
        let mut chance = 1u64;
        for count in (0..=64).cycle().take(1000) {
            chance = chance.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(7);
            let piece = if count == 0 { 0 } else { chance >> (64 - count) };
            bits.push(piece, count);
            model.extend((0..count).map(|bit| piece >> bit & 1));
            assert_eq!(bits.len(), model.len());
        }
        let bit = |at: usize| bits.words(1).nth(at / WORD).map(|word| word >> (at % WORD) & 1);
        for (at, expected) in model.iter().enumerate().step_by(37) {
            assert_eq!(bit(at), Some(*expected), "bit {at}");
        }
    }

    #[test]
    fn the_last_word_is_filled_up_with_the_last_number() {
        let mut bits = Bits::default();
        bits.push(0b10_01, 4);
        assert_eq!(bits.words(2).collect::<Vec<_>>(), [0xaaaa_aaaa_aaaa_aaa9]);
        bits.push(u64::MAX >> 4, 60);
        assert_eq!(bits.words(2).collect::<Vec<_>>(), [u64::MAX << 4 | 0b1001]);
    }

    #[test]
    fn a_word_is_full_of_one_number() {
        assert_eq!(
            [repeated(1, 1), repeated(2, 2), repeated(7, 2)],
            [u64::MAX, 0xaaaa_aaaa_aaaa_aaaa, u64::MAX]
        );
    }
}
