//! A plain thread, outside the user threads, that waits for a primitive of this crate.
//!
//! Its block is reused after the thread has ended, and never freed: a late unpark wakes the block's next thread
//! spuriously. The token of `std::thread::park` is not used: it belongs to the program.
//!
//! 1. A thread has one block at a time: what it enters into a queue and what it parks on are the same, also in the destructors
//!    of its thread-locals. `CURRENT` has no destructor, so it is there until the end.
//! 2. The destructor of `OWN` gives the block back, since no later one may come. Should the destructor of another
//!    thread-local wait after that, the thread gets a second block, which `LATE` gives back, or nobody if that is gone, too.

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
    /// Whether it was unparked and has not noticed.
    token: Mutex<bool>,
    unparked: Condvar,
    permit: Permit,
}

/// Gives the block back when it is destroyed.
struct GivesBack;

impl PlainThread {
    /// Of the calling thread.
    pub(super) fn here() -> &'static PlainThread {
        if cfg!(loom) {
            // What loom models is of one execution, and a thread-local would outlive it.
            return Box::leak(Box::default());
        }
        CURRENT.get().unwrap_or_else(|| {
            let thread = PlainThread::take();
            CURRENT.set(Some(thread));
            // The first access registers the destructor; afterwards it fails.
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

    /// As [`park`](PlainThread::park), and also returns at the deadline.
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
        // A critical section cannot panic.
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for GivesBack {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).extend(CURRENT.take());
    }
}
