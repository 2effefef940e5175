//! Types of parameters that a probe can record: numbers, flags, addresses, texts.

use std::sync::atomic::{AtomicU64, Ordering};

use sigmund_model::{FieldType, Thread};

/// Maximum length of a recorded text, in bytes. A longer one is truncated, and ends with [`CUT`].
const MAX_TEXT: usize = 512;

/// Marks the end of a truncated text.
const CUT: &str = "\u{2026}";

/// A value that can be recorded.
///
/// # Safety
/// `write` stores exactly `words()` words at `to`, at most [`MOST_WORDS`](Param::MOST_WORDS), and does not read from `to`.
pub unsafe trait Param: Copy {
    /// The type in the event's declaration.
    const TYPE: FieldType;

    /// The largest number of words that a value of this type takes.
    const MOST_WORDS: usize;

    /// A typical value, for measuring the cost of recording.
    const SAMPLE: Self;

    /// Number of words that the value takes.
    #[inline(always)]
    fn words(self) -> usize {
        1
    }

    /// Stores the value.
    ///
    /// # Safety
    /// `to` is valid for writing `words()` words.
    unsafe fn write(self, to: *mut u64);
}

/// Stores one word of a record that is not committed yet.
///
/// # Safety
/// `to` is aligned, and valid for writing.
#[inline(always)]
unsafe fn store(to: *mut u64, word: u64) {
    // SAFETY: the caller guarantees it.
    let to = unsafe { AtomicU64::from_ptr(to) };
    to.store(word, Ordering::Relaxed);
}

macro_rules! number {
    ($($ty:ty => $field:ident, $sample:expr, $this:ident => $bits:expr;)*) => { $(
        // SAFETY: one word is declared and one is stored.
        unsafe impl Param for $ty {
            const TYPE: FieldType = FieldType::$field;
            const MOST_WORDS: usize = 1;
            const SAMPLE: $ty = $sample;

            #[inline(always)]
            unsafe fn write(self, to: *mut u64) {
                let $this = self;
                // SAFETY: `to` is valid for one word, as the caller guarantees.
                unsafe { store(to, $bits) };
            }
        }
    )* };
}

number! {
    u8 => U8, 1, n => u64::from(n);
    u16 => U16, 1, n => u64::from(n);
    u32 => U32, 1, n => u64::from(n);
    u64 => U64, 1, n => n;
    usize => U64, 1, n => n as u64;
    i8 => I64, -1, n => i64::from(n) as u64;
    i16 => I64, -1, n => i64::from(n) as u64;
    i32 => I64, -1, n => i64::from(n) as u64;
    i64 => I64, -1, n => n as u64;
    isize => I64, -1, n => n as u64;
    f64 => F64, 1.0, x => x.to_bits();
    bool => Bool, true, b => u64::from(b);
    Thread => Thread, Thread(1), t => t.0;
}

macro_rules! pointer {
    ($($ty:ty => $sample:expr;)*) => { $(
        // SAFETY: one word is declared and one is stored.
        unsafe impl<T> Param for $ty {
            const TYPE: FieldType = FieldType::Pointer;
            const MOST_WORDS: usize = 1;
            const SAMPLE: $ty = $sample;

            #[inline(always)]
            unsafe fn write(self, to: *mut u64) {
                // SAFETY: `to` is valid for one word, as the caller guarantees.
                unsafe { store(to, self.addr() as u64) };
            }
        }
    )* };
}

pointer! {
    *const T => std::ptr::null();
    *mut T => std::ptr::null_mut();
}

// SAFETY: `words` counts one word for the length and enough for the bytes; `write` stores the same number.
unsafe impl Param for &str {
    const TYPE: FieldType = FieldType::Text;
    const MOST_WORDS: usize = 1 + MAX_TEXT.div_ceil(8);
    const SAMPLE: Self = "sixteen letters.";

    #[inline]
    fn words(self) -> usize {
        1 + self.len().min(MAX_TEXT).div_ceil(8)
    }

    #[inline]
    unsafe fn write(self, to: *mut u64) {
        if self.len() > MAX_TEXT {
            // SAFETY: here, `words` returns the number of words for `MAX_TEXT` bytes, for which `to` is valid.
            unsafe { write_cut(self, to) };
            return;
        }
        let bytes = self.as_bytes();
        // SAFETY: this is the first of the words for which `to` is valid.
        unsafe { store(to, bytes.len() as u64) };
        let (words, rest) = bytes.as_chunks::<8>();
        let mut place = to.wrapping_add(1);
        for word in words {
            // SAFETY: this is one of the words for the bytes: there are as many words as chunks.
            unsafe { store(place, u64::from_le_bytes(*word)) };
            place = place.wrapping_add(1);
        }
        if !rest.is_empty() {
            // SAFETY: this is the last of these words.
            unsafe { store(place, last_word(bytes, rest)) };
        }
    }
}

