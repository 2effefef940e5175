//! Whether user threads of a runtime can still run, that is, whether the runtime still has LWPs that carry them. Also
//! the registry of waiters from outside the runtime, which may outlive it.
//!
//! 1. The runtime and each of its LWPs, except those for blocking calls, hold a [`Carries`]. An LWP drops its `Carries`
//!    when it will carry no more threads. The last one is dropped after the runtime was dropped. From then on, no user
//!    thread of the runtime runs any more, except in blocking calls that are under way; no handle of these exists
//!    outside. The other threads then leave the queues in which they wait (`left_behind.rs`).
//! 2. A user thread that waits, on such an LWP, for another one of the same runtime never runs again either, and needs
//!    no wakeup. All other waiters register here first, and then wait until the thread or the runtime has ended.
//! 3. Dropping the last `Carries` marks the end, and then wakes the registered waiters. Both sides take the lock: a
//!    waiter that registers later sees the mark.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::{parker::Parker, pool::Shared};

/// State of rules 1 to 3.
#[derive(Debug, Default)]
pub(super) struct Carried {
    by: AtomicUsize,
    is_over: AtomicBool,
    /// The runtime was dropped while LWPs were running (rule 3 of `left_behind.rs`).
    lwps_were_left: AtomicBool,
    /// The registered waiters: plain threads, and user threads of another runtime or in a blocking call. They may be
    /// woken spuriously.
    waiting: Mutex<HashMap<usize, Parker>>,
}

/// Held by an LWP, or by the runtime itself, as long as it may still run user threads.
pub(super) struct Carries(&'static Shared);

/// Keeps a waiter registered until it is dropped.
pub(super) struct Registered<'c> {
    carried: &'c Carried,
    key: usize,
}

impl Carries {
    pub(super) fn new(shared: &'static Shared) -> Carries {
        // Relaxed: the caller holds another `Carries`, so the count is not 0.
        shared.carried.by.fetch_add(1, Ordering::Relaxed);
        Carries(shared)
    }
}

impl Drop for Carries {
    fn drop(&mut self) {
        let shared = self.0;
        shared.lwp_has_stopped();
        // Release: pairs with the Acquire of the thread that drops the last one, which then sees the effects of this
        // LWP's threads.
        if shared.carried.by.fetch_sub(1, Ordering::AcqRel) == 1 {
            shared.carried.end();
            shared.leave_all_behind();
        }
    }
}

impl Carried {
    /// Whether no user thread of the runtime ever runs again.
    pub(super) fn is_over(&self) -> bool {
        // Acquire: pairs with the Release in `end`; makes the ends of the threads visible.
        self.is_over.load(Ordering::Acquire)
    }

    /// Registers a waiter, to be woken at the end. If the end was already marked, nothing wakes it: it sees the mark
    /// (rule 3). `key` is an address unique to the waiter.
    pub(super) fn register(&self, key: usize, waiter: Parker) -> Registered<'_> {
        self.waiting().insert(key, waiter);
        Registered { carried: self, key }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<usize, Parker>> {
        // Each critical section leaves the map consistent, so poisoning is ignored.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the runtime was dropped while LWPs were running.
    pub(super) fn lwps_were_left(&self) -> &AtomicBool {
        &self.lwps_were_left
    }

    fn end(&self) {
        // Release: pairs with the Acquire in `is_over`.
        self.is_over.store(true, Ordering::Release);
        self.wake_waiters();
    }

    pub(super) fn wake_waiters(&self) {
        let waiting = self.waiting().clone();
        waiting.into_values().for_each(Parker::unpark);
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.carried.waiting().remove(&self.key);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use super::*;

    #[test]
    fn waiters_come_and_go_in_a_time_that_does_not_depend_on_their_number() {
        const WAITERS: usize = 300_000;
        let (send, done) = mpsc::channel();
        thread::spawn(move || {
            let carried = Carried::default();
            let all: Vec<_> = (0..WAITERS).map(|key| carried.register(key, Parker::here())).collect();
            // Looking at all waiters each time would take 4 * 10^10 steps.
            drop(all);
            send.send(carried.waiting().len()).unwrap();
        });
        assert_eq!(done.recv_timeout(Duration::from_secs(10)), Ok(0));
    }
}
