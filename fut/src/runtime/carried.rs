//! Whether user threads of a runtime can still run: whether it has LWPs that carry them. And the registry of waiters
//! from outside, which may outlive the runtime.
//!
//! 1. The runtime and each of its LWPs, except those for blocking calls, hold a [`Carries`]. An LWP drops it when it
//!    will carry no more threads. After the last one is dropped, which is after the runtime was dropped, no user thread
//!    of it ever runs again, except in blocking calls under way, of which no handle exists outside.
//! 2. A user thread that waits, on such an LWP, for another one of the same runtime is lost together with it, and needs
//!    no wakeup. All other waiters register here first, and then wait until the thread or the runtime has ended.
//! 3. Dropping the last `Carries` marks the end, and then wakes the registered waiters. Both sides take the lock: a
//!    waiter that registers later sees the mark.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use super::{pool::Shared, thread::ThreadRef};

/// State of rules 1 to 3.
#[derive(Debug, Default)]
pub(super) struct Carried {
    by: AtomicUsize,
    is_over: AtomicBool,
    waiting: Mutex<Vec<(usize, Waiter)>>,
}

/// A waiter for a user thread of a runtime that may be dropped meanwhile. Spurious wakeups are possible.
#[derive(Clone, Debug)]
pub(super) enum Waiter {
    /// A plain (non-user) thread, woken by `std::thread::Thread::unpark`.
    Plain(thread::Thread),
    /// A user thread of another runtime, or in a blocking call.
    User(ThreadRef),
}

/// A token of an LWP, or of the runtime itself: user threads may still run.
pub(super) struct Carries(&'static Shared);

/// Keeps a waiter registered until it is dropped.
pub(super) struct Registered<'c> {
    carried: &'c Carried,
    key: usize,
}

impl Carries {
    pub(super) fn new(shared: &'static Shared) -> Carries {
        // Relaxed: the caller holds another one, so the count is not 0.
        shared.carried.by.fetch_add(1, Ordering::Relaxed);
        Carries(shared)
    }
}

impl Drop for Carries {
    fn drop(&mut self) {
        let carried = &self.0.carried;
        // Release: pairs with the Acquire of the last one; the effects of this LWP's threads are visible to it.
        if carried.by.fetch_sub(1, Ordering::AcqRel) == 1 {
            carried.end();
        }
    }
}

impl Carried {
    /// Whether no user thread of the runtime ever runs again.
    pub(super) fn is_over(&self) -> bool {
        // Acquire: pairs with the Release in `end`; the ends of threads are visible.
        self.is_over.load(Ordering::Acquire)
    }

    /// Registers a waiter to be woken at the end, unless the end was already marked (rule 3). `key` is an address
    /// unique to it.
    pub(super) fn register(&self, key: usize, waiter: Waiter) -> Registered<'_> {
        self.waiting().push((key, waiter));
        Registered { carried: self, key }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(usize, Waiter)>> {
        // Each critical section leaves the list consistent, so poisoning is ignored.
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
