//! The calling thread as one that waits, be it a user thread or a plain one.

use std::{sync::atomic::AtomicBool, time::Instant};

use super::{park::try_here, plain::PlainThread, thread::ThreadRef, waits::WaitsFor};

/// A thread that can be parked. Never freed, as user threads' blocks: it may be unparked at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parker {
    /// The LWP switches to other user threads meanwhile.
    User(ThreadRef),
    /// The kernel thread is blocked.
    Plain(&'static PlainThread),
}

impl Parker {
    /// The calling thread.
    #[inline]
    pub(crate) fn here() -> Parker {
        match try_here() {
            Some(thread) => Parker::User(thread),
            None => Parker::Plain(PlainThread::here()),
        }
    }

    /// Blocks the calling thread, which is this one, until it is unparked. May return spuriously: the caller has to
    /// check its condition again. If it was unparked before, it returns at once.
    pub(crate) fn park(self, on: &WaitsFor<'_>) {
        match self {
            Parker::User(thread) => thread.park_here(on),
            Parker::Plain(thread) => thread.park(),
        }
    }

    /// As [`park`](Parker::park), and also returns at the deadline.
    pub(crate) fn park_until(self, on: &WaitsFor<'_>, deadline: Instant) {
        match self {
            Parker::User(thread) => thread.park_until(on, deadline),
            Parker::Plain(thread) => thread.park_until(deadline),
        }
    }

    /// Ends its wait, or the next one.
    pub(crate) fn unpark(self) {
        match self {
            Parker::User(thread) => thread.unpark(),
            Parker::Plain(thread) => thread.unpark(),
        }
    }

    /// The token of [`park`](crate::park).
    pub(super) fn permit(self) -> &'static AtomicBool {
        match self {
            Parker::User(thread) => thread.permit(),
            Parker::Plain(thread) => thread.permit(),
        }
    }
}
