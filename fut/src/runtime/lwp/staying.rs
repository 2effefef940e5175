//! The kernel thread of an LWP, and why it may outlive its runtime.
//!
//! A user thread that is pinned to an LWP may borrow from that LWP's thread-locals, and lend the borrowed values to
//! user threads on other LWPs. If the runtime is dropped before the thread has ended, its stack is never freed, so what
//! it borrows must stay valid, too. The end of the LWP would destroy its thread-locals; so an LWP with such threads
//! sleeps instead.

use std::{
    io,
    sync::{Mutex, PoisonError, mpsc},
    thread,
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

/// The kernel thread of an LWP.
#[derive(Debug)]
pub(in crate::runtime) struct LwpThread {
    thread: thread::JoinHandle<()>,
    /// In a mutex only to make the type `Sync`; only `join` uses it.
    stopped: Mutex<mpsc::Receiver<Stays>>,
}

impl LwpThread {
    /// # Errors
    /// When the kernel creates no more threads.
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

    /// Whether this is the calling thread.
    pub(in crate::runtime) fn is_current(&self) -> bool {
        self.thread.thread().id() == thread::current().id()
    }

    /// Waits until it has ended, or is known never to end.
    pub(in crate::runtime) fn join(self) {
        // An LWP does not panic: panics of user threads are caught. If it did nevertheless, its threads would be lost.
        let stopped = self.stopped.into_inner().unwrap_or_else(PoisonError::into_inner);
        if stopped.recv() != Ok(Stays::Yes) {
            discard(self.thread.join());
        }
    }
}
