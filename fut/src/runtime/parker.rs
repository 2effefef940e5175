//! A thread that waits for a primitive of this crate: a user thread or a plain one.

use std::{marker::PhantomData, time::Instant};

use super::{
    park::try_here,
    permit::Permit,
    plain::PlainThread,
    thread::ThreadRef,
    waits::{LeaveQueue, WaitSlot, WaitsFor},
};

/// A thread that can be parked. Never freed, like the blocks of user threads: it may be unparked at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parker {
    /// The LWP switches to other user threads meanwhile.
    User(ThreadRef),
    /// The kernel thread is blocked.
    Plain(&'static PlainThread),
}

/// The calling thread is in a queue until this value is dropped.
#[must_use]
pub(crate) struct InQueue<'a> {
    /// `None` for a plain thread.
    waits: Option<&'static WaitSlot>,
    _leave: PhantomData<LeaveQueue<'a>>,
}

impl Drop for InQueue<'_> {
    fn drop(&mut self) {
        self.waits.inspect(|waits| waits.leave_queue());
    }
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

    /// Blocks the calling thread, which must be this one, until it is unparked. May return spuriously: the caller has
    /// to check its condition again. If the thread was unparked before, it returns at once.
    pub(crate) fn park(self, on: &WaitsFor<'_>) {
        match self {
            Parker::User(thread) => thread.park_here(on),
            Parker::Plain(thread) => thread.park(),
        }
    }

    /// Like [`park`](Parker::park), and also returns at the deadline.
    pub(crate) fn park_until(self, on: &WaitsFor<'_>, deadline: Instant) {
        match self {
            Parker::User(thread) => thread.park_until(on, deadline),
            Parker::Plain(thread) => thread.park_until(deadline),
        }
    }

    /// The calling thread, which must be this one, enters a queue. If the thread never runs again, `leave` is called
    /// (`left_behind.rs`), unless the returned value was dropped before. For a plain thread this has no effect.
    pub(crate) fn in_queue<'a>(self, leave: &'a LeaveQueue<'a>) -> InQueue<'a> {
        let waits = match self {
            Parker::User(thread) => Some(thread.waits()),
            Parker::Plain(_) => None,
        };
        waits.inspect(|waits| waits.enter_queue(leave));
        InQueue { waits, _leave: PhantomData }
    }

    /// Ends the current wait of the thread, or else its next one.
    pub(crate) fn unpark(self) {
        match self {
            Parker::User(thread) => thread.unpark(),
            Parker::Plain(thread) => thread.unpark(),
        }
    }

    /// The token of [`park`](crate::park).
    pub(super) fn permit(self) -> &'static Permit {
        match self {
            Parker::User(thread) => thread.permit(),
            Parker::Plain(thread) => thread.permit(),
        }
    }
}
