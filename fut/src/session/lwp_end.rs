//! Detects that an LWP ends, so that its ring can be reused.
//!
//! A thread-local with a destructor would do, but its first use allocates, and the first probe of an LWP may stand in a
//! signal handler that has interrupted the allocator: it would wait for its own lock. So the session makes a key of
//! POSIX's thread-specific data when it starts, and attaching only stores into it. glibc does that without memory for
//! the first 32 keys of a process (`pthread_setspecific`, nptl); most programs have few.

use std::{
    cell::Cell,
    ffi::c_void,
    ptr,
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
};

const NO_KEY: u32 = u32::MAX;
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);

thread_local! {
    /// The LWP is about to end: what attaches now would never be detached.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// Makes the key; when the session starts. `false` if the process has as many as it may have (1024).
pub(super) fn prepare() -> bool {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut key = 0;
        // SAFETY: `key` is a valid place, and the destructor a function that is never unloaded.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(at_end)) } == 0 {
            KEY.store(key, Ordering::Relaxed);
            // The main thread's data is not destroyed when it returns from `main`.
            // SAFETY: as above.
            unsafe { libc::atexit(at_exit) };
        }
    });
    KEY.load(Ordering::Relaxed) != NO_KEY
}

/// Has the calling LWP detached when it ends; `false` if it cannot be. Allocates nothing, takes no lock.
pub(super) fn watch() -> bool {
    let key = KEY.load(Ordering::Relaxed);
    if key == NO_KEY || ENDS.get() {
        return false;
    }
    // Anything but null has the destructor called.
    let value = ptr::from_ref(&KEY).cast::<c_void>();
    // SAFETY: the key was made by `prepare`.
    unsafe { libc::pthread_setspecific(key, value) == 0 }
}

unsafe extern "C" fn at_end(_value: *mut c_void) {
    end();
}

extern "C" fn at_exit() {
    end();
}

fn end() {
    ENDS.set(true);
    super::attach::detach();
}
