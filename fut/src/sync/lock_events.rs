//! Events for acquiring and releasing a [`Mutex`](super::Mutex) or [`RwLock`](super::RwLock).
//!
//! 1. An acquisition is recorded after it happens, a release before it happens. So the recorded hold times of two
//!    threads that exclude each other never overlap.
//! 2. A lock is identified by the address that a blocked thread waits for. Its mode is identified by the kind of wait.
//! 3. A thread that waits for a condition variable releases the mutex, and acquires it again.
//!
//! Both events are switched by [`keys::LOCKS`](crate::keys::LOCKS). It is off by default, because an uncontended lock
//! costs less than the two records: `lock` and `unlock` of a mutex take 15 ns without them and 42 ns with them (reading
//! a read-write lock 14 and 42; AMD EPYC, TSC 2.6 GHz, 2 CPUs with other load: `cargo bench -p sigmund-fut --bench
//! sync`).

use super::rt::WaitKind;

/// The lock was acquired.
#[inline(always)]
pub(super) fn acquired(lock: *const (), kind: WaitKind) {
    #[cfg(not(loom))]
    recorded::acquired(lock, kind.number());
    // Models record nothing: they have no clock and no ring.
    #[cfg(loom)]
    let _ = (lock, kind);
}

/// The lock is about to be released.
#[inline(always)]
pub(super) fn released(lock: *const (), kind: WaitKind) {
    #[cfg(not(loom))]
    recorded::LOCK_RELEASE(lock, kind.number());
    #[cfg(loom)]
    let _ = (lock, kind);
}

#[cfg(not(loom))]
mod recorded {
    use crate::{
        clock, keys,
        probe::{self, Declared, is_on},
    };

    crate::events! {
        /// This thread is about to release the lock.
        pub(super) fn LOCK_RELEASE(lock: *const (), kind: u8) in keys::LOCKS => "gives {kind} {lock} back";
    }

    crate::__event!(
        // This thread has acquired the lock.
        Acquire, "LOCK_ACQUIRE", (lock: *const (), kind: u8) in keys::LOCKS => "took {kind} {lock}",
        || acquired(std::ptr::null(), 1)
    );

    #[inline(always)]
    pub(super) fn acquired(lock: *const (), kind: u8) {
        if is_on::<Acquire>() {
            record_acquired(lock, kind);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_acquired(lock: *const (), kind: u8) {
        // Otherwise the clock might be read while the instruction that takes the lock still waits for its cache line,
        // which the CPU of the previous holder still has.
        clock::wait_for_earlier_instructions();
        probe::record(Acquire::event(), (lock, kind));
    }
}
