//! Sorts records by their ticks.
//!
//! libfxt first reserves the space of a record and then reads the clock. A thread that is preempted in between leaves a
//! record with a later tick than those after it; observed on two busy CPUs with six threads: up to 21,447 records and
//! 76 ms. `fut_stop_flush` precedes all records of the buffer that follows, and has the tick of its end. So the next
//! [`LENGTH`] records are held back, and the earliest is returned; a record with a later tick is held back until its
//! turn.
//!
//! A record that comes more than [`LENGTH`] records too late gets the previous tick, and is counted. A record that is
//! still held back at the end, far after its position in the file, and is later than all others by more than their
//! whole time span, has a wrong tick: it is left out, and counted.

use std::collections::VecDeque;

use super::records::FxtRecord;

/// The number of records that two CPUs write in a time slice of 4 ms at a million per second.
const LENGTH: u64 = 8192;

/// Records that are held back until earlier ones have been read.
#[derive(Debug, Default)]
pub(super) struct ReorderWindow {
    /// Sorted by tick; records with the same tick are in file order.
    waiting: VecDeque<(u64, FxtRecord)>,
    pushed: u64,
    first: Option<u64>,
    last: u64,
    /// Number of records that came too late for their tick.
    pub(super) late: u64,
    /// Number of records that were left out because of their tick.
    pub(super) misplaced: u64,
}

impl ReorderWindow {
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() as u64 >= LENGTH
    }

    /// Adds the next record of the file. For records in order, this is one comparison.
    #[inline]
    pub(super) fn push(&mut self, record: FxtRecord) {
        self.pushed += 1;
        if self.waiting.back().is_none_or(|(_, back)| back.tick <= record.tick) {
            self.waiting.push_back((self.pushed, record));
            return;
        }
        let at = self.waiting.partition_point(|(_, other)| other.tick <= record.tick);
        self.waiting.insert(at, (self.pushed, record));
    }

    /// The earliest record; `at_end` if no more will be pushed.
    #[inline]
    pub(super) fn pop(&mut self, at_end: bool) -> Option<FxtRecord> {
        loop {
            let (number, mut record) = self.waiting.pop_front()?;
            if at_end && self.pushed - number > 2 * LENGTH && self.is_beyond(record.tick) {
                self.misplaced += 1;
                continue;
            }
            if record.tick < self.last {
                self.late += 1;
                record.tick = self.last;
            }
            self.first.get_or_insert(record.tick);
            self.last = record.tick;
            return Some(record);
        }
    }

    /// Whether a tick is later than all returned ones by more than their whole time span.
    fn is_beyond(&self, tick: u64) -> bool {
        let span = self.last - self.first.unwrap_or(self.last);
        tick.saturating_sub(self.last) > span
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::Args;
    use super::*;

    fn at(tick: u64) -> FxtRecord {
        let args = Args { at: 0, count: 0, size: 8 };
        FxtRecord { tick, id: 0, cpu: None, code: 1, kernel: false, args }
    }

    fn through(ticks: impl IntoIterator<Item = u64>) -> (Vec<u64>, ReorderWindow) {
        let mut window = ReorderWindow::default();
        let mut out = Vec::new();
        for tick in ticks {
            if window.is_full() {
                out.extend(window.pop(false).map(|record| record.tick));
            }
            window.push(at(tick));
        }
        while let Some(record) = window.pop(true) {
            out.push(record.tick);
        }
        (out, window)
    }

    #[test]
    fn a_record_that_was_stamped_late_is_put_where_its_tick_is() {
        let (out, window) = through([1, 2, 9, 3, 4, 4, 5, 20, 12]);
        assert_eq!(out, [1, 2, 3, 4, 4, 5, 9, 12, 20]);
        assert_eq!((window.late, window.misplaced), (0, 0));
    }

    // The end of a flush precedes the three buffers that are filled meanwhile.
    #[test]
    fn a_record_waits_for_its_tick_as_long_as_it_takes() {
        let ticks = (1..8 * LENGTH).map(|tick| if tick == 100 { 4 * LENGTH } else { tick });
        let (out, window) = through(ticks);
        assert_eq!((window.late, window.misplaced, out.len() as u64), (0, 0, 8 * LENGTH - 1));
        assert!(out.is_sorted());
    }

    #[test]
    fn one_wrong_tick_does_not_move_the_others() {
        let ticks = (1..10 * LENGTH).map(|tick| match tick {
            100 => 1 << 60,
            50_000 => 3,
            _ => tick,
        });
        let (out, window) = through(ticks);
        assert_eq!((window.late, window.misplaced), (1, 1));
        assert_eq!(out.len() as u64, 10 * LENGTH - 2);
        assert!(out.is_sorted() && out.last() == Some(&(10 * LENGTH - 1)));
    }
}
