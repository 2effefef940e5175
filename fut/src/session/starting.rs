//! Starting a session: one thread of a process at a time, so that a process has one arena.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

/// The process in which a thread is starting a session; 0 is none. A child that was made behind the C library's back has its
/// parent's number here if another thread of the parent was starting one then: that thread is not in the child.
static STARTING: AtomicU32 = AtomicU32::new(0);

/// In a child that `fork` made: whoever was starting a session is not here.
pub(super) fn forget() {
    STARTING.store(0, Ordering::Relaxed);
}

/// The right to start a session.
#[derive(Debug)]
#[must_use]
pub(super) struct Starting(());

impl Starting {
    /// Waits until no other thread of this process is starting a session. Starting one has deadlines, so this has one, too.
    pub(super) fn take() -> Starting {
        let own = std::process::id();
        loop {
            let found = STARTING.load(Ordering::Relaxed);
            // Acquire: pairs with the Release in `drop`; what the other thread has started is seen.
            let taken = || STARTING.compare_exchange(found, own, Ordering::Acquire, Ordering::Relaxed);
            if found != own && taken().is_ok() {
                return Starting(());
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `take`.
        STARTING.store(0, Ordering::Release);
    }
}
