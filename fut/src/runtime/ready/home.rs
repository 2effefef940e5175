//! An LWP that user threads keep to, as others see it: where they put such a thread when they make it ready.

use std::sync::{Condvar, Mutex, PoisonError};

use super::SharedQueue;
use crate::runtime::thread::ThreadRef;

/// See above. It lives as long as the process, like the threads that keep to it.
#[repr(align(128))]
pub(in crate::runtime) struct Home {
    /// Ready threads. Others put them in, the LWP takes them out.
    pub(in crate::runtime) inbox: SharedQueue,
    pub(in crate::runtime) bell: Bell,
}

/// How the LWP learns that something is in its inbox, if it sleeps.
pub(in crate::runtime) enum Bell {
    /// It is the worker of this number, and sleeps where all of them do.
    Worker(usize),
    /// It is the reactor, and sleeps in the kernel.
    Reactor,
    /// It is there for blocking calls, and sleeps here while that call waits in the ways of user threads.
    Own(OwnBell),
}

/// See [`Bell::Own`].
#[derive(Default)]
pub(in crate::runtime) struct OwnBell {
    rung: Mutex<bool>,
    rings: Condvar,
}

impl OwnBell {
    pub(in crate::runtime) fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rings.notify_one();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *rung) {
            rung = self.rings.wait(rung).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Home {
    pub(in crate::runtime) fn new(bell: Bell) -> Home {
        Home { inbox: SharedQueue::default(), bell }
    }

    /// By its LWP, which has no worker's queues: the next thread, as soon as there is one.
    pub(in crate::runtime) fn wait_for_thread(&self) -> ThreadRef {
        loop {
            // The bell rings after the thread was put in. A ring that is old makes it look once more.
            if let Some(thread) = self.inbox.pop() {
                return thread;
            }
            match &self.bell {
                Bell::Own(bell) => bell.wait(),
                Bell::Worker(_) | Bell::Reactor => unreachable!("only LWPs for blocking calls wait here"),
            }
        }
    }
}
