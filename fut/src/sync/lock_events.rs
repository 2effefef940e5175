//! Who holds a lock, and since when: what is recorded of [`Mutex`](super::Mutex) and [`RwLock`](super::RwLock).
//!
//! 1. That a lock is taken is recorded after it was, and that it is given back before it is. So the times of two holders
//!    that exclude each other never overlap.
//! 2. A lock is named by the address that a blocked thread waits for, and what is had of it by the kind of waiting for it.
//! 3. A thread that waits for a condition variable gives the mutex back, and takes it again.
//!
//! Both are switched by [`keys::LOCKS`](crate::keys::LOCKS), which is off unless somebody asks: a lock that nobody
//! contends costs less than the two records: `lock` and `unlock` of a mutex take 15 ns without them and 42 with (reading a
//! read-write lock 14 and 42; AMD EPYC, TSC 2.6 GHz, 2 CPUs that others used, too: `cargo bench -p fut --bench sync`).

use super::rt::WaitKind;

/// This is held from now on.
#[inline(always)]
pub(super) fn acquired(lock: *const (), kind: WaitKind) {
    #[cfg(not(loom))]
    recorded::acquired(lock, kind.number());
    // Models record nothing: they have no clock, and loom's atomics are not for a ring.
    #[cfg(loom)]
    let _ = (lock, kind);
}

/// This is about to be given back.
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
        /// This thread is about to give the lock back.
        pub(super) fn LOCK_RELEASE(lock: *const (), kind: u8) in keys::LOCKS => "gives {kind} {lock} back";
    }

    crate::__event!(
        // This thread has taken the lock.
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
        // Otherwise the clock may be read while the instruction that took the lock still waits for its cache line, which
        // who held it before has not given up yet.
        clock::wait_for_what_was_before();
        probe::record(Acquire::event(), (lock, kind));
    }
}
