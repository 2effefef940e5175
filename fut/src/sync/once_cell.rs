//! A value that is initialised once, by the first user thread that needs it.
//!
//! The word, and its transitions:
//! ```text
//!            begins                 made it
//!   EMPTY ────────────▶ MAKING ────────────────▶ READY
//!     ▲                   │
//!     └───────────────────┘ failed, or panicked                each of EMPTY and MAKING with or without QUEUED
//! ```
//! A waiter sets QUEUED, under the lock of the queue. The thread that leaves MAKING clears it, and wakes all waiters.
//! Waiters that then find the cell empty try to make the value themselves, or queue again. The other bits count how many
//! times the value could not be made. A waiter keeps this number from its arrival, so that waiters that come back are not
//! woken again.

use std::{convert::Infallible, fmt, panic, sync::atomic::AtomicU64};

use super::{
    rt::{Parker, WaitKind, WaitsFor, checkpoint, holder_here},
    spin_lock::SpinLock,
    wait_list::{Answer, WaitList, Waiter, answer_all},
};
use crate::model_check::{UnsafeCell, atomic::Ordering, const_unless_loom};

const EMPTY: u32 = 0;
const MAKING: u32 = 1;
const READY: u32 = 2;
const STATE: u32 = 3;
const QUEUED: u32 = 1 << 2;
const ROUND: u32 = 1 << 3;
const ROUNDS: u32 = !(ROUND - 1);

/// A cell that is written once, like `std::sync::OnceLock`. The initialising function may block its user thread.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(2).build()?;
/// # runtime.run(|| {
/// use fut::sync::OnceCell;
///
/// static GREETING: OnceCell<String> = OnceCell::new();
///
/// let other = fut::spawn(|| GREETING.get_or_init(|| "hello".to_string()).len());
/// assert_eq!(GREETING.get_or_init(|| "hello".to_string()), "hello");
/// assert_eq!(other.join().unwrap(), 5);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct OnceCell<T> {
    /// The word, and the waiters.
    queue: SpinLock<WaitList<u32>>,
    /// Id of the initialising user thread, for reports. 0 if there is none, or if it is not a user thread.
    maker: AtomicU64,
    /// Written by the initialising thread in MAKING, and read by all threads when READY.
    value: UnsafeCell<Option<T>>,
}

// SAFETY: like `std::sync::OnceLock`: the value may be created in one thread and dropped in another.
unsafe impl<T: Send> Send for OnceCell<T> {}
// SAFETY: as above; and threads share the value.
unsafe impl<T: Send + Sync> Sync for OnceCell<T> {}

impl<T> OnceCell<T> {
    const_unless_loom! {
        /// A cell without a value.
        pub fn new() -> OnceCell<T> {
            OnceCell {
                queue: SpinLock::new(WaitList::new()),
                maker: AtomicU64::new(0),
                value: UnsafeCell::new(None),
            }
        }
    }

