//! A first-in, first-out queue of ready threads that any thread of the process may use.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use crate::runtime::thread::ThreadRef;

#[derive(Default)]
pub(in crate::runtime) struct SharedQueue {
    /// Length of `threads`. Read without the lock, like the next two.
    len: AtomicUsize,
    /// Number of threads pushed so far.
    came: AtomicU64,
    /// Number of threads popped so far.
    went: AtomicU64,
    threads: Mutex<VecDeque<ThreadRef>>,
}

impl SharedQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ThreadRef>> {
        // No code of the program runs under this lock, so the state is consistent even if it is poisoned.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(in crate::runtime) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(in crate::runtime) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Number of threads pushed so far.
    pub(in crate::runtime) fn came(&self) -> u64 {
        self.came.load(Ordering::Relaxed)
    }

    /// Number of threads popped so far.
    pub(in crate::runtime) fn went(&self) -> u64 {
        self.went.load(Ordering::Relaxed)
    }

    pub(in crate::runtime) fn push(&self, thread: ThreadRef) {
        let mut threads = self.lock();
        threads.push_back(thread);
        self.came.store(self.came() + 1, Ordering::Relaxed);
        self.len.store(threads.len(), Ordering::Relaxed);
    }

    pub(in crate::runtime) fn pop(&self) -> Option<ThreadRef> {
        if self.is_empty() {
            return None;
        }
        let mut threads = self.lock();
        let thread = threads.pop_front()?;
        self.went.store(self.went() + 1, Ordering::Relaxed);
        self.len.store(threads.len(), Ordering::Relaxed);
        Some(thread)
    }
}
