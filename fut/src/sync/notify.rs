//! Notifications, like tokio's `Notify`.
//!
//! 1. There is a permit only while no thread waits.
//! 2. Each waiter has the number of the round in which it arrived. `notify_waiters` begins a new round, and wakes the
//!    waiters of earlier rounds, a few at a time. So threads that arrive meanwhile wait for the next notification.
//! 3. A notification of one thread is answered with `Granted`, a notification of all with `TryAgain`. If the notified
//!    thread never runs again, only the first kind is passed on.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::{
    deadline_after,
    rt::{Parker, WaitKind, WaitsFor, checkpoint},
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, Waiter, Wakeups},
};
use crate::model_check::const_unless_loom;

/// Wakes one waiting thread, or all. It holds at most one permit: a notification for which no thread waits is kept for
/// the next thread.
///
/// So one thread may first change a state and then call [`notify_one`](Notify::notify_one), while another one looks at
/// the state and then calls [`notified`](Notify::notified): the other one misses nothing, if it is the only such
/// thread. For several threads, use a [`Condvar`](super::Condvar).
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(2).build()?;
/// # runtime.run(|| {
/// use std::sync::Arc;
///
/// use fut::sync::Notify;
///
/// let notify = Arc::new(Notify::new());
/// let waits = {
///     let notify = Arc::clone(&notify);
///     fut::spawn(move || notify.notified())
/// };
/// notify.notify_one();
/// waits.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Notify {
    state: SpinLock<State>,
}

#[derive(Debug)]
struct State {
    permit: bool,
    round: u64,
    /// Each waiter with the round in which it arrived.
    queue: WaitList<u64>,
}

impl Notify {
    const_unless_loom! {
        /// Makes a `Notify` without a permit.
        pub fn new() -> Notify {
            Notify { state: SpinLock::new(State { permit: false, round: 0, queue: WaitList::new() }) }
        }
    }

    /// Waits for a notification, or takes the permit.
    pub fn notified(&self) {
        // Without a deadline it always returns `true`.
        let _notified = self.notified_before(None);
    }

    /// Like [`notified`](Notify::notified), but waits at most for `timeout`. Returns whether the thread was notified.
    pub fn notified_timeout(&self, timeout: Duration) -> bool {
        self.notified_before(deadline_after(timeout))
    }

    /// Like [`notified`](Notify::notified), but waits until `deadline`. Returns whether the thread was notified.
    pub fn notified_deadline(&self, deadline: Instant) -> bool {
        self.notified_before(Some(deadline))
    }

    /// Wakes the thread that has waited longest. If there is none, leaves a permit.
    pub fn notify_one(&self) {
        let mut state = self.state.lock();
        let first = state.queue.pop_front(Answer::Granted);
        state.permit |= first.is_none();
        drop(state);
        if let Some(first) = first {
            first.unpark();
        }
    }

    /// Wakes all threads that wait now. Leaves no permit.
    pub fn notify_waiters(&self) {
        let mut state = self.state.lock();
        state.round += 1;
        let round = state.round;
        loop {
            let mut wakeups = Wakeups::new();
            while !wakeups.is_full() && state.queue.front().is_some_and(|arrived| *arrived < round) {
                wakeups.push(state.queue.pop_front(Answer::TryAgain));
            }
            let done = !wakeups.is_full();
            drop(state);
            wakeups.unpark_all();
            if done {
                return;
            }
            state = self.state.lock();
        }
    }

    fn notified_before(&self, deadline: Option<Instant>) -> bool {
        checkpoint();
        let mut waiter = Waiter::new(Parker::here(), 0);
        let mut state = self.state.lock();
        if std::mem::take(&mut state.permit) {
            return true;
        }
        *waiter.payload() = state.round;
        // SAFETY: the waiter is not moved; this function returns after it was answered or has left the queue.
        unsafe { state.queue.push_back(&waiter) };
        drop(state);
        let address = std::ptr::from_ref(self).addr();
        let on = WaitsFor { kind: WaitKind::Notify, address, holder: None, is_fed: false };
        let leave = || {
            // Rule 3.
            if !self.leave_queue(&waiter) && waiter.answer() == Answer::Granted {
                self.notify_one();
            }
        };
        waiter.wait(&on, deadline, &leave).is_some() || !self.leave_queue(&waiter)
    }

    /// Removes a waiter. `false` if it was notified before.
    fn leave_queue(&self, waiter: &Waiter<u64>) -> bool {
        self.state.lock().queue.remove(waiter)
    }
}

impl Default for Notify {
    fn default() -> Notify {
        Notify::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notify").finish_non_exhaustive()
    }
}