    /// The value, if there is one.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // Acquire: pairs with the Release in `leave_making`; makes the value visible.
        let ready = self.queue.word.load(Ordering::Acquire) & STATE == READY;
        if !ready {
            return None;
        }
        // SAFETY: the word is READY, so the value is not changed while the cell is shared.
        self.value.with(|value| unsafe { &*value }).as_ref()
    }

    /// The value, if there is one. The access is exclusive.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: the cell is borrowed mutably, so no other thread initialises or reads it.
        self.value.with_mut(|value| unsafe { &mut *value }).as_mut()
    }

    /// The value. If there is none, initialises it with `make`. If another thread is initialising it, waits for that
    /// thread.
    ///
    /// If `make` panics, the cell stays empty, and the next caller tries. If `make` accesses the same cell, it waits
    /// for itself.
    ///
    /// # Panics
    /// If `make` panics.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        checkpoint();
        let infallible = || Ok::<T, Infallible>(make());
        match self.get_or_make(infallible) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// Like [`get_or_init`](OnceCell::get_or_init), with a function that may fail. If it fails, the cell stays empty.
    ///
    /// # Errors
    /// The error of `make`.
    ///
    /// # Panics
    /// If `make` panics.
    pub fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        checkpoint();
        self.get_or_make(make)
    }

    /// Writes the value, if there is none. If another thread is initialising it, waits for that thread.
    ///
    /// # Errors
    /// Returns `value` if the cell already has a value.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        let make = || value.take().ok_or(());
        match self.get_or_make(make) {
            Ok(_) => value.map_or(Ok(()), Err),
            Err(()) => Ok(()),
        }
    }

    /// Waits until another thread has initialised the value.
    pub fn wait(&self) -> &T {
        checkpoint();
        loop {
            match self.get() {
                Some(value) => return value,
                None => self.wait_while(|word| word & STATE != READY),
            }
        }
    }

    /// Takes the value out, leaving the cell empty.
    pub fn take(&mut self) -> Option<T> {
        self.queue.word.store(EMPTY, Ordering::Relaxed);
        // SAFETY: the cell is borrowed mutably, so no other thread initialises or reads it.
        self.value.with_mut(|value| unsafe { &mut *value }).take()
    }

    /// The value, if there is one.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        loop {
            if let Some(value) = self.get() {
                return Ok(value);
            }
            let begin = |word: u32| (word & STATE == EMPTY).then_some((word & !STATE) | MAKING);
            // Acquire: pairs with the Release of an earlier initialisation that failed.
            if self.queue.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, begin).is_ok() {
                break;
            }
            self.wait_while(|word| word & STATE == MAKING);
        }
        self.maker.store(holder_here(), Ordering::Relaxed);
        let made = panic::catch_unwind(panic::AssertUnwindSafe(make));
        self.maker.store(0, Ordering::Relaxed);
        match made {
            Ok(Ok(made)) => {
                // SAFETY: the word is MAKING, so only this thread accesses the value.
                let value = self.value.with_mut(|value| unsafe { &mut *value });
                let value = &*value.insert(made);
                self.leave_making(READY);
                Ok(value)
            }
            Ok(Err(error)) => {
                self.leave_making(EMPTY);
                Err(error)
            }
            Err(panic) => {
                self.leave_making(EMPTY);
                panic::resume_unwind(panic)
            }
        }
    }

    /// Waits until the cell leaves MAKING, unless it already has.
    #[cold]
    fn wait_while(&self, condition: impl Fn(u32) -> bool) {
        let mut waiter = Waiter::new(Parker::here(), 0);
        let mut queue = self.queue.lock();
        let note = |word: u32| condition(word).then_some(word | QUEUED);
        let Ok(word) = self.queue.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, note) else {
            return;
        };
        *waiter.payload() = word & ROUNDS;
        // SAFETY: the waiter is not moved; this function returns after it was answered.
        unsafe { queue.push_back(&waiter) };
        drop(queue);
        let address = std::ptr::from_ref(self).cast::<()>().addr();
        let on = WaitsFor { kind: WaitKind::OnceCell, address, holder: Some(&self.maker), is_fed: false };
        // All waiters are woken at once, so a waiter that never runs again blocks no other.
        let _try_again = waiter.wait(&on, None, &|| {});
    }

    fn leave_making(&self, state: u32) {
        let leave = |word: u32| Some((word & ROUNDS).wrapping_add(ROUND) | state);
        // Release: pairs with the Acquire in `get` and `get_or_make`.
        let before =
            self.queue.word.fetch_update(Ordering::Release, Ordering::Relaxed, leave).unwrap_or_default();
        if before & QUEUED == 0 {
            return;
        }
        let round = (before & ROUNDS).wrapping_add(ROUND);
        let is_before = |arrived: &u32| round.wrapping_sub(*arrived).cast_signed() > 0;
        answer_all(&self.queue, |queue| queue, Answer::TryAgain, is_before);
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> OnceCell<T> {
        OnceCell::new()
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> OnceCell<T> {
        let cell = OnceCell::new();
        // The cell is not shared yet, so it is empty.
        let _set = cell.set(value);
        cell
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => f.debug_tuple("OnceCell").field(value).finish(),
            None => f.write_str("OnceCell(<empty>)"),
        }
    }
}
