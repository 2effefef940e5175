//! A C string as a parameter: its bytes, up to a maximum length. They need not be UTF-8.

use std::{
    ffi::c_char,
    slice,
    sync::atomic::{AtomicU64, Ordering},
};

use fut::{Param, model::FieldType};

/// Maximum length of a recorded text in bytes, as in Rust. A text without a terminator in this range is truncated, and
/// ends with [`CUT`].
const MAX_TEXT: usize = 512;

/// Marks the end of a truncated text.
const CUT: &[u8] = "\u{2026}".as_bytes();

/// The bytes of a text, without the terminator.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(&'a [u8]);

impl Text<'_> {
    /// The text of a C string. A null pointer is an empty text.
    ///
    /// # Safety
    /// `text` is null, or points to bytes that contain a terminator or are at least 512, and do not change during `'a`.
    #[inline]
    pub(crate) unsafe fn of<'a>(text: *const c_char) -> Text<'a> {
        if text.is_null() {
            return Text(&[]);
        }
        // SAFETY: the caller guarantees that number of bytes, or a terminator before their end.
        let len = unsafe { libc::strnlen(text, MAX_TEXT) };
        // SAFETY: `strnlen` has read these bytes.
        Text(unsafe { slice::from_raw_parts(text.cast(), len) })
    }
}

// SAFETY: `words` counts one word for the length and enough for the bytes; `write` stores the same number.
unsafe impl Param for Text<'_> {
    const TYPE: FieldType = FieldType::Text;
    const MOST_WORDS: usize = 1 + MAX_TEXT.div_ceil(8);
    const SAMPLE: Self = Text(b"sixteen letters.");

    #[inline]
    fn words(self) -> usize {
        1 + self.0.len().div_ceil(8)
    }

    #[inline]
    unsafe fn write(self, to: *mut u64) {
        let mut cut = [0; MAX_TEXT];
        let text = if self.0.len() == MAX_TEXT { cut_short(self.0, &mut cut) } else { self.0 };
        let words = text.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        for (index, word) in [text.len() as u64].into_iter().chain(words).enumerate() {
            // SAFETY: `index` is below `words()`, the number for which `to` is valid.
            let place = unsafe { to.add(index) };
            // SAFETY: the word is aligned, and only accessed here until the record is committed.
            unsafe { AtomicU64::from_ptr(place) }.store(word, Ordering::Relaxed);
        }
    }
}

/// Truncates a text of [`MAX_TEXT`] bytes, and marks it with [`CUT`]. If the text is UTF-8, it is truncated between
/// characters. The result has at least 509 bytes, so it takes the same number of words.
#[cold]
fn cut_short<'a>(text: &[u8], cut: &'a mut [u8; MAX_TEXT]) -> &'a [u8] {
    let most = MAX_TEXT - CUT.len();
    let is_inside = |at: &usize| text[*at] & 0b1100_0000 == 0b1000_0000;
    let end = (most - 3..=most).rev().find(|at| !is_inside(at)).unwrap_or(most);
    cut[..end].copy_from_slice(&text[..end]);
    cut[end..end + CUT.len()].copy_from_slice(CUT);
    &cut[..end + CUT.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_text_takes_the_most_words_and_no_more_are_stored() {
        let text = [b'x'; 2 * MAX_TEXT];
        // SAFETY: the text is longer than 512 bytes.
        let text = unsafe { Text::of(text.as_ptr().cast()) };
        assert_eq!(text.words(), Text::MOST_WORDS);
        let mut words = [u64::MAX; Text::MOST_WORDS + 1];
        // SAFETY: there is room for one word more than the text takes.
        unsafe { text.write(words.as_mut_ptr()) };
        assert_eq!((words[0], words[Text::MOST_WORDS]), (MAX_TEXT as u64, u64::MAX));
    }
}
