//! Whether user threads of a runtime can still run: it has LWPs that carry them. And who waits for one of them although
//! it may outlive the runtime.
//!
//! 1. The runtime and each of its LWPs, but for those of blocking calls, hold a [`Carries`]. An LWP drops it when it
//!    carries nobody any more. With the last one, which is after the runtime was dropped, no user thread of it ever runs
//!    again, but for blocking calls that are under way, which nobody outside has a handle of.
//! 2. A user thread that waits for another one of the same runtime, on such an LWP, is lost together with it, and needs
//!    not be told. Everybody else registers here first, and waits then for as long as the thread has not ended and the
//!    runtime has not either.
//! 3. The last `Carries` marks the end, and then wakes those who are registered. Both sides take the lock: whoever
//!    registers later sees the mark.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use super::{pool::Shared, thread::ThreadRef};

/// See above.
#[derive(Debug, Default)]
pub(super) struct Carried {
    by: AtomicUsize,
    is_over: AtomicBool,
    waiting: Mutex<Vec<(usize, Waiter)>>,
}

/// Who waits for a user thread of a runtime that may be dropped meanwhile. It may be woken for nothing.
#[derive(Clone, Debug)]
pub(super) enum Waiter {
    /// A plain thread, which is parked.
    Plain(thread::Thread),
    /// A user thread of another runtime, or in a blocking call.
    User(ThreadRef),
}

/// The promise of an LWP, or of the runtime itself, that user threads may still run.
pub(super) struct Carries(&'static Shared);

/// Registered until it is dropped.
pub(super) struct Registered<'c> {
    carried: &'c Carried,
    key: usize,
}

impl Carries {
    pub(super) fn new(shared: &'static Shared) -> Carries {
        // Relaxed: whoever makes one has another one.
        shared.carried.by.fetch_add(1, Ordering::Relaxed);
        Carries(shared)
    }
}

impl Drop for Carries {
    fn drop(&mut self) {
        let carried = &self.0.carried;
        // Release: pairs with the Acquire of the last one; what its threads did has been done.
        if carried.by.fetch_sub(1, Ordering::AcqRel) == 1 {
            carried.end();
        }
    }
}

impl Carried {
    /// Whether none of its user threads ever runs again.
    pub(super) fn is_over(&self) -> bool {
        // Acquire: pairs with the Release in `end`; the threads that have ended are seen to have.
        self.is_over.load(Ordering::Acquire)
    }

    /// Has this one woken at the end, unless that is over already (rule 3). `key` is an address that is its own.
    pub(super) fn register(&self, key: usize, waiter: Waiter) -> Registered<'_> {
        self.waiting().push((key, waiter));
        Registered { carried: self, key }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(usize, Waiter)>> {
        // Each step leaves the list whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        // Release: pairs with the Acquire in `is_over`.
        self.is_over.store(true, Ordering::Release);
        let waiting = self.waiting().clone();
        waiting.into_iter().for_each(|(_, waiter)| waiter.wake());
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.carried.waiting().retain(|(key, _)| *key != self.key);
    }
}

impl Waiter {
    pub(super) fn wake(self) {
        match self {
            Waiter::Plain(thread) => thread.unpark(),
            Waiter::User(thread) => thread.unpark(),
        }
    }
}
