//! A mutex for user threads. A thread that waits for it is blocked, and its LWP goes on with another.

use std::{
    cell::UnsafeCell,
    collections::VecDeque,
    fmt,
    ops::{Deref, DerefMut},
    sync::{Mutex as StdMutex, MutexGuard as StdGuard, PoisonError},
};

use crate::runtime::{ThreadRef, WaitKind, WaitsFor, here, park};

/// Mutual exclusion between user threads, first come, first served. It is not poisoned by a panic.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    state: StdMutex<State>,
    value: UnsafeCell<T>,
}

#[derive(Default)]
struct State {
    locked: bool,
    waiters: VecDeque<ThreadRef>,
}

/// The right to the value, until it is dropped.
#[must_use]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
}

// SAFETY: like `std::sync::Mutex`: the lock hands the value from one thread to another.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above; at most one guard exists at a time.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: a guard gives `&T` only, as far as sharing it goes. It may move with its user thread: nothing in it
// belongs to an LWP.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// A mutex that nobody holds.
    pub fn new(value: T) -> Mutex<T> {
        Mutex { state: StdMutex::default(), value: UnsafeCell::new(value) }
    }

    /// The value, when nobody can hold the mutex any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until nobody holds it, and holds it.
    ///
    /// # Panics
    /// Outside of a runtime, when somebody holds it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let mut state = self.state();
        if !state.locked {
            state.locked = true;
            return MutexGuard { mutex: self };
        }
        let here = here("fut::sync::Mutex::lock");
        state.waiters.push_back(here);
        drop(state);
        loop {
            park(&WaitsFor { kind: WaitKind::Mutex, address: std::ptr::from_ref(self).addr(), holder: None });
            // Whoever unlocked has left it locked for the first waiter, and took that from the queue.
            let still_waiting = self.state().waiters.iter().any(|waiter| *waiter == here);
            if !still_waiting {
                return MutexGuard { mutex: self };
            }
        }
    }

    /// Holds it if nobody does.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let mut state = self.state();
        if state.locked {
            return None;
        }
        state.locked = true;
        Some(MutexGuard { mutex: self })
    }

    fn unlock(&self) {
        let mut state = self.state();
        let next = state.waiters.pop_front();
        state.locked = next.is_some();
        drop(state);
        if let Some(next) = next {
            next.unpark();
        }
    }

    fn state(&self) -> StdGuard<'_, State> {
        // No code of users runs under this lock, so a poisoned one is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so this thread holds the mutex.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists and is borrowed mutably: nobody else has the value.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.unlock();
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
