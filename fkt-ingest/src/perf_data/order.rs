//! How far the records of one CPU are out of order.
//!
//! The kernel timestamps a record before it reserves its space, so an interrupt in between puts a later record first.
//! And if every LWP has a ring of its own (`--per-thread`), a CPU's records come from many rings, one after the other
//! in each round. perf sorts with one round of delay: no record after the end of a round (FINISHED_ROUND) is older than
//! the newest record before the previous round. Here the first pass measures how late the latest record of each CPU is,
//! and the stream holds records back for as long as that. This gives the same order, with ties in file order, and does
//! not need rounds, which directories do not have.
//!
//! One record with a wrong time is damage, and must not hold back all others. So the time that counts is the newest
//! that two records in a row have reached, and a single late record counts only if it is late by less than [`JITTER`].

/// A record that is late by less is not damage: 4 s. Observed: a record late by more than 10 ms, on a virtual machine
/// with 20 runnable LWPs for its 2 CPUs. Presumably the host descheduled the CPU between the timestamp and the
/// reservation.
const JITTER: u64 = 4_000_000_000;

/// Measures the lateness of one CPU's records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lateness {
    newest: u64,
    before: u64,
    was_late: bool,
    /// Whether any record was older than the previous one.
    pub(super) unsorted: bool,
    /// The largest lateness.
    pub(super) late: u64,
}

impl Lateness {
    #[inline]
    pub(super) fn see(&mut self, time: u64) {
        self.unsorted |= time < self.before;
        let late = self.newest.saturating_sub(time);
        if late > 0 && (late < JITTER || self.was_late) {
            self.late = self.late.max(late);
        }
        self.was_late = late > 0;
        self.newest = self.newest.max(time.min(self.before));
        self.before = time;
    }

    /// The newest time that two records in a row have reached.
    #[inline]
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> (bool, u64, u64) {
        let mut lateness = Lateness::default();
        times.iter().for_each(|time| lateness.see(*time));
        (lateness.unsorted, lateness.late, lateness.newest())
    }

    #[test]
    fn records_that_are_late_count_and_a_wild_one_does_not() {
        assert_eq!(of(&[1, 2, 3]), (false, 0, 2));
        // Of 5 5 3, the 3 is late by 2; of 4 3, the 3 is late against one record, which may be the wrong one.
        assert_eq!(of(&[1, 5, 5, 3, 6]), (true, 2, 5));
        assert_eq!(of(&[1, 2, 4, 3, 5]), (true, 0, 3));
        // 50 ms late, a single record: the CPU was descheduled.
        assert_eq!(of(&[1, 50_000_000, 50_000_001, 2, 50_000_002]), (true, 49_999_998, 50_000_000));
        assert_eq!(of(&[1, 2, 1 << 60, 3, 4]), (true, 0, 3));
        assert_eq!(of(&[1 << 40, 1 << 40, 3, (1 << 40) + 1, 1 << 41]), (true, 0, (1 << 40) + 1));
    }
}
