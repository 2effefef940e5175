//! The state of the lock, without the value: readers, writer, waiters.
//!
//! The word, and its transitions:
//! ```text
//!   WRITER     a writer holds it.
//!   QUEUED     the queue is not empty. Set and cleared under the lock of the queue.
//!   READER × n n readers hold it.
//! ```
//! 1. While QUEUED is set, the lock is granted only from the queue. So without holding the lock of the queue, a thread
//!    can then only remove readers or the writer from the word.
//! 2. The last holder to release while QUEUED is set hands the lock to the first waiter. If that is a reader, it also
//!    hands it to the readers right after it. No other thread can get the lock in between.
//! 3. A waiter that leaves the queue at its deadline hands the lock to the waiters after it, if nothing else excludes
//!    them.

use std::{sync::atomic::AtomicU64, time::Instant};

use super::super::{
    lock_events,
    rt::{Parker, WaitKind, WaitsFor, holder_here},
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, Waiter, Wakeups},
};
use crate::model_check::{atomic::Ordering, const_unless_loom};

const WRITER: u32 = 1;
const QUEUED: u32 = 1 << 1;
const READER: u32 = 1 << 2;
const READERS: u32 = !(WRITER | QUEUED);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Access {
    /// The bits of the word that exclude this access.
    fn obstacles(self) -> u32 {
        match self {
            Access::Read => WRITER,
            Access::Write => WRITER | READERS,
        }
    }

    /// The word with this access granted.
    fn granted(self, word: u32) -> u32 {
        match self {
            Access::Read => word.checked_add(READER).expect("fewer than a billion readers of one RwLock"),
            Access::Write => word | WRITER,
        }
    }

    fn waits(self) -> WaitKind {
        match self {
            Access::Read => WaitKind::RwLockRead,
            Access::Write => WaitKind::RwLockWrite,
        }
    }
}

pub(super) struct RawRwLock {
    /// The word, and the waiters.
    queue: SpinLock<WaitList<Access>>,
    /// Id of the user thread that holds the lock for writing, for reports. 0 if there is none, or if it is not a user
    /// thread.
    writer: AtomicU64,
}

impl RawRwLock {
    const_unless_loom! {
        pub(super) fn new() -> RawRwLock {
            RawRwLock { queue: SpinLock::new(WaitList::new()), writer: AtomicU64::new(0) }
        }
    }

    /// The address that identifies the lock in the trace.
    #[inline]
    pub(super) fn address(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }

    /// Called by the thread that has acquired the lock.
    #[inline]
    pub(super) fn note_taken(&self, access: Access) {
        lock_events::acquired(self.address(), access.waits());
    }

    /// Called by the thread that has acquired the lock for writing.
    #[inline]
    pub(super) fn note_writer(&self) {
        self.writer.store(holder_here(), Ordering::Relaxed);
    }

    /// Rule 1.
    #[inline]
    pub(super) fn try_lock(&self, access: Access) -> bool {
        self.take_unless(access, access.obstacles() | QUEUED)
    }

    /// Acquires the lock. `false` at the deadline.
    #[inline]
    pub(super) fn lock(&self, access: Access, deadline: Option<Instant>) -> bool {
        self.try_lock(access) || self.lock_contended(access, deadline)
    }

    #[cold]
    fn lock_contended(&self, access: Access, deadline: Option<Instant>) -> bool {
        let waiter = Waiter::new(Parker::here(), access);
        if self.take_or_queue(access, &waiter) {
            return true;
        }
        let address = self.address().addr();
        let on = WaitsFor { kind: access.waits(), address, holder: Some(&self.writer), is_fed: false };
        let leave = || {
            if !self.leave_queue(&waiter) {
                self.release(access);
            }
        };
        waiter.wait(&on, deadline, &leave).is_some() || !self.leave_queue(&waiter)
    }

