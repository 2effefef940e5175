//! What `fork` means for a session: the child starts one of its own.
//!
//! The child inherits the mapping of its parent's arena, and the ring of the thread that forked. Both would be
//! written by two processes. So the child drops them before it returns from `fork`, and begins anew.
//!
//! A child that a raw `clone` or `_Fork` made runs no handler. Its probes find no ring (`probe::slots`), and it has no
//! session until it calls [`init`](super::init).

use std::sync::Once;

use super::Init;
use crate::probe::{after_fork, before_fork, stop_recording};

/// Has the C library call us in every child. `vfork` and `posix_spawn` do not, and need not: they run no probe.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers are functions with the right signature that are never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

extern "C" fn before() {
    before_fork();
}

extern "C" fn in_parent() {
    after_fork();
}

extern "C" fn in_child() {
    after_fork();
    super::forget();
    if !matches!(super::init(), Init::Recording) {
        // A child that cannot record runs on without: there is nobody here to tell. Should even this be refused, its
        // probes find no session.
        let _ = stop_recording();
    }
}
