//! User threads that never run again, because their runtime was dropped before they had ended: they leave the queues in
//! which they wait, so that what others use with them (a mutex of a plain thread, say) goes on to the next waiter.
//!
//! 1. A waiter in a queue has a function that takes it out, or that passes its answer on (rule 7 of `sync/mod.rs`), on the
//!    stack of its thread. The block has the address of it as long as the thread waits ([`Parker::in_queue`]).
//!    What was to be called at the end of a thread (`AtEnd`) is called when it is left behind.
//! 2. When the last LWP of a runtime has stopped (`carried.rs`), none of its threads runs again, and all are taken out. Threads
//!    in blocking calls go on, and are left alone.
//! 3. If some LWPs still run when the runtime is dropped (one of its threads drops it, or the limit of
//!    [`shutdown`](super::Runtime::shutdown) has passed), the threads that are parked are taken out at once. Each is held
//!    first (rule 5 of `thread/park_word.rs`), and never given back: so it does not run again, whoever unparks it. From then
//!    on, an LWP that stops does the same with those that have parked since. A thread that is ready then stays in its queue,
//!    or keeps its answer, until the last LWP has stopped.
//! 4. Rule 3 misses no thread: whoever drops the runtime first publishes that LWPs were left, and then looks at the threads;
//!    an LWP first parks its thread, and looks for that afterwards, when it stops. With a full fence in between, one of the
//!    two sees the other.
//!
//! [`Parker::in_queue`]: super::parker::Parker::in_queue

use std::sync::atomic::{Ordering, fence};

use super::{
    lwp,
    pool::Shared,
    thread::{Doing, Parked, ThreadRef, slab},
    thread_counts::all_have_ended,
};

impl Shared {
    /// Rule 3, when the runtime is dropped.
    #[cold]
    pub(super) fn leave_lwps(&'static self) {
        self.carried.lwps_were_left().store(true, Ordering::Relaxed);
        // Rule 4.
        fence(Ordering::SeqCst);
        self.leave_parked_behind();
    }

    /// Called by an LWP that has stopped, while others run.
    pub(super) fn lwp_has_stopped(&'static self) {
        // Rule 4.
        fence(Ordering::SeqCst);
        if self.carried.lwps_were_left().load(Ordering::Relaxed) {
            self.leave_parked_behind();
        }
    }

    /// Rule 2. No LWP of this runtime runs any more, except those for blocking calls.
    pub(super) fn leave_all_behind(&'static self) {
        for thread in self.left() {
            thread.leave_behind();
        }
    }

    fn leave_parked_behind(&'static self) {
        for thread in self.left().filter(|thread| thread.hold()) {
            // Before it was held, it may have run, and even ended.
            if is_left(thread, self) {
                thread.leave_behind();
            } else if thread.park() == Parked::TokenTaken {
                lwp::make_ready(thread);
            }
        }
        // Joins look whether their threads were left behind.
        self.carried.wake_waiters();
    }

    fn left(&'static self) -> impl Iterator<Item = ThreadRef> {
        let all = if all_have_ended(&self.thread_counts) { Vec::new() } else { slab::all() };
        all.into_iter().filter(move |thread| is_left(*thread, self))
    }
}

/// Whether the block belongs to a thread of `shared` that has not ended, and is in no blocking call.
fn is_left(thread: ThreadRef, shared: &'static Shared) -> bool {
    // Blocks are reused: the values are valid only if the thread's number is the same before and after reading them. The
    // number of a thread that never runs again does not change.
    let id = thread.id();
    let is_left = thread.doing() != Doing::Nothing
        && thread.runtime().is_some_and(|runtime| std::ptr::eq(runtime, shared))
        && !thread.is_ended()
        && !thread.is_in_blocking();
    // Acquire: pairs with the Release fence in `begin`; the second read of the number comes after the others.
    fence(Ordering::Acquire);
    is_left && thread.id() == id && id.0 != 0
}

impl ThreadRef {
    /// The thread never runs again.
    fn leave_behind(self) {
        if !self.set_left_behind() {
            return;
        }
        // SAFETY: it never runs again: the caller holds it for ever, or no LWP of its runtime runs (rules 2 and 3).
        if let Some(leave) = unsafe { self.waits().take_leave() } {
            leave();
        }
        // SAFETY: as above, and `set_left_behind` was the first.
        if let Some(at_end) = unsafe { self.take_at_end() } {
            at_end(self.id());
        }
    }
}