/// Stores a truncated text: whole characters, and [`CUT`]. A character has at most 4 bytes, so the result takes as many
/// words as a text of [`MAX_TEXT`] bytes.
///
/// # Safety
/// `to` is valid for writing the words of a text of [`MAX_TEXT`] bytes.
#[cold]
#[inline(never)]
unsafe fn write_cut(text: &str, to: *mut u64) {
    let kept = &text.as_bytes()[..text.floor_char_boundary(MAX_TEXT - CUT.len())];
    let mut bytes = [0; MAX_TEXT];
    let (beginning, rest) = bytes.split_at_mut(kept.len());
    beginning.copy_from_slice(kept);
    rest[..CUT.len()].copy_from_slice(CUT.as_bytes());
    let length = (kept.len() + CUT.len()) as u64;
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    for (index, word) in std::iter::once(length).chain(words).enumerate() {
        // SAFETY: one word for the length and MAX_TEXT / 8 for the bytes, for which `to` is valid.
        unsafe { store(to.wrapping_add(index), word) };
    }
}

/// The last bytes of a text, fewer than 8, as a word padded with zeros. For texts of 8 bytes or more, it makes no call
/// and has no loop.
#[inline(always)]
fn last_word(text: &[u8], rest: &[u8]) -> u64 {
    match text.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last) >> (8 * (8 - rest.len())),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// The parameters of one event together: a tuple of up to eight [`Param`]s.
///
/// # Safety
/// `write` stores exactly `words()` words at `to`, at most [`MOST_WORDS`](Fields::MOST_WORDS), and does not read from
/// `to`.
pub unsafe trait Fields: Copy {
    /// The largest number of words that values of these types take.
    const MOST_WORDS: usize;

    /// Number of words that the values take.
    fn words(self) -> usize;

    /// Stores the parameters.
    ///
    /// # Safety
    /// `to` is valid for writing `words()` words.
    unsafe fn write(self, to: *mut u64);
}

macro_rules! tuple {
    ($($param:ident)*) => {
        // SAFETY: each parameter stores the words it declares, one after the other.
        unsafe impl<$($param: Param),*> Fields for ($($param,)*) {
            const MOST_WORDS: usize = 0 $(+ $param::MOST_WORDS)*;

            #[inline(always)]
            fn words(self) -> usize {
                #[allow(non_snake_case)]
                let ($($param,)*) = self;
                0 $(+ $param.words())*
            }

            #[inline(always)]
            #[allow(unused_mut, unused_variables, unused_assignments)]
            unsafe fn write(self, mut to: *mut u64) {
                #[allow(non_snake_case)]
                let ($($param,)*) = self;
                $(
                    // SAFETY: the caller's `to` is valid for the words of all parameters. The words of this one are at
                    // the current `to`.
                    unsafe { $param.write(to) };
                    to = to.wrapping_add($param.words());
                )*
            }
        }
    };
}

tuple!();
tuple!(A);
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_its_length_and_its_bytes_padded_with_zeros() {
        let letters: String = ('a'..='z').cycle().take(MAX_TEXT + 100).collect();
        for len in (0..40).chain([MAX_TEXT - 1, MAX_TEXT]) {
            let text = &letters[..len];
            let mut words = [u64::MAX; 2 + MAX_TEXT / 8];
            // SAFETY: room for the longest text.
            unsafe { text.write(words.as_mut_ptr()) };
            let kept = len.min(MAX_TEXT);
            assert_eq!((words[0], text.words()), (kept as u64, 1 + kept.div_ceil(8)));
            let bytes: Vec<u8> = words[1..text.words()].iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(&bytes[..kept], &text.as_bytes()[..kept]);
            assert!(bytes[kept..].iter().all(|byte| *byte == 0));
            assert_eq!(words[text.words()], u64::MAX, "nothing after it");
        }
    }

    #[test]
    fn a_text_that_is_too_long_keeps_whole_characters_and_a_mark() {
        for character in ["a", "é", "€", "😀"] {
            for before in 0..4 {
                let text = "-".repeat(before) + &character.repeat(MAX_TEXT + 1);
                let text = text.as_str();
                let mut words = [u64::MAX; 2 + MAX_TEXT / 8];
                // SAFETY: room for the longest text.
                unsafe { text.write(words.as_mut_ptr()) };
                assert_eq!(text.words(), 1 + MAX_TEXT / 8);
                assert_eq!(words[text.words()], u64::MAX, "nothing after it");
                let bytes: Vec<u8> =
                    words[1..text.words()].iter().flat_map(|word| word.to_le_bytes()).collect();
                let (kept, rest) = bytes.split_at(words[0] as usize);
                assert!(rest.iter().all(|byte| *byte == 0));
                let kept = std::str::from_utf8(kept).expect("whole characters");
                let kept = kept.strip_suffix(CUT).expect("a mark");
                assert!(text.starts_with(kept), "{kept}");
                assert!((MAX_TEXT - 3..=MAX_TEXT).contains(&(words[0] as usize)), "{}", words[0]);
            }
        }
    }
}
