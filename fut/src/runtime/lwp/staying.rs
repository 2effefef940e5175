//! The kernel thread of an LWP, and why it may outlive its runtime.
//!
//! A user thread that is pinned to an LWP may borrow from that LWP's thread-locals, and lend the borrowed values to
//! user threads on other LWPs. If the runtime is dropped before the thread has ended, the stack of the thread is never
//! freed, so the values that it borrows must stay valid, too. The end of the LWP would destroy its thread-locals. So an
//! LWP with such threads sleeps instead of ending.

use std::{
    io,
    os::unix::thread::JoinHandleExt,
    ptr,
    sync::{
        Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use crate::runtime::discard::discard;

/// What an LWP does when it carries no more threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::runtime) enum Stays {
    /// It ends.
    No,
    /// It sleeps until the process ends: threads pinned to it have not ended.
    Yes,
}

/// Whether an LWP had stopped within a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::runtime) enum Joined {
    /// It carries no more threads.
    Stopped,
    /// A user thread has not left it.
    StillRuns,
}

/// The kernel thread of an LWP.
#[derive(Debug)]
pub(in crate::runtime) struct LwpThread {
    thread: thread::JoinHandle<()>,
    /// The mutex only makes the type `Sync`; only `join` uses the receiver.
    stopped: Mutex<mpsc::Receiver<Stays>>,
}

impl LwpThread {
    /// # Errors
    /// If the kernel creates no more threads.
    pub(in crate::runtime) fn spawn(
        name: String,
        body: impl FnOnce() -> Stays + Send + 'static,
    ) -> io::Result<LwpThread> {
        let (sender, stopped) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name(name).spawn(move || {
            let stays = body();
            // The receiver is gone if the runtime could not be built.
            let _ = sender.send(stays);
            if stays == Stays::Yes {
                loop {
                    thread::park();
                }
            }
        })?;
        Ok(LwpThread { thread, stopped: Mutex::new(stopped) })
    }

    /// Whether this LWP is the calling thread.
    pub(in crate::runtime) fn is_current(&self) -> bool {
        self.thread.thread().id() == thread::current().id()
    }

    /// Waits until the LWP has ended, or is known never to end, at most until `limit`. After the limit it may continue:
    /// nothing that it uses is ever freed.
    pub(in crate::runtime) fn join(self, limit: Option<Instant>) -> Joined {
        // An LWP does not panic, since panics of user threads are caught. If it did nevertheless, its threads would be
        // lost.
        let stopped = self.stopped.into_inner().unwrap_or_else(PoisonError::into_inner);
        let stays = match limit {
            None => stopped.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(limit) => stopped.recv_timeout(limit.saturating_duration_since(Instant::now())),
        };
        match (stays, limit) {
            (Ok(Stays::Yes), _) => {}
            (Err(RecvTimeoutError::Timeout), _) => return Joined::StillRuns,
            (_, None) => discard(self.thread.join()),
            (_, Some(limit)) => join_until(self.thread, limit),
        }
        Joined::Stopped
    }
}

/// Waits for the end of a thread. This includes the destructors of its thread-locals, which are code of the program. At
/// the limit the thread is detached.
fn join_until(thread: thread::JoinHandle<()>, limit: Instant) {
    const PAUSE: Duration = Duration::from_micros(100);
    let thread = thread.into_pthread_t();
    // SAFETY: `into_pthread_t` has passed the thread on to this function: it was neither joined nor detached.
    while unsafe { libc::pthread_tryjoin_np(thread, ptr::null_mut()) } == libc::EBUSY {
        if Instant::now() >= limit {
            // SAFETY: as above. The thread was not joined, since it was busy.
            unsafe { libc::pthread_detach(thread) };
            return;
        }
        thread::sleep(PAUSE);
    }
}
