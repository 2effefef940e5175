//! The lock inside each primitive of `sync`. It guards the queue of waiters, for a few instructions at a time.
//!
//! It spins, then lets the kernel run another LWP, and then sleeps repeatedly for a short time. The sleep is needed
//! because of real-time LWPs, for example a real-time reactor: if such an LWP only yields, the kernel does not run an
//! ordinary LWP instead of it. The lock never switches user threads. So there must be no safe point of the runtime while
//! it is held: no probe, no `unpark`, no allocation, and no code of the program (rule 1 of [`super`]).

// Under loom, only the model of the lock itself uses it.
#![cfg_attr(loom, allow(dead_code))]

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

#[cfg(loom)]
use model::{RawGuard, Spin};

use crate::model_check::{
    UnsafeCell,
    atomic::{AtomicU32, Ordering},
    const_unless_loom, thread,
};

/// Number of attempts before `sched_yield`. If they all fail, the holder is probably off its CPU. In a model, spinning
/// only multiplies the executions.
const SPINS: u32 = 100;
/// Number of attempts, including the first [`SPINS`], before it sleeps.
const YIELDS: u32 = SPINS + 20;
/// The time of one sleep.
const MOMENT: Duration = Duration::from_micros(20);

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The lock without a value.
#[derive(Debug, Default)]
pub(super) struct RawSpin {
    state: AtomicU32,
}

/// A value guarded by the lock.
#[derive(Debug)]
pub(super) struct SpinLock<T> {
    raw: Spin,
    /// Not part of the lock. This is a word for the fast path of the primitive, placed here to use padding.
    pub(super) word: AtomicU32,
    value: UnsafeCell<T>,
}

#[cfg(not(loom))]
type Spin = RawSpin;
#[cfg(not(loom))]
type RawGuard<'a> = RawSpinGuard<'a>;

/// The lock is held until this value is dropped.
#[must_use]
pub(super) struct RawSpinGuard<'a>(&'a RawSpin);

/// Access to the value. The lock is held until the guard is dropped.
#[must_use]
pub(super) struct SpinGuard<'a, T> {
    value: &'a UnsafeCell<T>,
    _held: RawGuard<'a>,
}

// SAFETY: the lock moves the value between threads.
unsafe impl<T: Send> Send for SpinLock<T> {}
// SAFETY: as above; there is one guard at a time.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl RawSpin {
    const_unless_loom! {
        pub(super) fn new() -> RawSpin {
            RawSpin { state: AtomicU32::new(FREE) }
        }
    }

    #[inline]
    pub(super) fn lock(&self) -> RawSpinGuard<'_> {
        if !self.try_lock() {
            self.lock_contended();
        }
        RawSpinGuard(self)
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // Acquire: pairs with the Release in `RawSpinGuard::drop`; makes the last holder's changes of the value
        // visible.
        self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        let mut spins = 0;
        loop {
            spins += 1;
            if cfg!(loom) || (SPINS..YIELDS).contains(&spins) {
                thread::yield_now();
            } else if spins < SPINS {
                std::hint::spin_loop();
            } else {
                spins = YIELDS;
                std::thread::sleep(MOMENT);
            }
            if self.state.load(Ordering::Relaxed) == FREE && self.try_lock() {
                return;
            }
        }
    }
}

impl Drop for RawSpinGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `RawSpin::try_lock`.
        self.0.state.store(FREE, Ordering::Release);
    }
}

impl<T> SpinLock<T> {
    const_unless_loom! {
        pub(super) fn new(value: T) -> SpinLock<T> {
            SpinLock { raw: Spin::new(), word: AtomicU32::new(0), value: UnsafeCell::new(value) }
        }
    }

    #[inline]
    pub(super) fn lock(&self) -> SpinGuard<'_, T> {
        SpinGuard { _held: self.raw.lock(), value: &self.value }
    }
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so only this thread holds the lock.
        self.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists, so only this thread holds the lock, and the guard is borrowed mutably.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

/// Three spinning threads have more executions than loom can run. So [`RawSpin`] has its own model, and all other
/// models use loom's mutex instead of it.
#[cfg(loom)]
mod model {
    #[derive(Debug)]
    pub(super) struct Spin(loom::sync::Mutex<()>);

    pub(super) struct RawGuard<'a>(#[allow(dead_code)] loom::sync::MutexGuard<'a, ()>);

    impl Spin {
        pub(super) fn new() -> Spin {
            Spin(loom::sync::Mutex::new(()))
        }

        pub(super) fn lock(&self) -> RawGuard<'_> {
            RawGuard(self.0.lock().unwrap())
        }
    }
}
