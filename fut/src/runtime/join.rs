//! Waiting for a user thread to end, from another one or from a plain thread.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use sigmund_model::Thread;

use super::{
    park::{block_on, here},
    user_thread::UserThread,
};

/// The right to the result of a user thread.
pub struct JoinHandle<T> {
    thread: Arc<UserThread>,
    outcome: Arc<Outcome<T>>,
}

/// Where the result of a user thread is put, and who waits for it.
pub(super) struct Outcome<T> {
    state: Mutex<State<T>>,
    /// For plain threads; a user thread waits in `State::waiter`.
    ended: Condvar,
}

struct State<T> {
    result: Option<thread::Result<T>>,
    waiter: Option<Arc<UserThread>>,
}

impl<T> Default for Outcome<T> {
    fn default() -> Outcome<T> {
        Outcome { state: Mutex::new(State { result: None, waiter: None }), ended: Condvar::new() }
    }
}

impl<T> Outcome<T> {
    pub(super) fn set(&self, result: thread::Result<T>) {
        let mut state = self.lock();
        state.result = Some(result);
        let waiter = state.waiter.take();
        drop(state);
        match waiter {
            Some(waiter) => waiter.unpark(),
            None => self.ended.notify_one(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> JoinHandle<T> {
    pub(super) fn new(thread: Arc<UserThread>, outcome: Arc<Outcome<T>>) -> JoinHandle<T> {
        JoinHandle { thread, outcome }
    }

    /// The number of the thread.
    pub fn id(&self) -> Thread {
        self.thread.id()
    }

    /// Its name.
    pub fn name(&self) -> Option<&str> {
        self.thread.name.as_deref()
    }

    /// Waits until it has ended. A user thread that calls this blocks; its LWP goes on with others.
    ///
    /// # Errors
    /// What it panicked with, if it did.
    pub fn join(self) -> thread::Result<T> {
        let Some(here) = here() else { return self.join_from_outside() };
        loop {
            let mut state = self.outcome.lock();
            if let Some(result) = state.result.take() {
                return result;
            }
            state.waiter = Some(Arc::clone(&here));
            drop(state);
            block_on(&here, Arc::as_ptr(&self.thread) as usize);
        }
    }

    fn join_from_outside(self) -> thread::Result<T> {
        let mut state = self.outcome.lock();
        loop {
            if let Some(result) = state.result.take() {
                return result;
            }
            state = self.outcome.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("id", &self.id()).field("name", &self.name()).finish()
    }
}
