//! Creating user threads.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::{
    join::{JoinHandle, Outcome},
    park::here,
    pool::{Shared, next_id},
    user_thread::UserThread,
};
use crate::scheduler;

/// Choices for a new user thread, as `std::thread::Builder` has them for threads.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    name: Option<Box<str>>,
}

/// Creates a user thread in the runtime of the calling one.
///
/// It may go on on another LWP after each call that blocks or yields. So do not keep what belongs to an LWP
/// across one: borrowed thread-locals, guards of `std::sync` locks.
///
/// # Panics
/// Outside of a runtime, and when there is no memory for a stack.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn(body).expect("memory for a stack")
}

impl Builder {
    /// No name.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// A name, for traces and messages.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = Some(name.into().into_boxed_str());
        self
    }

    /// Creates the user thread in the runtime of the calling one.
    ///
    /// # Errors
    /// When there is no memory for a stack.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let here = here().expect("fut::spawn is called by a user thread, inside of Runtime::run");
        self.spawn_on(here.shared(), body)
    }

    pub(super) fn spawn_on<T: Send + 'static>(
        self,
        shared: &Arc<Shared>,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let stack = shared.stacks.get()?;
        let id = next_id();
        let outcome = Arc::new(Outcome::default());
        let result = Arc::clone(&outcome);
        // The closure must not unwind into the LWP's stack, and what it panicked with belongs to who joins.
        let body = move || result.set(catch_unwind(AssertUnwindSafe(body)));
        scheduler::thread_new(id, self.name.as_deref().unwrap_or(""));
        let thread = UserThread::new(id, self.name, Arc::clone(shared), stack, body);
        shared.ready.push(Arc::clone(&thread));
        Ok(JoinHandle::new(thread, outcome))
    }
}
