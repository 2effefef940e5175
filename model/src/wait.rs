//! What a blocked user thread waits for.

use crate::state::named;

named! {
    /// The kinds of objects that block a user thread. A user trace has their numbers, from 1 on; 0 is an unknown kind.
    #[derive(PartialOrd, Ord)]
    #[repr(u8)]
    #[non_exhaustive]
    WaitKind {
        /// A mutex that another holds.
        Mutex(1) = "mutex",
        /// A readers-writer lock that a writer holds.
        RwLockRead(2) = "rwlock-read",
        /// A readers-writer lock that others hold.
        RwLockWrite(3) = "rwlock-write",
        /// A condition variable.
        Condvar(4) = "condvar",
        /// Permits of a semaphore.
        Semaphore(5) = "semaphore",
        /// The others at a barrier.
        Barrier(6) = "barrier",
        /// A message in a channel.
        Channel(7) = "channel",
        /// Room in a channel.
        ChannelSpace(8) = "channel-space",
        /// The value of a once cell, which another computes.
        OnceCell(9) = "once-cell",
        /// The end of another user thread.
        Join(10) = "join",
        /// A point in time.
        Sleep(11) = "sleep",
        /// A file descriptor that is ready.
        Io(12) = "io",
        /// The end of all user threads of a scope.
        Scope(13) = "scope",
        /// An unpark by another thread.
        Park(14) = "park",
        /// A future that is not ready.
        Future(15) = "future",
        /// A notification.
        Notify(16) = "notify",
        /// The first of several operations on channels that is possible.
        Select(17) = "select",
    }
}

impl WaitKind {
    /// Its number in a user trace.
    #[inline]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind with this number in a user trace; `None` for 0 and for numbers without a meaning.
    #[inline]
    pub fn from_number(number: u64) -> Option<WaitKind> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        WaitKind::ALL.get(place).copied()
    }

    /// The kind of this name, as [`name`](Self::name) writes it.
    pub fn from_name(name: &str) -> Option<WaitKind> {
        WaitKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// What a blocked user thread waits for, as far as a source has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Its kind.
    pub kind: Option<WaitKind>,
    /// The address of the object; for [`WaitKind::Join`] the number of the user thread, for [`WaitKind::Io`] the file
    /// descriptor, for [`WaitKind::Scope`] the number of the team, for [`WaitKind::Select`] the address of the channel of
    /// the first operation, for [`WaitKind::Sleep`] the nanoseconds that were asked for. `None` for [`WaitKind::Park`].
    pub on: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_number_and_its_word_and_other_numbers_none() {
        for (kind, number) in WaitKind::ALL.iter().zip(1..) {
            assert_eq!((kind.number(), WaitKind::from_number(number)), (number as u8, Some(*kind)));
            assert_eq!(WaitKind::from_name(kind.name()), Some(*kind));
        }
        assert_eq!(WaitKind::Select.number(), 17);
        for number in [0, 18, 255, 256, u64::MAX] {
            assert_eq!(WaitKind::from_number(number), None);
        }
    }
}
