//! A timer that wakes a future.

use std::{
    fmt,
    task::{Context, Poll, Waker},
    time::Instant,
};

use super::Timer;
use crate::runtime::{here, pool::Shared};

/// Lets a future wait for points in time, one after the other. It belongs to the runtime of the user thread that made
/// it. The LWPs of that runtime wake the future; once the runtime has ended, nothing wakes it.
pub(crate) struct TaskTimer {
    shared: &'static Shared,
    added: Option<Added>,
}

struct Added {
    timer: Timer,
    deadline: Instant,
    waker: Waker,
}

impl TaskTimer {
    /// # Panics
    /// Outside a runtime; the message names `call`.
    #[track_caller]
    pub(crate) fn new(call: &'static str) -> TaskTimer {
        TaskTimer { shared: here(call).shared(), added: None }
    }

    /// `Ready` at the deadline. Until then `Pending`, and the waker of the last call is woken at the deadline of that
    /// call.
    pub(crate) fn poll(&mut self, deadline: Instant, context: &Context<'_>) -> Poll<()> {
        if Instant::now() >= deadline {
            self.remove();
            return Poll::Ready(());
        }
        let waker = context.waker();
        let is_added =
            self.added.as_ref().is_some_and(|old| old.deadline == deadline && old.waker.will_wake(waker));
        if !is_added {
            self.remove();
            let timer = self.shared.reactor.add_task_timer(self.shared, deadline, waker.clone());
            self.added = Some(Added { timer, deadline, waker: waker.clone() });
        }
        Poll::Pending
    }

    fn remove(&mut self) {
        if let Some(added) = self.added.take() {
            let _is_over = self.shared.reactor.remove_timer(added.timer);
        }
    }
}

impl Drop for TaskTimer {
    fn drop(&mut self) {
        self.remove();
    }
}

impl fmt::Debug for TaskTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTimer").field("deadline", &self.added.as_ref().map(|a| a.deadline)).finish()
    }
}
