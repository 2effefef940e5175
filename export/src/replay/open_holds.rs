//! Locks that are held, by the events of acquisition and release.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{EventType, Params, WaitKind};

use crate::timeline::{Hold, ProcessId, Track};

/// The fields of an event that are the lock's address and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LockFields {
    lock: usize,
    kind: usize,
}

impl LockFields {
    pub(super) fn of(ty: &EventType) -> Option<LockFields> {
        Some(LockFields { lock: ty.field("lock")?, kind: ty.field("kind")? })
    }

    /// The lock's address and kind; `None` if it is not the kind of a lock.
    pub(super) fn read(self, params: &Params) -> Option<(u64, WaitKind)> {
        let number = |index| params.get(index).and_then(|param| param.number).map(|number| number as u64);
        let kind = WaitKind::from_number(number(self.kind)?)?;
        let is_lock = matches!(kind, WaitKind::Mutex | WaitKind::RwLockRead | WaitKind::RwLockWrite);
        is_lock.then_some((number(self.lock)?, kind))
    }
}

/// The holds that are open, and the numbers of all locks so far.
#[derive(Debug, Default)]
pub(super) struct OpenHolds {
    numbers: HashMap<(ProcessId, u64), u32, RandomState>,
    /// By lock and kind.
    open: HashMap<(u32, WaitKind), Vec<(Track, Hold)>, RandomState>,
    begun: u64,
}

impl OpenHolds {
    /// Begins a hold. The second value is a hold that must have ended before, if there is one.
    pub(super) fn take(
        &mut self,
        process: ProcessId,
        by: Track,
        (address, kind): (u64, WaitKind),
    ) -> (Hold, Option<(Track, Hold)>) {
        let new = self.numbers.len() as u32;
        let lock = *self.numbers.entry((process, address)).or_insert(new);
        self.begun += 1;
        let hold = Hold { number: self.begun, lock, address, kind };
        let open = self.open.entry((lock, kind)).or_default();
        let is_shared = kind == WaitKind::RwLockRead;
        let before = if is_shared { None } else { open.pop() };
        open.push((by, hold));
        (hold, before)
    }

    /// Ends a hold: that of the releasing actor; if it has none, the newest one of another actor, since a guard may move to
    /// another thread.
    pub(super) fn give_back(
        &mut self,
        process: ProcessId,
        by: Track,
        (address, kind): (u64, WaitKind),
    ) -> Option<(Track, Hold)> {
        let lock = *self.numbers.get(&(process, address))?;
        let open = self.open.get_mut(&(lock, kind))?;
        let place = open.iter().rposition(|(holder, _)| *holder == by).or(open.len().checked_sub(1))?;
        Some(open.remove(place))
    }

    /// Ends all open holds, in the order of their begins.
    pub(super) fn give_all_back(&mut self) -> Vec<(Track, Hold)> {
        let mut all: Vec<_> = std::mem::take(&mut self.open).into_values().flatten().collect();
        all.sort_unstable_by_key(|(_, hold)| hold.number);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::ThreadId;

    const MUTEX: (u64, WaitKind) = (0x1000, WaitKind::Mutex);
    const READ: (u64, WaitKind) = (0x2000, WaitKind::RwLockRead);

    // thread 1   |-- mutex --|             |- read -|
    // thread 2               |-- mutex ------|  |- read ----
    #[test]
    fn a_hold_ends_with_its_own_thread_and_holds_need_not_nest() {
        let (process, [one, two]) = (ProcessId(0), [1, 2].map(|id| Track::Thread(ThreadId(id))));
        let mut locks = OpenHolds::default();
        let (first, before) = locks.take(process, one, MUTEX);
        assert_eq!((first.number, first.lock, before), (1, 0, None));
        assert_eq!(locks.give_back(process, one, MUTEX), Some((one, first)));
        assert_eq!(locks.give_back(process, one, MUTEX), None, "it was taken before the trace began");

        let (second, _) = locks.take(process, two, MUTEX);
        let (reads, others) = (locks.take(process, one, READ).0, locks.take(process, two, READ).0);
        assert_eq!((second.lock, reads.lock, others.lock), (0, 1, 1));
        assert_eq!(locks.give_back(process, two, MUTEX), Some((two, second)));
        assert_eq!(locks.give_back(process, one, READ), Some((one, reads)));
        assert_eq!(locks.give_all_back(), [(two, others)]);

        assert_eq!(locks.take(ProcessId(1), one, MUTEX).0.lock, 2, "another process, another lock");
    }

    // thread 1   |-- mutex -- ? (its end is missing)
    // thread 2                |-- mutex --|
    #[test]
    fn a_mutex_has_one_holder_and_its_guard_may_be_dropped_by_another_thread() {
        let (process, [one, two]) = (ProcessId(0), [1, 2].map(|id| Track::Thread(ThreadId(id))));
        let mut locks = OpenHolds::default();
        let (first, _) = locks.take(process, one, MUTEX);
        let (second, before) = locks.take(process, two, MUTEX);
        assert_eq!(before, Some((one, first)));
        assert_eq!(locks.give_back(process, one, MUTEX), Some((two, second)));
        assert_eq!(locks.give_all_back(), []);
    }
}
