//! A mutex for user threads. A thread that waits for it is blocked, and its LWP switches to another thread.
//!
//! The word, and its transitions:
//! ```text
//!   LOCKED    the mutex is held. Set by the thread that acquires it, cleared by the thread that unlocks it.
//!   QUEUED    the queue is not empty. Set and cleared under the lock of the queue.
//!   WAKING    a waiter was removed from the queue to try again, and has not tried yet. Set by the thread that
//!             unlocks, under the lock of the queue; cleared by that waiter.
//! ```
//! 1. A thread that finds LOCKED clear may set it, whether there is a queue or not (it barges). Otherwise it queues
//!    last.
//! 2. A thread that unlocks with QUEUED and without WAKING removes the first waiter to try again, and clears LOCKED.
//!    With WAKING it wakes none: a woken waiter is already about to try.
//! 3. A waiter that tries again and finds LOCKED set was overtaken. It queues again, in front of all others.
//! 4. A thread that unlocks and finds an overtaken waiter in front leaves LOCKED set, and hands the mutex to that
//!    waiter. So a waiter in front is overtaken only once, by one other thread, and no thread starves.
//! 5. WAKING is cleared together with setting LOCKED (the waiter got the mutex), or under the lock of the queue (the
//!    waiter queues again, or gives up). A waiter that gives up after it was woken consumes no wakeup that others need:
//!    it takes the mutex if it is free; if not, the holder will wake the next waiter.

mod mapped;
mod owned;

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::atomic::AtomicU64,
    time::{Duration, Instant},
};

use super::{
    deadline_after, lock_events,
    rt::{LeaveQueue, Parker, WaitKind, WaitsFor, checkpoint, holder_here},
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, Waiter},
};
use crate::model_check::{UnsafeCell, atomic::Ordering, const_unless_loom};

pub use mapped::MappedMutexGuard;
pub use owned::OwnedMutexGuard;

const LOCKED: u32 = 1;
const QUEUED: u32 = 1 << 1;
const WAKING: u32 = 1 << 2;

/// Mutual exclusion between user threads, like `std::sync::Mutex` between kernel threads.
///
/// The mutex is not poisoned: a panic while it is held unlocks it, and the next holder sees the value as the panic left
/// it. The order is nearly first come, first served: each waiter can be overtaken once, by a thread that tries at the
/// moment of the unlock.
///
/// A plain thread may use it as well. While it waits, the kernel thread is blocked.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(2).build()?;
/// # runtime.run(|| {
/// use std::sync::Arc;
///
/// use fut::sync::Mutex;
///
/// let total = Arc::new(Mutex::new(0));
/// let adders: Vec<_> = (1..=4)
///     .map(|n| {
///         let total = Arc::clone(&total);
///         fut::spawn(move || *total.lock() += n)
///     })
///     .collect();
/// for adder in adders {
///     adder.join().unwrap();
/// }
/// assert_eq!(*total.lock(), 10);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Mutex<T: ?Sized> {
    /// The word, and the waiters.
    queue: SpinLock<WaitList<WaiterState>>,
    /// Id of the user thread that holds the mutex, for reports. 0 if it is not held, or not by a user thread. This is
    /// std's atomic even under loom: the protocol does not depend on it.
    holder: AtomicU64,
    value: UnsafeCell<T>,
}

/// The state of a waiter in the queue.
#[derive(Debug)]
enum WaiterState {
    /// The waiter has not been woken yet.
    First,
    /// The waiter was woken, and another thread took the mutex first.
    Overtaken,
}

/// Access to the value. When the guard is dropped, the mutex is unlocked.
#[must_use = "without its guard, the mutex is unlocked at once"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
}

