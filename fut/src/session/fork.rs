//! What `fork` means for a session: the child starts one of its own.
//!
//! The child inherits the mapping of its parent's arena, and the ring of the thread that forked. Both would be
//! written by two processes. So the child drops them before it returns from `fork`, and begins anew.

use std::sync::Once;

/// Has the C library call us in every child. `vfork` and `posix_spawn` do not, and need not: they run no probe.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function with the right signature that is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

extern "C" fn in_child() {
    super::forget();
    // A child that cannot record runs on without: there is nobody here to tell.
    let _ = super::init();
}