    #[inline]
    fn take_unless(&self, access: Access, obstacles: u32) -> bool {
        let mut word = self.queue.word.load(Ordering::Relaxed);
        while word & obstacles == 0 {
            let taken = access.granted(word);
            // Acquire: pairs with the Release of earlier unlocks; makes a writer's changes of the value visible.
            let exchanged =
                self.queue.word.compare_exchange_weak(word, taken, Ordering::Acquire, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Takes the lock if nothing excludes it; otherwise enters the waiter into the queue.
    fn take_or_queue(&self, access: Access, waiter: &Waiter<Access>) -> bool {
        let mut queue = self.queue.lock();
        let change = |word: u32| {
            let may_enter = word & (access.obstacles() | QUEUED) == 0;
            Some(if may_enter { access.granted(word) } else { word | QUEUED })
        };
        // Acquire: as in `take_unless`.
        let before = self.queue.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, change);
        if before.is_ok_and(|word| word & (access.obstacles() | QUEUED) == 0) {
            return true;
        }
        // SAFETY: `lock_contended` does not move the waiter until it was answered or has left the queue.
        unsafe { queue.push_back(waiter) };
        false
    }

    #[inline]
    pub(super) fn unlock_read(&self) {
        lock_events::released(self.address(), WaitKind::RwLockRead);
        self.release_read();
    }

    #[inline]
    fn release_read(&self) {
        // Release: pairs with the Acquire of the next writer.
        let before = self.queue.word.fetch_sub(READER, Ordering::Release);
        if before & READERS == READER && before & QUEUED != 0 {
            self.grant_to_waiters();
        }
    }

    #[inline]
    pub(super) fn unlock_write(&self) {
        lock_events::released(self.address(), WaitKind::RwLockWrite);
        self.writer.store(0, Ordering::Relaxed);
        self.release_write();
    }

    #[inline]
    fn release_write(&self) {
        // Release: pairs with the Acquire of the next holder.
        let before = self.queue.word.fetch_and(!WRITER, Ordering::Release);
        if before & QUEUED != 0 {
            self.grant_to_waiters();
        }
    }

    /// Releases the lock for a thread that got it and never runs again.
    #[cold]
    fn release(&self, access: Access) {
        match access {
            Access::Read => self.release_read(),
            Access::Write => self.release_write(),
        }
    }

    pub(super) fn downgrade(&self) {
        lock_events::released(self.address(), WaitKind::RwLockWrite);
        self.writer.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire of other readers. There are no readers while the writer holds the lock, so
        // this sets READER.
        let before = self.queue.word.fetch_add(READER - WRITER, Ordering::Release);
        if before & QUEUED != 0 {
            self.grant_to_waiters();
        }
    }

    /// Rules 2 and 3.
    #[cold]
    fn grant_to_waiters(&self) {
        loop {
            let mut wakeups = Wakeups::new();
            let mut queue = self.queue.lock();
            while let Some(access) = queue.front().map(|access| *access) {
                if wakeups.is_full() || !self.enter_from_queue(access) {
                    break;
                }
                wakeups.push(queue.pop_front(Answer::Granted));
            }
            if queue.is_empty() {
                self.queue.word.fetch_and(!QUEUED, Ordering::Relaxed);
            }
            drop(queue);
            let perhaps_more = wakeups.is_full();
            wakeups.unpark_all();
            if !perhaps_more {
                return;
            }
        }
    }

    /// Takes the lock on behalf of the first waiter. The answer passes this acquisition on to the waiter.
    fn enter_from_queue(&self, access: Access) -> bool {
        self.take_unless(access, access.obstacles())
    }

    /// Removes a waiter at its deadline. `false` if it got the lock meanwhile.
    fn leave_queue(&self, waiter: &Waiter<Access>) -> bool {
        let mut queue = self.queue.lock();
        let left = queue.remove(waiter);
        if left && queue.is_empty() {
            self.queue.word.fetch_and(!QUEUED, Ordering::Relaxed);
        }
        drop(queue);
        if left {
            self.grant_to_waiters();
        }
        left
    }
}
