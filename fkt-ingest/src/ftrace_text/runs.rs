//! The positions of each CPU's lines: runs of consecutive lines, two numbers of variable length each.
//!
//! ```text
//!   | bytes from the end of the previous run | bytes of the run |      7 bits a byte, the last has the top bit clear
//! ```
//! Alternating lines of CPUs cost three bytes for a run of usually more than a hundred bytes, so the index is 1 to 3 %
//! of the text.

use std::ops::Range;

/// The runs of one CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    bytes: Vec<u8>,
    end: usize,
}

impl Runs {
    /// Adds a run that begins at or after the end of the previous one.
    pub(super) fn push(&mut self, run: Range<usize>) {
        push_number(&mut self.bytes, run.start - self.end);
        push_number(&mut self.bytes, run.end - run.start);
        self.end = run.end;
    }

    /// Returns the run at `at`, and advances `at` to the next one; `end` is the end of the previous run. Both begin
    /// with 0.
    pub(super) fn next(&self, at: &mut usize, end: &mut usize) -> Option<Range<usize>> {
        let start = *end + self.number(at)?;
        *end = start + self.number(at)?;
        Some(start..*end)
    }

    fn number(&self, at: &mut usize) -> Option<usize> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let byte = *self.bytes.get(*at)?;
            *at += 1;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
        }
    }
}

fn push_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_back_as_they_were_added() {
        let added = [0..5, 5..200, 70_000..70_001, 1 << 40..(1 << 40) + 128];
        let mut runs = Runs::default();
        added.iter().for_each(|run| runs.push(run.clone()));
        let (mut at, mut end) = (0, 0);
        let back: Vec<Range<usize>> = std::iter::from_fn(|| runs.next(&mut at, &mut end)).collect();
        assert_eq!(back, added);
        assert_eq!(runs.bytes.len(), 2 + 3 + 4 + 8);
    }
}
