//! The positions where the lines of a listing go back in time. They divide it into stretches of lines, each in the
//! order of time.

use std::ops::Range;

/// The stretches of a listing, as parts of the file, unless there are too many to be kept.
#[derive(Debug)]
pub(super) struct Stretches {
    found: Vec<Range<u64>>,
    /// The start of the first line and the end of the last, if there are lines.
    all: Option<Range<u64>>,
    most: usize,
    last_tick: u64,
}

impl Stretches {
    /// Keeps at most this many stretches.
    pub(super) fn new(most: usize) -> Stretches {
        Stretches { found: Vec::new(), all: None, most, last_tick: 0 }
    }

    /// Adds a line with this tick.
    pub(super) fn add(&mut self, tick: u64, line: Range<u64>) {
        let all = self.all.get_or_insert(line.clone());
        all.end = line.end;
        let kept = self.found.len();
        match self.found.last_mut() {
            Some(stretch) if self.last_tick <= tick => stretch.end = line.end,
            // One more than the limit shows that there are too many.
            _ if kept <= self.most => self.found.push(line),
            _ => {}
        }
        self.last_tick = tick;
    }

    /// Whether all lines are in the order of time.
    pub(super) fn is_one(&self) -> bool {
        self.found.len() <= 1
    }

    /// The stretches; `None` if there are too many.
    pub(super) fn all(&self) -> Option<&[Range<u64>]> {
        (self.found.len() <= self.most).then_some(&self.found[..])
    }

    /// From the first line to the end of the last.
    pub(super) fn span(&self) -> Range<u64> {
        self.all.clone().unwrap_or(0..0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //  tick   1 5 5 | 3 9 | 2
    //  byte   0 1 2 | 3 4 | 5
    #[test]
    fn a_stretch_ends_before_an_earlier_tick() {
        let add = |most| {
            let mut stretches = Stretches::new(most);
            for (at, tick) in (0..).zip([1, 5, 5, 3, 9, 2]) {
                stretches.add(tick, at..at + 1);
            }
            assert!(!stretches.is_one());
            assert_eq!(stretches.span(), 0..6);
            stretches.all().map(<[Range<u64>]>::to_vec)
        };
        assert_eq!(add(3), Some(vec![0..3, 3..5, 5..6]));
        assert_eq!(add(2), None);
        assert_eq!(Stretches::new(1).all(), Some(&[][..]));
    }
}
