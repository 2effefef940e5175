//! Waiting for a user thread to end, from another user thread or from a plain thread.

use std::{
    error::Error,
    fmt,
    marker::PhantomData,
    mem, ptr, thread,
    time::{Duration, Instant},
};

use sigmund_model::Thread;

use super::{
    lwp,
    park::{try_here, yield_now},
    thread::{Awaited, Leave, ThreadRef},
    unparker::Unparker,
    waits::{WaitKind, WaitsFor},
};

/// The handle for the result of a user thread. Dropping it detaches the thread, which continues.
pub struct JoinHandle<T> {
    thread: ThreadRef,
    _result: PhantomData<fn() -> T>,
}

/// Why a user thread cannot be joined: its [`Runtime`](crate::Runtime) was dropped before the thread ended, so the
/// thread never runs again. [`JoinHandle::join`] returns this error instead of the payload of a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeDropped {
    /// The number of the user thread.
    pub thread: Thread,
}

impl fmt::Display for RuntimeDropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user thread {} cannot be joined: its runtime was dropped before it ended", self.thread)
    }
}

impl Error for RuntimeDropped {}

impl<T> JoinHandle<T> {
    /// Makes the only handle of a thread that returns a `T`.
    pub(super) fn new(thread: ThreadRef) -> JoinHandle<T> {
        JoinHandle { thread, _result: PhantomData }
    }

    /// The number of the thread.
    pub fn id(&self) -> Thread {
        self.thread.id()
    }

    /// The name of the thread.
    pub fn name(&self) -> Option<&str> {
        // SAFETY: this is its handle.
        unsafe { self.thread.name() }
    }

    /// An unparker that ends the [`fut::park`](crate::park) of the thread.
    pub fn unparker(&self) -> Unparker {
        Unparker::of(self.thread)
    }

    /// Whether the thread has ended. Then [`join`](JoinHandle::join) returns at once.
    pub fn is_finished(&self) -> bool {
        self.thread.is_ended()
    }

    /// Waits until the thread has ended. If the caller is a user thread, it blocks, and its LWP switches to others.
    ///
    /// # Errors
    /// The payload of the thread's panic; [`RuntimeDropped`] if it will never end, because its runtime was dropped.
    #[inline]
    pub fn join(self) -> thread::Result<T> {
        let thread = self.thread;
        if !thread.is_ended() && wait_for_end(thread) == Awaited::Never {
            return self.never();
        }
        mem::forget(self);
        // SAFETY: it has ended, and this was its only handle, whose type parameter is the type of its result.
        unsafe { thread.take_result() }
    }
}

impl<T> JoinHandle<T> {
    /// Like [`join`](JoinHandle::join), but waits at most for `timeout`.
    ///
    /// # Errors
    /// Returns the handle if the thread has not ended in time.
    pub fn join_timeout(self, timeout: Duration) -> Result<thread::Result<T>, JoinHandle<T>> {
        if self.thread.is_ended() {
            return Ok(self.join());
        }
        // A deadline beyond the range of the clock means none.
        match self.thread.join_from_outside(Instant::now().checked_add(timeout)) {
            Awaited::Ended => Ok(self.join()),
            Awaited::Never => Ok(self.never()),
            Awaited::TimedOut => {
                // The calling thread may not have left its LWP. Without this, a loop of such calls would keep the awaited
                // thread off this LWP.
                yield_now();
                if self.thread.is_ended() { Ok(self.join()) } else { Err(self) }
            }
        }
    }

    /// The result of a thread that never ends. The values that it owns are leaked.
    fn never(self) -> thread::Result<T> {
        let thread = self.thread.id();
        mem::forget(self);
        Err(Box::new(RuntimeDropped { thread }))
    }
}

fn wait_for_end(thread: ThreadRef) -> Awaited {
    // A waiter that is carried by the same LWPs never runs again either, once they stop (rule 2 of `carried.rs`).
    match try_here().filter(|here| ptr::eq(here.shared(), thread.shared()) && !lwp::may_block()) {
        Some(here) => {
            let address = thread.id().0 as usize;
            here.waits().set(&WaitsFor { kind: WaitKind::Join, address, holder: None, is_fed: false }, false);
            here.leave(Leave::Join(thread));
            debug_assert!(thread.is_ended());
            Awaited::Ended
        }
        None => thread.join_from_outside(None),
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        // SAFETY: this is its only handle, and it is dropped.
        unsafe { self.thread.detach::<T>() };
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("id", &self.id()).field("name", &self.name()).finish()
    }
}
