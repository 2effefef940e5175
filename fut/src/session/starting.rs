//! Serialises the start of sessions, so that a process has only one arena.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

/// Number of the process in which a thread is starting a session; 0 for none. In a child made by a raw `clone`, this is
/// the number of the parent if another thread of the parent was starting one. That thread does not exist in the child.
static STARTING: AtomicU32 = AtomicU32::new(0);

/// Called in a forked child: a thread that was starting a session does not exist here.
pub(super) fn forget() {
    STARTING.store(0, Ordering::Relaxed);
}

/// A guard of [`STARTING`].
#[derive(Debug)]
#[must_use]
pub(super) struct Starting(());

impl Starting {
    /// Waits until no other thread of this process is starting a session. This ends, because all steps of a start have
    /// time limits.
    pub(super) fn take() -> Starting {
        let own = std::process::id();
        loop {
            let found = STARTING.load(Ordering::Relaxed);
            // Acquire: pairs with the Release in `drop`; makes the other thread's session visible.
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
