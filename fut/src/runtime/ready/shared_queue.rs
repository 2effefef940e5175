//! A queue of ready threads that any thread of the process may use: first in, first out.

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
    /// As long as `threads`; read without the lock, as the next two.
    len: AtomicUsize,
    /// Threads that ever came.
    came: AtomicU64,
    /// Threads that were taken.
    went: AtomicU64,
    threads: Mutex<VecDeque<ThreadRef>>,
}

impl SharedQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ThreadRef>> {
        // No code of users runs under this lock, so a poisoned one is whole.
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

    /// How many came so far.
    pub(in crate::runtime) fn came(&self) -> u64 {
        self.came.load(Ordering::Relaxed)
    }

    /// How many of them were taken.
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