// SAFETY: like `std::sync::Mutex`: the lock moves the value between threads.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above; at most one guard exists at a time.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: a shared guard gives only `&T`. It may migrate with its user thread: nothing in it belongs to an LWP.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    const_unless_loom! {
        /// An unlocked mutex.
        pub fn new(value: T) -> Mutex<T> {
            let queue = SpinLock::new(WaitList::new());
            Mutex { queue, holder: AtomicU64::new(0), value: UnsafeCell::new(value) }
        }
    }

    /// Consumes the mutex and returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks the mutex. Waits until that is possible. A thread that locks a mutex that it already holds waits for
    /// itself.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        checkpoint();
        self.lock_for(&|| {})
    }

    /// Locks the mutex if it is not held.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.take_if_free().then(|| self.guard())
    }

    /// Like [`lock`](Mutex::lock), but waits at most for `timeout`.
    pub fn try_lock_for(&self, timeout: Duration) -> Option<MutexGuard<'_, T>> {
        checkpoint();
        self.lock_before(deadline_after(timeout))
    }

    /// Like [`lock`](Mutex::lock), but waits until `deadline`.
    pub fn try_lock_until(&self, deadline: Instant) -> Option<MutexGuard<'_, T>> {
        checkpoint();
        self.lock_before(Some(deadline))
    }

    /// The value. The exclusive access proves that the mutex is not held.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: the mutex is borrowed mutably, so there is no guard.
        self.value.with_mut(|value| unsafe { &mut *value })
    }

    /// Like `lock`, for other functions that lock the mutex. If the thread is left behind while it waits, `leave` is
    /// called, too (rule 7 of `sync`).
    #[inline]
    pub(super) fn lock_for(&self, leave: LeaveQueue<'_>) -> MutexGuard<'_, T> {
        if !self.take_if_untouched() {
            // Without a deadline it always returns `true`.
            let _locked = self.lock_contended(None, leave);
        }
        self.guard()
    }

    fn lock_before(&self, deadline: Option<Instant>) -> Option<MutexGuard<'_, T>> {
        (self.take_if_untouched() || self.lock_contended(deadline, &|| {})).then(|| self.guard())
    }

    /// Makes the guard for a thread that has just set LOCKED, or was handed the mutex.
    #[inline]
    fn guard(&self) -> MutexGuard<'_, T> {
        lock_events::acquired(self.address(), WaitKind::Mutex);
        self.holder.store(holder_here(), Ordering::Relaxed);
        MutexGuard { mutex: self }
    }

    /// The address that identifies the mutex in the trace.
    #[inline]
    fn address(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }

    /// Rule 1, for a mutex without holder and waiters.
    #[inline]
    fn take_if_untouched(&self) -> bool {
        // Acquire: pairs with the Release of the last unlock; makes changes of the value visible.
        self.queue.word.compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Rule 1.
    #[inline]
    fn take_if_free(&self) -> bool {
        self.take(0)
    }

    /// Sets LOCKED if it is clear, and clears the bits `and_clear`.
    #[inline]
    fn take(&self, and_clear: u32) -> bool {
        let mut word = self.queue.word.load(Ordering::Relaxed);
        while word & LOCKED == 0 {
            let taken = (word | LOCKED) & !and_clear;
            // Acquire: as in `take_if_untouched`.
            let exchanged =
                self.queue.word.compare_exchange_weak(word, taken, Ordering::Acquire, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Locks the mutex. `false` at the deadline.
    #[cold]
    fn lock_contended(&self, deadline: Option<Instant>, also: LeaveQueue<'_>) -> bool {
        let waiter = Waiter::new(Parker::here(), WaiterState::First);
        if self.take_or_queue(&waiter) {
            return true;
        }
        let address = self.address().addr();
        let on = WaitsFor { kind: WaitKind::Mutex, address, holder: Some(&self.holder), is_fed: false };
        let leave = || {
            self.leave_behind(&waiter);
            also();
        };
        loop {
            match waiter.wait(&on, deadline, &leave) {
                Some(Answer::TryAgain) if self.take(WAKING) => return true,
                Some(Answer::TryAgain) if deadline.is_some_and(|at| Instant::now() >= at) => {
                    return self.take_or_leave();
                }
                Some(Answer::TryAgain) if self.take_or_queue_in_front(&waiter) => return true,
                Some(Answer::TryAgain) => {}
                Some(_handed_over) => return true,
                None if self.leave_queue(&waiter) => return false,
                // The waiter was answered before it could leave.
                None => {}
            }
        }
    }

    /// Rule 1: takes the mutex if it is free; otherwise enters the waiter into the queue.
    fn take_or_queue(&self, waiter: &Waiter<WaiterState>) -> bool {
        let mut queue = self.queue.lock();
        if self.take_or_set(QUEUED, 0) {
            return true;
        }
        // SAFETY: `lock_contended` does not move the waiter until it was answered or has left the queue.
        unsafe { queue.push_back(waiter) };
        false
    }

    /// Rule 3: the same for a waiter that was woken.
    fn take_or_queue_in_front(&self, waiter: &Waiter<WaiterState>) -> bool {
        let mut queue = self.queue.lock();
        if self.take_or_set(QUEUED, WAKING) {
            return true;
        }
        // SAFETY: as in `take_or_queue`.
        unsafe { queue.push_front(waiter) };
        *queue.payload(waiter) = WaiterState::Overtaken;
        false
    }

    /// Rule 5: a waiter that was woken gives up, unless the mutex is free.
    fn take_or_leave(&self) -> bool {
        let _queue = self.queue.lock();
        self.take_or_set(0, WAKING)
    }

    /// Takes the mutex if it is free, and otherwise sets the bits `set`. Clears the bits `clear` in both cases. Called
    /// with the queue locked.
    fn take_or_set(&self, set: u32, clear: u32) -> bool {
        // Acquire: as in `take_if_untouched`.
        let change = |word: u32| Some((word | if word & LOCKED == 0 { LOCKED } else { set }) & !clear);
        let before = self.queue.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, change);
        before.is_ok_and(|word| word & LOCKED == 0)
    }

    /// Removes a waiter at its deadline. `false` if it was answered meanwhile.
    fn leave_queue(&self, waiter: &Waiter<WaiterState>) -> bool {
        let mut queue = self.queue.lock();
        let left = queue.remove(waiter);
        if left && queue.is_empty() {
            self.queue.word.fetch_and(!QUEUED, Ordering::Relaxed);
        }
        left
    }

    /// Called when the thread of the waiter never runs again.
    #[cold]
    fn leave_behind(&self, waiter: &Waiter<WaiterState>) {
        if self.leave_queue(waiter) {
            return;
        }
        // Rule 5 for a waiter that was woken. A waiter to which the mutex was handed over holds the mutex.
        if waiter.answer() == Answer::Granted || self.take_or_leave() {
            self.release();
        }
    }

    /// Called by the holder.
    #[inline]
    fn unlock(&self) {
        lock_events::released(self.address(), WaitKind::Mutex);
        self.holder.store(0, Ordering::Relaxed);
        self.release();
    }

    #[inline]
    fn release(&self) {
        // Release: pairs with the Acquire of the next holder.
        if self.queue.word.compare_exchange(LOCKED, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            self.unlock_contended();
        }
    }

    #[cold]
    fn unlock_contended(&self) {
        let release = |word: u32| (word & (QUEUED | WAKING) != QUEUED).then_some(word & !LOCKED);
        // Release: as in `release`.
        if self.queue.word.fetch_update(Ordering::Release, Ordering::Relaxed, release).is_ok() {
            return;
        }
        // This thread holds the mutex, WAKING is clear, and the queue is locked. So no other thread changes the word.
        let mut queue = self.queue.lock();
        let next = match queue.front() {
            // Rule 4.
            Some(WaiterState::Overtaken) => {
                let next = queue.pop_front(Answer::Granted);
                self.queue
                    .word
                    .store(if queue.is_empty() { LOCKED } else { LOCKED | QUEUED }, Ordering::Relaxed);
                next
            }
            // Rule 2.
            Some(WaiterState::First) => {
                let next = queue.pop_front(Answer::TryAgain);
                // Release: as in `release`.
                self.queue
                    .word
                    .store(if queue.is_empty() { WAKING } else { WAKING | QUEUED }, Ordering::Release);
                next
            }
            // The last waiter gave up meanwhile.
            None => {
                // Release: as in `release`.
                self.queue.word.store(0, Ordering::Release);
                None
            }
        };
        drop(queue);
        if let Some(next) = next {
            next.unpark();
        }
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The mutex of this guard.
    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so this thread holds the mutex.
        self.mutex.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists and is borrowed mutably: nothing else accesses the value.
        self.mutex.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(value) => f.debug_tuple("Mutex").field(&&*value).finish(),
            None => f.write_str("Mutex(<locked>)"),
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
