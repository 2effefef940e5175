//! A plain thread, that is, one that is not a user thread, when it waits for a primitive of this crate.
//!
//! Its block is reused after the thread has ended, and never freed: a late unpark wakes the block's next thread
//! spuriously. The token of `std::thread::park` is not used: it belongs to the program.
//!
//! 1. A thread has one block at a time. It enters queues with the same block on which it parks, also in the destructors
//!    of its thread-locals. `CURRENT` has no destructor, so it is accessible until the thread ends.
//! 2. The destructor of `OWN` gives the block back, since no later destructor may come. If the destructor of another
//!    thread-local waits after that, the thread gets a second block. `LATE` gives the second block back. If `LATE` is
//!    destroyed as well, the second block is leaked.

use std::{
    cell::Cell,
    sync::{self, PoisonError},
    time::Instant,
};

use super::permit::Permit;
use crate::model_check::{Condvar, Mutex, MutexGuard};

/// Blocks of threads that have ended.
static FREE: sync::Mutex<Vec<&'static PlainThread>> = sync::Mutex::new(Vec::new());

std::thread_local! {
    static CURRENT: Cell<Option<&'static PlainThread>> = const { Cell::new(None) };
    static OWN: GivesBack = const { GivesBack };
    static LATE: GivesBack = const { GivesBack };
}

/// The block of a plain thread.
#[derive(Debug, Default)]
pub(crate) struct PlainThread {
    /// Whether the thread was unparked and has not noticed it yet.
    token: Mutex<bool>,
    unparked: Condvar,
    permit: Permit,
}

/// Gives the block of the thread back when it is destroyed.
struct GivesBack;

impl PlainThread {
    /// The block of the calling thread.
    pub(super) fn here() -> &'static PlainThread {
        if cfg!(loom) {
            // A loom object belongs to one execution of the model, but a thread-local would outlive it.
            return Box::leak(Box::default());
        }
        CURRENT.get().unwrap_or_else(|| {
            let thread = PlainThread::take();
            CURRENT.set(Some(thread));
            // The first access registers the destructor. After the destructor has run, the access fails.
            let _is_gone = OWN.try_with(|_| ()).or_else(|_| LATE.try_with(|_| ()));
            thread
        })
    }

    fn take() -> &'static PlainThread {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let thread = free.unwrap_or_else(|| Box::leak(Box::default()));
        thread.permit.reset();
        thread
    }

    /// Blocks the calling thread, whose block this is, until it is unparked.
    pub(super) fn park(&self) {
        let mut token = self.token();
        while !*token {
            token = self.unparked.wait(token).unwrap_or_else(PoisonError::into_inner);
        }
        *token = false;
    }

    /// Like [`park`](PlainThread::park), and also returns at the deadline.
    pub(super) fn park_until(&self, deadline: Instant) {
        let mut token = self.token();
        while !*token {
            let limit = deadline.saturating_duration_since(Instant::now());
            if limit.is_zero() {
                break;
            }
            token = self.unparked.wait_timeout(token, limit).unwrap_or_else(PoisonError::into_inner).0;
        }
        *token = false;
    }

    pub(super) fn unpark(&self) {
        *self.token() = true;
        self.unparked.notify_one();
    }

    pub(super) fn permit(&self) -> &Permit {
        &self.permit
    }

    fn token(&self) -> MutexGuard<'_, bool> {
        // No code in a critical section can panic.
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for GivesBack {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).extend(CURRENT.take());
    }
}
