//! Detects that an LWP ends, so that its ring can be reused.
//!
//! A thread-local with a destructor would suffice, but its first use allocates. The first probe of an LWP may be in a
//! signal handler that has interrupted the allocator; then it would wait for a lock that its own thread holds. So the
//! session creates a key of POSIX thread-specific data when it starts, and attaching only stores a value. glibc
//! allocates no memory for such a value with the first 32 keys of a process (`pthread_setspecific`, nptl); most
//! programs have few keys.

use std::{
    cell::Cell,
    ffi::c_void,
    ptr,
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
};

use super::last_thread;

const NO_KEY: u32 = u32::MAX;
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);

thread_local! {
    /// The LWP is ending: it must not attach again, because it would never be detached.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// Creates the key. Called when the session starts. `false` if the process has the maximum number of keys (1024).
pub(super) fn prepare() -> bool {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for writing, and the destructor is never unloaded.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(at_end)) } == 0 {
            KEY.store(key, Ordering::Relaxed);
            // The main thread's data is not destroyed when it returns from `main`.
            // SAFETY: as above.
            unsafe { libc::atexit(at_exit) };
        }
    });
    KEY.load(Ordering::Relaxed) != NO_KEY
}

/// Makes the calling LWP detach when it ends. `false` on failure. Allocates nothing, and takes no lock.
pub(super) fn watch() -> bool {
    let key = KEY.load(Ordering::Relaxed);
    if key == NO_KEY || ENDS.get() {
        return false;
    }
    // Any value but null makes the destructor run.
    let value = ptr::from_ref(&KEY).cast::<c_void>();
    // SAFETY: the key was created by `prepare`.
    let is_watched = unsafe { libc::pthread_setspecific(key, value) == 0 };
    if is_watched && last_thread::is_main() {
        last_thread::main_is_watched();
    }
    is_watched
}

/// The destructor of the key. For the main thread, glibc calls it only if that ends by `pthread_exit`.
unsafe extern "C" fn at_end(_value: *mut c_void) {
    end();
    if last_thread::is_main() {
        last_thread::main_ends();
    }
}

extern "C" fn at_exit() {
    end();
}

fn end() {
    ENDS.set(true);
    super::attach::detach();
}
