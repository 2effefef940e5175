//! What a running user thread can do about itself: yield, block, ask who it is.

use std::sync::Arc;

use sigmund_model::Thread;

use super::{
    lwp,
    user_thread::{Leave, UserThread},
};

/// The user thread that calls this, if it is one.
pub(crate) fn here() -> Option<Arc<UserThread>> {
    lwp::mounted()
}

/// The number of the user thread that calls this; `None` outside of a runtime.
pub fn current() -> Option<Thread> {
    here().map(|thread| thread.id())
}

/// Lets other ready threads run first. Outside of a runtime, yields the LWP to the kernel.
pub fn yield_now() {
    match here() {
        Some(thread) => thread.leave(Leave::Yield),
        None => std::thread::yield_now(),
    }
}

/// Blocks the calling user thread until it is unparked; `on` is the address of what it waits for, for the trace.
/// May return without that: the caller checks its condition again.
pub(crate) fn block_on(thread: &UserThread, on: usize) {
    if thread.begin_to_park() {
        thread.leave(Leave::Block(on));
    }
}
