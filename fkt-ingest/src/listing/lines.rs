//! The lines of a part of a listing, read in blocks: a long listing is not held in memory.

use std::io;
use std::ops::Range;

use crate::input::Input;

/// Longer lines are damaged. A recorded event has less than 64 KiB.
pub(super) const LONGEST: usize = 1 << 20;

/// Reads lines.
#[derive(Debug)]
pub(super) struct Lines {
    input: Input,
    /// Where the next block begins in the input, and where the part ends.
    at: u64,
    end: u64,
    block: usize,
    bytes: Vec<u8>,
    /// The current line, in `bytes`, without the end of the line.
    line: Range<usize>,
    /// Where the next line begins in `bytes`.
    next: usize,
    is_too_long: bool,
}

impl Lines {
    /// The lines of the bytes `part`, read in blocks of this size.
    pub(super) fn new(input: Input, part: Range<u64>, block: usize) -> Lines {
        let (at, end) = (part.start, part.end);
        Lines { input, at, end, block, bytes: Vec::new(), line: 0..0, next: 0, is_too_long: false }
    }

    /// Moves to the next line; `false` after the last.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        let mut searched = self.next;
        let mut dropped = false;
        loop {
            if let Some(newline) = memchr::memchr(b'\n', &self.bytes[searched..]) {
                self.cut(searched + newline, 1, dropped);
                return Ok(true);
            }
            searched = self.bytes.len();
            if self.bytes.len() - self.next > LONGEST {
                // Its beginning is enough to show it.
                self.bytes.truncate(self.next + LONGEST);
                searched = self.bytes.len();
                dropped = true;
            }
            let kept = searched - self.next;
            if self.read()? == 0 {
                if self.bytes.is_empty() {
                    return Ok(false);
                }
                self.cut(self.bytes.len(), 0, dropped);
                return Ok(true);
            }
            searched = kept;
        }
    }

    /// The current line, without its end.
    pub(super) fn line(&self) -> &[u8] {
        &self.bytes[self.line.clone()]
    }

    /// Whether the current line is longer than [`LONGEST`]; then [`line`](Self::line) is its beginning.
    pub(super) fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    /// Where the next line begins in the input.
    pub(super) fn position(&self) -> u64 {
        self.at - (self.bytes.len() - self.next) as u64
    }

    /// Moves what is left to the front, and reads a block after it; the number of bytes read.
    fn read(&mut self) -> io::Result<usize> {
        self.bytes.drain(..self.next);
        self.next = 0;
        let kept = self.bytes.len();
        let wanted = (self.end - self.at).min(self.block as u64) as usize;
        self.bytes.resize(kept + wanted, 0);
        let read = self.input.read_at(self.at, &mut self.bytes[kept..])?;
        self.bytes.truncate(kept + read);
        self.at += read as u64;
        Ok(read)
    }

    fn cut(&mut self, end: usize, newline: usize, dropped: bool) {
        self.is_too_long = dropped || end - self.next > LONGEST;
        let shown = end.min(self.next + LONGEST);
        let carriage_return = usize::from(newline > 0 && self.bytes[self.next..shown].ends_with(b"\r"));
        self.line = self.next..shown - carriage_return;
        self.next = end + newline;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn lines(text: &[u8], block: usize) -> Vec<(Vec<u8>, bool, u64)> {
        let input = Input::from_bytes(Path::new("lines"), text.to_vec());
        let mut lines = Lines::new(input, 0..text.len() as u64, block);
        let mut found = Vec::new();
        while lines.advance().unwrap() {
            found.push((lines.line().to_vec(), lines.is_too_long(), lines.position()));
        }
        assert!(!lines.advance().unwrap());
        found
    }

    #[test]
    fn lines_are_those_of_the_text_whatever_the_blocks() {
        let text = "one\n\ntwo and more\r\n\n\nthree";
        let expected: Vec<&str> = text.lines().collect();
        for block in 1..30 {
            let found = lines(text.as_bytes(), block);
            let shown: Vec<&str> =
                found.iter().map(|(line, ..)| std::str::from_utf8(line).unwrap()).collect();
            assert_eq!(shown, expected, "{block}");
            let positions: Vec<u64> = found.iter().map(|(.., position)| *position).collect();
            assert_eq!(positions, [4, 5, 19, 20, 21, 26], "{block}");
        }
        assert_eq!(lines(b"", 7), []);
        assert_eq!(lines(b"\n", 7), [(vec![], false, 1)]);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_the_next_one_is_whole() {
        for (length, is_too_long) in [(LONGEST, false), (LONGEST + 1, true), (3 * LONGEST, true)] {
            let text = [vec![b'x'; length], b"\nnext".to_vec()].concat();
            for block in [1000, LONGEST / 2, 4 * LONGEST] {
                let found = lines(&text, block);
                assert_eq!(found.len(), 2);
                assert_eq!((found[0].0.len(), found[0].1), (length.min(LONGEST), is_too_long));
                assert_eq!(found[1], (b"next".to_vec(), false, text.len() as u64));
            }
        }
    }
}
