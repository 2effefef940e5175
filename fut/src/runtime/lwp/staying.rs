//! The kernel thread of an LWP, and why it may outlive its runtime.
//!
//! A user thread that keeps to an LWP may borrow from that LWP's thread-locals, and lend what it has borrowed to user
//! threads on others. When the runtime is dropped before it has ended, its stack is kept for ever, and so must be what it
//! borrows. So an LWP that has such threads does not end, which would destroy its thread-locals: it sleeps.

use std::{
    io,
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

use crate::runtime::discard::discard;

/// What an LWP does when it carries nobody any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::runtime) enum Stays {
    /// It ends.
    No,
    /// It sleeps until the process ends: threads that keep to it have not ended.
    Yes,
}

/// A kernel thread that is an LWP.
#[derive(Debug)]
pub(in crate::runtime) struct LwpThread {
    thread: thread::JoinHandle<()>,
    /// Under a lock because a runtime is shared; only `join` asks.
    carries_nobody: Mutex<mpsc::Receiver<Stays>>,
}

impl LwpThread {
    /// # Errors
    /// When the kernel gives no more threads.
    pub(in crate::runtime) fn spawn(
        name: String,
        body: impl FnOnce() -> Stays + Send + 'static,
    ) -> io::Result<LwpThread> {
        let (tell, carries_nobody) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name(name).spawn(move || {
            let stays = body();
            // Nobody listens if the runtime could not be built.
            let _ = tell.send(stays);
            if stays == Stays::Yes {
                loop {
                    thread::park();
                }
            }
        })?;
        Ok(LwpThread { thread, carries_nobody: Mutex::new(carries_nobody) })
    }

    /// Whether it is the caller.
    pub(in crate::runtime) fn is_current(&self) -> bool {
        self.thread.thread().id() == thread::current().id()
    }

    /// Waits until it has ended, or will never.
    pub(in crate::runtime) fn join(self) {
        // An LWP does not panic: user threads are caught. If one did, its threads are lost and we continue.
        let carries_nobody = self.carries_nobody.into_inner().unwrap_or_else(PoisonError::into_inner);
        if carries_nobody.recv() != Ok(Stays::Yes) {
            discard(self.thread.join());
        }
    }
}
