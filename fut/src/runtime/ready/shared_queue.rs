//! A queue of ready threads that any thread of the process may use: first in, first out.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::runtime::thread::ThreadRef;

#[derive(Default)]
pub(in crate::runtime) struct SharedQueue {
    /// As long as `threads`; read without the lock.
    len: AtomicUsize,
    threads: Mutex<VecDeque<ThreadRef>>,
}

impl SharedQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ThreadRef>> {
        // No code of users runs under this lock, so a poisoned one is whole.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(in crate::runtime) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    pub(in crate::runtime) fn push(&self, thread: ThreadRef) {
        let mut threads = self.lock();
        threads.push_back(thread);
        self.len.store(threads.len(), Ordering::Relaxed);
    }

    pub(in crate::runtime) fn pop(&self) -> Option<ThreadRef> {
        if self.is_empty() {
            return None;
        }
        let mut threads = self.lock();
        let thread = threads.pop_front();
        self.len.store(threads.len(), Ordering::Relaxed);
        thread
    }
}
