//! The limits of a recording, and the size of its parts.

use std::time::Duration;

use crate::cli::RecordArgs;

/// A part has one in this many parts of a limit.
const PARTS: u32 = 16;
/// The minimum duration of a part. The pumps need up to 200 ms to change to the next part.
const SHORTEST: Duration = Duration::from_millis(250);

/// The limits. At least one of them is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// The most bytes on the disk.
    pub(super) max_bytes: Option<u64>,
    /// The least time that is kept.
    pub(super) max_time: Option<Duration>,
}

impl Limits {
    /// The limits that the arguments set, if any.
    pub(super) fn of(args: &RecordArgs) -> Option<Limits> {
        let (max_bytes, max_time) = (args.max_size, args.max_time);
        (max_bytes.is_some() || max_time.is_some()).then_some(Limits { max_bytes, max_time })
    }

    /// These limits on a disk with room for this many bytes.
    pub(super) fn within(&self, room: u64) -> Limits {
        Limits { max_bytes: Some(self.max_bytes.map_or(room, |max| max.min(room))), ..*self }
    }

    /// Whether a part of this size and age has to be closed.
    pub(super) fn is_full(&self, bytes: u64, age: Duration) -> bool {
        let is_large = self.max_bytes.is_some_and(|max| bytes >= max / u64::from(PARTS));
        let is_old = self.max_time.is_some_and(|max| age >= (max / PARTS).max(SHORTEST));
        (is_large || is_old) && age >= SHORTEST / 5
    }

    /// How many of the oldest closed parts have to be removed. `closed` has the size of each closed part and how long
    /// ago it ended, the oldest first. `open` is the size of the current part.
    ///
    /// The newest closed part stays until the current one is as large, even if it exceeds the limit alone: if the recording ended
    /// just after a part was closed, nothing would be left otherwise.
    pub(super) fn outdated(&self, closed: &[(u64, Duration)], open: u64) -> usize {
        let sizes = || closed.iter().map(|(bytes, _)| *bytes);
        let usual = self.max_bytes.map_or(0, |max| max / u64::from(PARTS));
        let largest = sizes().max().unwrap_or(0).max(usual);
        // The current part grows while the pumps are waited for.
        let mut left = sizes().sum::<u64>().saturating_add(open.max(largest.saturating_mul(3) / 2));
        // Leaves room for a trace.dat that is written beside the pages it is made of.
        let most = self.max_bytes.map(|max| max.saturating_sub(largest));
        let mut is_over = |(place, (bytes, ended)): &(usize, &(u64, Duration))| {
            let may_be_removed = place + 1 < closed.len() || open >= *bytes;
            let is_too_much = may_be_removed && most.is_some_and(|most| left > most);
            let is_old = self.max_time.is_some_and(|max| *ended >= max);
            left -= bytes;
            is_too_much || is_old
        };
        closed.iter().enumerate().take_while(|part| is_over(part)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn parts_are_a_sixteenth_of_a_limit() {
        let by_size = Limits { max_bytes: Some(64 * MIB), max_time: None };
        let long = Duration::from_secs(3600);
        assert!(by_size.is_full(4 * MIB, long) && !by_size.is_full(4 * MIB - 1, long));
        assert!(!by_size.is_full(64 * MIB, Duration::from_millis(49)));
        let by_time = Limits { max_bytes: None, max_time: Some(Duration::from_secs(16)) };
        assert!(
            by_time.is_full(0, Duration::from_secs(1))
                && !by_time.is_full(1 << 40, Duration::from_millis(999))
        );
        let short = Limits { max_bytes: None, max_time: Some(Duration::from_secs(1)) };
        assert!(short.is_full(0, SHORTEST) && !short.is_full(0, SHORTEST - Duration::from_millis(1)));
    }

    #[test]
    fn what_the_disk_has_no_room_for_is_too_much() {
        let limits = |max_bytes| Limits { max_bytes, max_time: Some(Duration::from_secs(60)) };
        assert_eq!(limits(None).within(32 * MIB), limits(Some(32 * MIB)));
        assert_eq!(limits(Some(64 * MIB)).within(32 * MIB), limits(Some(32 * MIB)));
        assert_eq!(limits(Some(16 * MIB)).within(32 * MIB), limits(Some(16 * MIB)));
        let none = limits(None).within(0);
        assert_eq!(none.outdated(&[(MIB, Duration::ZERO); 2], 0), 1);
        assert_eq!(none.outdated(&[(MIB, Duration::ZERO); 2], MIB), 2);
    }

    //  closed parts …      │ recorded, 1.5 × the largest │ beside its pages, 1 × the largest │
    //                      └ of 64 MiB in parts of 4: 54 MiB
    #[test]
    fn the_oldest_are_removed_until_the_rest_and_what_is_written_fit() {
        let by_size = Limits { max_bytes: Some(64 * MIB), max_time: None };
        let closed = |count: usize| vec![(4 * MIB, Duration::ZERO); count];
        assert_eq!((by_size.outdated(&closed(13), 0), by_size.outdated(&closed(16), 0)), (0, 3));
        assert_eq!((by_size.outdated(&closed(13), 8 * MIB), by_size.outdated(&closed(13), 9 * MIB)), (0, 1));
        // One that is larger than all of the limit stays until the current one is as large.
        let large = [(4 * MIB, Duration::ZERO), (100 * MIB, Duration::ZERO)];
        assert_eq!((by_size.outdated(&large, 0), by_size.outdated(&large, 99 * MIB)), (1, 1));
        assert_eq!(by_size.outdated(&large, 100 * MIB), 2);
        let by_time = Limits { max_bytes: None, max_time: Some(Duration::from_secs(16)) };
        let ages = [17, 16, 15, 14].map(|age| (MIB, Duration::from_secs(age)));
        assert_eq!(by_time.outdated(&ages, u64::MAX), 2);
        let both = Limits { max_bytes: Some(64 * MIB), ..by_time };
        assert_eq!(both.outdated(&ages.map(|(_, age)| (15 * MIB, age)), 0), 3);
        assert_eq!(by_time.outdated(&ages[..1], 0), 1);
        assert_eq!(both.outdated(&[], 0), 0);
    }
}
