//! Measures that are computed slice by slice, so that a long trace need not be in memory as a whole.
//!
//! 1. Slices divide the window of a request. The latest slice comes first. The reason is that tables are sorted by the
//!    end of their intervals: a reader that goes backward has every row that overlaps a slice as soon as the rows end
//!    before the slice.
//! 2. The history of a slice has all rows of intervals that overlap or touch it, uncut: those that end at its beginning
//!    or later, and begin at its end or earlier. Of the rows of instants it has at least those inside of it. A wakeup
//!    lasts to the dispatch that it led to. So a row may be in several slices. It **counts** in the slice that
//!    [owns](Slice::owns) it, and its ticks are cut to each slice.
//! 3. Each slice has the names, gaps and extent of the whole trace. Words are only added: a [`Word`](crate::Word) has
//!    the same meaning in all later slices. Places in the lists of a history are valid only in its slice.
//! 4. A whole history is one slice, so a measure has one implementation.

use std::io;

use crate::{Answer, History, Interval, Needs, Request, Spill};

/// A part of the window of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// From its first tick to the one after its last.
    pub interval: Interval,
    /// The window that it is a part of.
    pub window: Interval,
}

impl Slice {
    /// The whole window.
    pub fn whole(window: Interval) -> Slice {
        Slice { interval: window, window }
    }

    /// The slices between these borders, the latest first. Borders have to be sorted. Borders outside of the window are
    /// ignored.
    pub fn between(window: Interval, borders: &[i64]) -> Vec<Slice> {
        let mut slices = Vec::new();
        let mut to = window.to;
        for border in
            borders.iter().rev().copied().filter(|border| window.from < *border && *border < window.to)
        {
            if border < to {
                slices.push(Slice { interval: Interval { from: border, to }, window });
                to = border;
            }
        }
        slices.push(Slice { interval: Interval { from: window.from, to }, window });
        slices
    }

    /// Whether it is the first that a measure gets.
    pub fn is_latest(self) -> bool {
        self.interval.to == self.window.to
    }

    /// Whether it is the last that a measure gets.
    pub fn is_earliest(self) -> bool {
        self.interval.from == self.window.from
    }

    /// The part that is in the trace.
    pub(crate) fn extent(self, history: &History) -> Interval {
        let all = history.extent.unwrap_or(Interval { from: 0, to: 0 });
        Interval::new(self.interval.from.max(all.from), self.interval.to.min(all.to))
    }

    /// Whether an interval that overlaps it continues in the slice before it in time, which is the next one that a
    /// measure gets.
    pub(crate) fn goes_on_before(self, interval: Interval) -> bool {
        interval.from < self.interval.from && !self.is_earliest()
    }

    /// Whether an interval that overlaps it was already in the slice after it in time.
    pub(crate) fn goes_on_after(self, interval: Interval) -> bool {
        interval.to > self.interval.to && !self.is_latest()
    }

    /// Whether an instant is in it, and in the window.
    pub(crate) fn counts(self, tick: i64) -> bool {
        self.interval.contains(tick) && self.window.contains(tick)
    }

    /// Whether it is before the window. A measure that [looks back](Sliced::looks_back) gets such slices.
    pub fn is_before_window(self) -> bool {
        self.interval.from < self.window.from
    }

    /// Whether an interval counts here: it counts in the latest of the slices that it overlaps. An interval of length 0
    /// counts in the slice that contains it.
    pub fn owns(self, interval: Interval) -> bool {
        interval.clipped(self.interval).is_some() && (interval.to <= self.interval.to || self.is_latest())
    }

    /// Whether the beginning of an interval, clipped to the window, is in this slice.
    pub fn begins(self, interval: Interval) -> bool {
        interval.clipped(self.interval).is_some()
            && (interval.from >= self.interval.from || self.is_earliest())
    }
}

/// A measure that is computed slice by slice, the latest slice first.
///
/// A measure may need several passes: all slices are added again, until [`is_done`](Self::is_done) returns true.
pub trait Sliced: Send {
    /// The tables that the next pass needs; `None` for the tables that the measure declares.
    fn needs(&self) -> Option<Needs> {
        None
    }

    /// The times of which the next pass needs the rows of states and interrupts; `None` for all. It may get others, too.
    fn times(&self) -> Option<Vec<Interval>> {
        None
    }

    /// Adds a slice.
    ///
    /// # Errors
    /// When the request is not valid for this measure; the message has the reason.
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String>;

    /// Whether it needs what happened before the window. If so, it also gets the slices there, the latest first, until
    /// this returns false.
    fn looks_back(&self) -> bool {
        false
    }

    /// Moves what is complete out of memory, if the measure can: rows of threads that no other slice has more of.
    ///
    /// # Errors
    /// When it cannot be stored.
    fn spill(&mut self, to: &Spill) -> io::Result<()> {
        let _ = to;
        Ok(())
    }

    /// To be called after all slices were added: whether the measure has everything that it needs. If not, all slices
    /// have to be added again, from the latest to the earliest. Of the history, only the names, words, gaps and extent
    /// may be used.
    ///
    /// # Errors
    /// When the request is not valid for this measure; the message has the reason.
    fn is_done(&mut self, history: &History) -> Result<bool, String> {
        let _ = history;
        Ok(true)
    }

    /// The answer. Of the history, only the names, words, gaps and extent may be used, not the rows.
    ///
    /// # Errors
    /// When the request is not valid for this measure; the message has the reason.
    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String>;
}

/// The answer for a whole history.
pub(crate) fn whole(
    mut measure: Box<dyn Sliced>,
    history: &History,
    request: &Request,
) -> Result<Answer, String> {
    loop {
        measure.add(history, Slice::whole(request.window))?;
        if measure.looks_back() && request.window.from > i64::MIN {
            let interval = Interval { from: i64::MIN, to: request.window.from };
            measure.add(history, Slice { interval, window: request.window })?;
        }
        if measure.is_done(history)? {
            return measure.finish(history);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // window      |---------------------------|      ticks 10 to 50, borders 20 and 30
    // slices      |  third  | second |  first |
    //    |---a---------|   |b|  |c---------------|   d and e of length 0, at 20 and 30
    #[test]
    fn an_interval_counts_in_one_slice_and_begins_in_one() {
        let window = Interval::new(10, 50);
        let slices = Slice::between(window, &[-5, 20, 30, 50, 70]);
        let intervals: Vec<_> = slices.iter().map(|slice| (slice.interval.from, slice.interval.to)).collect();
        assert_eq!(intervals, [(30, 50), (20, 30), (10, 20)]);
        let [a, b, c, d, e] = [(0, 25), (22, 24), (28, 90), (20, 20), (30, 30)];
        let which = |is: fn(Slice, Interval) -> bool, (from, to)| {
            let found: Vec<_> =
                (0..slices.len()).filter(|place| is(slices[*place], Interval::new(from, to))).collect();
            assert_eq!(found.len(), 1);
            found[0]
        };
        assert_eq!([a, b, c, d, e].map(|interval| which(Slice::owns, interval)), [1, 1, 0, 1, 0]);
        assert_eq!([a, b, c, d, e].map(|interval| which(Slice::begins, interval)), [2, 1, 1, 1, 0]);
        assert!(!slices[0].owns(Interval::new(60, 70)) && !slices[2].owns(Interval::new(0, 10)));
        assert_eq!(Slice::between(window, &[]), [Slice::whole(window)]);
    }
}
