//! The inbox of an LWP to which user threads are pinned. Other LWPs put such a thread there when they make it ready.

use std::sync::{Condvar, Mutex, PoisonError};

use super::SharedQueue;
use crate::runtime::thread::ThreadRef;

/// The inbox of an LWP, and how to wake it. Never freed, like the blocks of the threads pinned to it.
#[repr(align(128))]
pub(in crate::runtime) struct Home {
    /// Ready threads. Other threads push, the LWP pops.
    pub(in crate::runtime) inbox: SharedQueue,
    pub(in crate::runtime) wakeup: Wakeup,
}

/// How to wake the LWP after a push to its inbox.
pub(in crate::runtime) enum Wakeup {
    /// The LWP is the worker with this number, and sleeps in [`Idle`](super::Idle).
    Worker(usize),
    /// The LWP is that of the reactor, and sleeps in the kernel.
    Reactor,
    /// The LWP is one for blocking calls. It sleeps here while its call is blocked on a primitive of this crate.
    Own(SleepEvent),
}

/// See [`Wakeup::Own`].
#[derive(Default)]
pub(in crate::runtime) struct SleepEvent {
    signalled: Mutex<bool>,
    wakes: Condvar,
}

impl SleepEvent {
    pub(in crate::runtime) fn signal(&self) {
        *self.signalled.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wakes.notify_one();
    }

    fn wait(&self) {
        let mut signalled = self.signalled.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *signalled) {
            signalled = self.wakes.wait(signalled).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Home {
    pub(in crate::runtime) fn new(wakeup: Wakeup) -> Home {
        Home { inbox: SharedQueue::default(), wakeup }
    }

    /// Waits for the next thread. Called by the LWP of this home, which is not a worker.
    pub(in crate::runtime) fn wait_for_thread(&self) -> ThreadRef {
        loop {
            // The wakeup follows the push. An outdated wakeup only causes another iteration.
            if let Some(thread) = self.inbox.pop() {
                return thread;
            }
            match &self.wakeup {
                Wakeup::Own(wakeup) => wakeup.wait(),
                Wakeup::Worker(_) | Wakeup::Reactor => unreachable!("only LWPs for blocking calls wait here"),
            }
        }
    }
}
