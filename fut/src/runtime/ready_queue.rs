//! The ready queue: one for all LWPs, first in, first out.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use super::user_thread::UserThread;

#[derive(Default)]
pub(super) struct ReadyQueue {
    queue: Mutex<Queue>,
    not_empty: Condvar,
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<Arc<UserThread>>,
    idle_lwps: usize,
    shut_down: bool,
}

impl ReadyQueue {
    pub(super) fn push(&self, thread: Arc<UserThread>) {
        let mut queue = self.lock();
        queue.ready.push_back(thread);
        let somebody_waits = queue.idle_lwps > 0;
        drop(queue);
        if somebody_waits {
            self.not_empty.notify_one();
        }
    }

    /// The next thread, if one is ready.
    pub(super) fn try_pop(&self) -> Option<Arc<UserThread>> {
        self.lock().ready.pop_front()
    }

    /// The next thread; the LWP sleeps in the kernel until there is one. `None` when the runtime shuts down.
    pub(super) fn pop(&self) -> Option<Arc<UserThread>> {
        let mut queue = self.lock();
        loop {
            if queue.shut_down {
                return None;
            }
            if let Some(thread) = queue.ready.pop_front() {
                return Some(thread);
            }
            queue.idle_lwps += 1;
            queue = self.not_empty.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle_lwps -= 1;
        }
    }

    /// Sends all LWPs home as soon as they look for work. What is still ready stays where it is.
    pub(super) fn shut_down(&self) {
        self.lock().shut_down = true;
        self.not_empty.notify_all();
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.lock().shut_down
    }

    /// Threads that never ran again, when the runtime is gone.
    pub(super) fn take_rest(&self) -> Vec<Arc<UserThread>> {
        self.lock().ready.drain(..).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code of users runs under this lock, so a poisoned one is whole.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
