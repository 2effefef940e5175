//! Detects that an LWP ends, so that its ring can be reused.
//!
//! A thread-local with a destructor would suffice, but its first use allocates. The first probe of an LWP may be in a
//! signal handler that has interrupted the allocator; then it would wait for a lock that its own thread holds. So the
//! session creates a key of POSIX thread-specific data when it starts, and attaching only stores a value. glibc
//! allocates no memory for such a value with the first 32 keys of a process (`pthread_setspecific`, nptl); most
//! programs have few keys.
//!
//! The destructors of the program's own keys may record, too. glibc calls the destructors of all keys that have a
//! value, in the order of the keys, and repeats that at most [`MOST_ROUNDS`] times as long as destructors set values
//! again. The key of this file is usually the first one. So its destructor sets the value again, and the LWP is
//! detached at the third call. A thread that attaches in a destructor of the first round has three more rounds. If it
//! attaches in a later one, its LWP may not be detached; then its ring stays in use until the recording ends.

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

/// `PTHREAD_DESTRUCTOR_ITERATIONS` (bits/local_lim.h).
const MOST_ROUNDS: usize = 4;
/// Number of calls of the destructor. One less than the rounds, so that a thread that attaches in the first round is
/// detached, too.
const CALLS: usize = MOST_ROUNDS - 1;

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
    // SAFETY: the key was created by `prepare`.
    !unsafe { libc::pthread_getspecific(key) }.is_null() || call_at_end(key, 1)
}

/// Makes the destructor run, as its call with this number. `false` on failure.
fn call_at_end(key: u32, call: usize) -> bool {
    // SAFETY: the key was created by `prepare`. The value is a number, and never accessed as memory.
    unsafe { libc::pthread_setspecific(key, ptr::without_provenance(call)) == 0 }
}

/// The destructor of the key; glibc has removed the value before. For the main thread, it is called only if that ends
/// by `pthread_exit`.
unsafe extern "C" fn at_end(call: *mut c_void) {
    let call = call.addr();
    if call < CALLS && call_at_end(KEY.load(Ordering::Relaxed), call + 1) {
        return;
    }
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
