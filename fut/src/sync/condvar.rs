//! A condition variable for user threads.
//!
//! A waiter queues before it unlocks the mutex. So a thread that changes the condition under the mutex afterwards finds
//! it in the queue. Notifying removes a waiter from the queue, under the lock of the queue. A notification is either
//! received by a waiter, which then does not return "timed out", or it is not consumed (rule 4 of [`super`]).
//!
//! A notification of one thread is answered with `Granted`, a notification of all with `TryAgain`. If the notified
//! thread never runs again, only the first kind is passed on (rule 7).
//!
//! A notification of all ends, however fast threads come back: each such notification begins a round, and a waiter keeps
//! the round in which it arrived.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::{
    MutexGuard, deadline_after,
    rt::{Parker, WaitKind, WaitsFor},
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, Waiter, Wakeups},
};
use crate::model_check::{atomic::Ordering, const_unless_loom};

/// The bit of the word that is set if a thread waits. The other bits are the round. The word is changed under the lock
/// of the queue.
const WAITERS: u32 = 1;
const ROUND: u32 = 2;

/// Lets user threads wait until a condition under a [`Mutex`](super::Mutex) holds, like `std::sync::Condvar` for kernel
/// threads.
///
/// Waiters are notified in the order of their arrival. After the notification, they compete for the mutex with all
/// other threads.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(2).build()?;
/// # runtime.run(|| {
/// use std::sync::Arc;
///
/// use fut::sync::{Condvar, Mutex};
///
/// let door = Arc::new((Mutex::new(false), Condvar::new()));
/// let opener = {
///     let door = Arc::clone(&door);
///     fut::spawn(move || {
///         *door.0.lock() = true;
///         door.1.notify_one();
///     })
/// };
/// let open = door.1.wait_while(door.0.lock(), |open| !*open);
/// assert!(*open);
/// # drop(open);
/// # opener.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Condvar {
    /// The word has the current round, and whether a thread waits. The payload of each waiter is its round.
    queue: SpinLock<WaitList<u32>>,
}

/// Whether a wait ended because of its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the thread was not notified in time.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    const_unless_loom! {
        /// A condition variable without waiters.
        pub fn new() -> Condvar {
            Condvar { queue: SpinLock::new(WaitList::new()) }
        }
    }

    /// Unlocks the mutex, waits for a notification, and locks it again.
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.wait_before(guard, None).0
    }

    /// Waits while the condition holds.
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        self.wait_while_before(guard, None, condition).0
    }

    /// Waits like [`wait`](Condvar::wait), at most for `timeout`. Locking the mutex again afterwards has no time limit.
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        self.wait_before(guard, deadline_after(timeout))
    }

    /// Waits like [`wait`](Condvar::wait), until `deadline`.
    pub fn wait_until<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Instant,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        self.wait_before(guard, Some(deadline))
    }

    /// Waits while the condition holds, at most for `timeout`. The result is "timed out" if the condition still holds
    /// at the end.
    pub fn wait_timeout_while<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let deadline = deadline_after(timeout);
        self.wait_while_before(guard, deadline, condition)
    }

    /// Wakes the thread that has waited longest, if there is one.
    pub fn notify_one(&self) {
        if self.has_no_waiters() {
            return;
        }
        let mut queue = self.queue.lock();
        let first = queue.pop_front(Answer::Granted);
        self.note_whether_empty(&queue);
        drop(queue);
        if let Some(first) = first {
            first.unpark();
        }
    }

    /// Wakes all current waiters.
    pub fn notify_all(&self) {
        if self.has_no_waiters() {
            return;
        }
        // Threads that arrive from now on wait for the next notification.
        let mut queue = self.queue.lock();
        let round = self.round().wrapping_add(ROUND);
        self.queue.word.store(round | WAITERS, Ordering::Relaxed);
        let is_before = |arrived: u32| round.wrapping_sub(arrived).cast_signed() > 0;
        loop {
            let mut wakeups = Wakeups::new();
            while !wakeups.is_full() && queue.front().is_some_and(|arrived| is_before(*arrived)) {
                wakeups.push(queue.pop_front(Answer::TryAgain));
            }
            let is_done = !wakeups.is_full();
            self.note_whether_empty(&queue);
            drop(queue);
            wakeups.unpark_all();
            if is_done {
                return;
            }
            queue = self.queue.lock();
        }
    }

    fn has_no_waiters(&self) -> bool {
        // Relaxed: a waiter set the word before it unlocked the mutex. The condition was changed under the mutex after
        // that, so the mutex orders the two. If the condition is changed without the mutex, a waiter may be missed with
        // any ordering.
        self.queue.word.load(Ordering::Relaxed) & WAITERS == 0
    }

    /// Called with the queue locked.
    fn round(&self) -> u32 {
        self.queue.word.load(Ordering::Relaxed) & !WAITERS
    }

    /// Updates the word. Called with the queue locked.
    fn note_whether_empty(&self, queue: &WaitList<u32>) {
        let waiters = if queue.is_empty() { 0 } else { WAITERS };
        self.queue.word.store(self.round() | waiters, Ordering::Relaxed);
    }

    fn wait_before<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let mut waiter = Waiter::new(Parker::here(), 0);
        let mutex = guard.mutex();
        let mut queue = self.queue.lock();
        *waiter.payload() = self.round();
        // SAFETY: the waiter is not moved; this function returns after it was answered or has left the queue.
        unsafe { queue.push_back(&waiter) };
        self.note_whether_empty(&queue);
        drop(queue);
        drop(guard);
        let address = std::ptr::from_ref(self).addr();
        let on = WaitsFor { kind: WaitKind::Condvar, address, holder: None, is_fed: false };
        let leave = || {
            if !self.leave_queue(&waiter) && waiter.answer() == Answer::Granted {
                self.notify_one();
            }
        };
        let notified = waiter.wait(&on, deadline, &leave).is_some() || !self.leave_queue(&waiter);
        // Called if the thread is left behind while it waits for the mutex. The notification then goes to another
        // thread, too.
        let leave = || {
            if waiter.answer() == Answer::Granted {
                self.notify_one();
            }
        };
        (mutex.lock_for(&leave), WaitTimeoutResult(!notified))
    }

    fn wait_while_before<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        deadline: Option<Instant>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        while condition(&mut *guard) {
            let result;
            (guard, result) = self.wait_before(guard, deadline);
            if result.timed_out() {
                let still = condition(&mut *guard);
                return (guard, WaitTimeoutResult(still));
            }
        }
        (guard, WaitTimeoutResult(false))
    }

    /// Removes a waiter at its deadline. `false` if it was notified meanwhile.
    fn leave_queue(&self, waiter: &Waiter<u32>) -> bool {
        let mut queue = self.queue.lock();
        let left = queue.remove(waiter);
        self.note_whether_empty(&queue);
        left
    }
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
