//! A runtime: its LWPs, and what they share.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use sigmund_model::Thread;

use super::{Builder, lwp, ready_queue::ReadyQueue, stack::Stacks};
use crate::session;

/// What the LWPs and user threads of a runtime share.
pub(super) struct Shared {
    pub(super) ready: ReadyQueue,
    pub(super) stacks: Stacks,
}

/// Thread numbers are a process's, so that two runtimes in one do not share them. 0 is none.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub(super) fn next_id() -> Thread {
    Thread(NEXT_ID.fetch_add(1, Ordering::Relaxed))
}

/// User threads on a number of LWPs.
///
/// Dropping it sends the LWPs home at their next switch. User threads that have not ended by then never run again,
/// and what they own is leaked, as with threads of a process that ends.
pub struct Runtime {
    shared: Arc<Shared>,
    lwps: Vec<thread::JoinHandle<()>>,
}

/// Choices for a new runtime.
#[derive(Clone, Debug)]
pub struct RuntimeBuilder {
    lwps: Option<usize>,
    stack_size: usize,
}

impl Runtime {
    /// Choices for a new runtime: by default an LWP for each CPU, and stacks of 64 KiB.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder { lwps: None, stack_size: 64 << 10 }
    }

    /// Runs `main` as a user thread named `main`, and returns what it returns.
    ///
    /// # Panics
    /// If `main` panics.
    pub fn run<T: Send + 'static>(&self, main: impl FnOnce() -> T + Send + 'static) -> T {
        let main = Builder::new().name("main").spawn_on(&self.shared, main);
        match main.expect("memory for a stack").join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl RuntimeBuilder {
    /// How many LWPs carry the user threads; at least 1.
    #[must_use]
    pub fn lwps(mut self, lwps: usize) -> RuntimeBuilder {
        self.lwps = Some(lwps.max(1));
        self
    }

    /// Bytes of stack for each user thread, beside its guard page.
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> RuntimeBuilder {
        self.stack_size = bytes.max(16 << 10);
        self
    }

    /// Starts the LWPs. Under `sigmund record`, they are recorded from their first instruction here on.
    ///
    /// # Errors
    /// When the kernel gives no more threads, or the process shall be recorded and cannot.
    pub fn build(self) -> io::Result<Runtime> {
        if let session::Init::Failed(error) = session::init() {
            return Err(error.into());
        }
        let lwps = self.lwps.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into));
        let shared = Arc::new(Shared { ready: ReadyQueue::default(), stacks: Stacks::new(self.stack_size) });
        let mut runtime = Runtime { shared, lwps: Vec::new() };
        for index in 0..lwps {
            let shared = Arc::clone(&runtime.shared);
            let lwp = thread::Builder::new().name(format!("lwp/{index}"));
            runtime.lwps.push(lwp.spawn(move || lwp::run(&shared))?);
        }
        Ok(runtime)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.shared.ready.shut_down();
        for lwp in self.lwps.drain(..) {
            // An LWP does not panic: user threads are caught. If one did, its threads are lost and we go on.
            let _ = lwp.join();
        }
        // Their coroutines would unwind stacks that stand in the middle of something.
        self.shared.ready.take_rest().into_iter().for_each(std::mem::forget);
    }
}
