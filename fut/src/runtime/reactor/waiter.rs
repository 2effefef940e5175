//! What waits for an event or a timer: a user thread, or a future that some code polls.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

use crate::runtime::{discard::discard, thread::ThreadRef};

/// A user thread to unpark, or the waker of a future to wake.
#[derive(Debug)]
pub(in crate::runtime) enum Waiter<W = ThreadRef> {
    Thread(W),
    Task(Waker),
}

impl Waiter {
    pub(super) fn thread(&self) -> Option<ThreadRef> {
        match self {
            Waiter::Thread(thread) => Some(*thread),
            Waiter::Task(_) => None,
        }
    }

    pub(in crate::runtime) fn wake(self) {
        match self {
            Waiter::Thread(thread) => thread.unpark(),
            Waiter::Task(waker) => wake(waker),
        }
    }
}

/// Calls a waker. It is code of the program, whose panic must not unwind into an LWP.
pub(in crate::runtime) fn wake(waker: Waker) {
    discard(catch_unwind(AssertUnwindSafe(|| waker.wake())));
}
