//! User threads that never run again, because their runtime was dropped before they had ended ("left behind"). They
//! leave the queues in which they wait. So an object that they share with others, for example a mutex that a plain
//! thread also uses, passes on to the next waiter.
//!
//! 1. A waiter in a queue has a function, on the stack of its thread, that takes the waiter out of the queue or passes
//!    its answer on (rule 7 of `sync/mod.rs`). The thread's block holds the address of this function as long as the
//!    thread waits ([`Parker::in_queue`]). The function that is called at the end of a thread (`AtEnd`) is called when
//!    the thread is left behind.
//! 2. When the last LWP of a runtime has stopped (`carried.rs`), none of its threads runs again, and all are taken out
//!    of their queues. Threads in blocking calls are not: they still run.
//! 3. Some LWPs may still run when the runtime is dropped: one of its threads drops it, or the limit of
//!    [`shutdown`](super::Runtime::shutdown) has passed. Then the threads that are parked are taken out at once. Each
//!    is first held (rule 5 of `thread/park_word.rs`) and never given back, so it does not run again, whoever unparks
//!    it. From then on, an LWP that stops does the same with the threads that have parked since. A thread that is ready
//!    at that time stays in its queue, or keeps its answer, until the last LWP has stopped.
//! 4. Rule 3 misses no thread. The thread that drops the runtime first publishes that LWPs were left, and then looks at
//!    the threads. An LWP first parks its thread, and checks for that mark afterwards, when it stops. With a full fence
//!    in between on both sides, at least one of the two sees the other's write.
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

    /// Called by an LWP that has stopped, while other LWPs run.
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
            // Until it was held, the thread may have run, and even ended.
            if is_left(thread, self) {
                thread.leave_behind();
            } else if thread.park() == Parked::TokenTaken {
                lwp::make_ready(thread);
            }
        }
        // The registered waiters then check whether the thread that they wait for was left behind.
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
    /// Called when the thread will never run again.
    fn leave_behind(self) {
        if !self.set_left_behind() {
            return;
        }
        // SAFETY: the thread never runs again: the caller holds it for ever, or no LWP of its runtime runs (rules 2 and
        // 3).
        if let Some(leave) = unsafe { self.waits().take_leave() } {
            leave();
        }
        // SAFETY: as above, and this call of `set_left_behind` was the first.
        if let Some(at_end) = unsafe { self.take_at_end() } {
            at_end(self.id());
        }
    }
}
