//! Replaces the parts of `crate::runtime` that `sync` uses, for threads of loom.

use std::{
    cell::RefCell,
    sync::{Arc, atomic::AtomicU64},
    time::Instant,
};

use loom::{
    sync::{Condvar, Mutex},
    thread::{self, ThreadId},
};
use sigmund_model::Thread;

/// An index into [`THREADS`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parker(usize);

/// The token of a parked thread.
#[derive(Default)]
struct Token {
    unparked: Mutex<bool>,
    changed: Condvar,
}

std::thread_local! {
    /// The threads that have called [`Parker::here`] in this execution. loom runs all threads of a model on one kernel thread.
    static THREADS: RefCell<Vec<(ThreadId, Arc<Token>)>> = const { RefCell::new(Vec::new()) };
    /// The threads that are left behind when they wait: they never run again.
    static LEFT_BEHIND: RefCell<Vec<ThreadId>> = const { RefCell::new(Vec::new()) };
}

/// The payload with which a thread that was left behind is unwound.
struct LeftBehind;

/// Called before each execution.
#[cfg(test)]
pub(super) fn forget_all() {
    THREADS.with_borrow_mut(Vec::clear);
    LEFT_BEHIND.with_borrow_mut(Vec::clear);
}

/// Runs `body` in the calling thread, like a user thread of a runtime that is dropped: if `body` has to wait, it does
/// not return. Returns whether it did not have to wait.
#[cfg(test)]
pub(super) fn leave_behind(body: impl FnOnce()) -> bool {
    LEFT_BEHIND.with_borrow_mut(|left| left.push(thread::current().id()));
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    match ended {
        Ok(()) => true,
        Err(panic) if panic.is::<LeftBehind>() => false,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl Parker {
    pub(crate) fn here() -> Parker {
        try_here().unwrap_or_else(|| {
            let token = Arc::new(Token::default());
            THREADS.with_borrow_mut(|threads| {
                threads.push((thread::current().id(), token));
                Parker(threads.len() - 1)
            })
        })
    }

    pub(crate) fn park(self, _on: &WaitsFor<'_>) {
        let token = self.token();
        let mut unparked = token.unparked.lock().unwrap();
        while !*unparked {
            unparked = token.changed.wait(unparked).unwrap();
        }
        *unparked = false;
    }

    /// Deadlines in models have passed (`super::passed`), so no thread waits for one.
    pub(crate) fn park_until(self, _on: &WaitsFor<'_>, _deadline: Instant) {
        thread::yield_now();
    }

    /// If the thread is left behind, it leaves the queue here, at any moment after it has entered the queue, and does
    /// not return.
    pub(crate) fn in_queue(self, leave: &LeaveQueue<'_>) {
        if LEFT_BEHIND.with_borrow(|left| left.contains(&thread::current().id())) {
            leave();
            std::panic::resume_unwind(Box::new(LeftBehind));
        }
    }

    pub(crate) fn id(self) -> Thread {
        Thread(self.0 as u64 + 1)
    }

    pub(crate) fn unpark(self) {
        let token = self.token();
        *token.unparked.lock().unwrap() = true;
        token.changed.notify_one();
    }

    fn token(self) -> Arc<Token> {
        THREADS.with_borrow(|threads| Arc::clone(&threads[self.0].1))
    }
}

pub(crate) fn try_here() -> Option<Parker> {
    let id = thread::current().id();
    THREADS.with_borrow(|threads| threads.iter().position(|thread| thread.0 == id)).map(Parker)
}

/// Not read in models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MadeIn;

impl MadeIn {
    pub(crate) fn here() -> MadeIn {
        MadeIn
    }

    pub(crate) fn is_elsewhere(self) -> bool {
        true
    }
}

pub(crate) fn holder_here() -> u64 {
    try_here().map_or(u64::MAX, |thread| thread.id().0)
}

/// Not read in models.
#[allow(dead_code)]
pub(crate) struct WaitsFor<'a> {
    pub(crate) kind: WaitKind,
    pub(crate) address: usize,
    pub(crate) holder: Option<&'a AtomicU64>,
    pub(crate) is_fed: bool,
}

pub(crate) type LeaveQueue<'a> = &'a (dyn Fn() + 'a);

pub(crate) enum WaitKind {
    Mutex,
    RwLockRead,
    RwLockWrite,
    Condvar,
    Semaphore,
    Barrier,
    Channel,
    ChannelSpace,
    OnceCell,
    Future,
    Notify,
    Select,
}

pub(crate) fn checkpoint() {}

/// loom runs other threads between any two steps anyway.
pub(crate) fn yield_now() {}
