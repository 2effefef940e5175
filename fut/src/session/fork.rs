//! Handlers for `fork`: the child starts its own session.
//!
//! The child inherits the mapping of its parent's arena, and the ring of the thread that forked. Two processes would
//! write to both. So the child gives them up before it returns from `fork`, and starts a new session.
//!
//! A child made by a raw `clone` or `_Fork` runs no handler. Its probes find no ring (`probe::slots`), and it has no
//! session until it calls [`init`](super::init).

use std::sync::Once;

use super::Init;
use crate::probe::{after_fork, before_fork, stop_recording};

/// Registers the handlers with the C library. `vfork` and `posix_spawn` do not call them. They need not: their children
/// run no probe before `exec`.
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
        // A child that cannot record continues unrecorded. If this call fails, too, its probes are on, but find no
        // session.
        let _ = stop_recording();
    }
}
