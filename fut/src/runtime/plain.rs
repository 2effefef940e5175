//! A plain thread, outside the user threads, that waits for a primitive of this crate.
//!
//! Its block is reused after the thread has ended, and never freed: a late unpark wakes the block's next thread
//! spuriously. The token of `std::thread::park` is not used: it belongs to the program.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// Blocks of threads that have ended.
static FREE: Mutex<Vec<&'static PlainThread>> = Mutex::new(Vec::new());

std::thread_local! {
    static OWN: Own = Own(PlainThread::take());
}

/// The block of a plain thread.
#[derive(Debug, Default)]
pub(crate) struct PlainThread {
    /// Whether it was unparked and has not noticed.
    token: Mutex<bool>,
    unparked: Condvar,
    permit: AtomicBool,
}

/// Gives the block back when its thread ends.
struct Own(&'static PlainThread);

impl PlainThread {
    /// Of the calling thread.
    pub(super) fn here() -> &'static PlainThread {
        // A destructor of a thread-local that waits, after `OWN` was destroyed, uses a block of its own.
        OWN.try_with(|own| own.0).unwrap_or_else(|_| PlainThread::take())
    }

    fn take() -> &'static PlainThread {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let thread = free.unwrap_or_else(|| Box::leak(Box::default()));
        thread.permit.store(false, Ordering::Relaxed);
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
        let limit = deadline.saturating_duration_since(Instant::now());
        let waited = self.unparked.wait_timeout_while(self.token(), limit, |token| !*token);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    pub(super) fn unpark(&self) {
        *self.token() = true;
        self.unparked.notify_one();
    }

    pub(super) fn permit(&self) -> &AtomicBool {
        &self.permit
    }

    fn token(&self) -> MutexGuard<'_, bool> {
        // A critical section cannot panic.
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}
