//! The guards of an [`RwLock`]: shared and exclusive access to its value.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use super::{RwLock, raw::Access};

/// Read access. When the guard is dropped, the lock is released.
#[must_use = "without its guard, the lock is released at once"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    pub(super) lock: &'a RwLock<T>,
}

/// Write access. When the guard is dropped, the lock is released.
#[must_use = "without its guard, the lock is released at once"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    pub(super) lock: &'a RwLock<T>,
}

// SAFETY: a shared guard gives only `&T`. It may migrate with its user thread: nothing in it belongs to an LWP.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    /// Makes the guard for a thread that has just acquired the lock for reading.
    #[inline]
    pub(super) fn new(lock: &'a RwLock<T>) -> RwLockReadGuard<'a, T> {
        lock.raw.note_taken(Access::Read);
        RwLockReadGuard { lock }
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Makes the guard for a thread that has just acquired the lock for writing.
    #[inline]
    pub(super) fn new(lock: &'a RwLock<T>) -> RwLockWriteGuard<'a, T> {
        lock.raw.note_taken(Access::Write);
        lock.raw.note_writer();
        RwLockWriteGuard { lock }
    }

    /// Changes write access to read access. No other writer gets the lock in between.
    pub fn downgrade(guard: RwLockWriteGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        let lock = guard.lock;
        std::mem::forget(guard);
        lock.raw.downgrade();
        RwLockReadGuard::new(lock)
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so there is no writer.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so this thread holds the lock exclusively.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists and is borrowed mutably: nothing else accesses the value.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.raw.unlock_read();
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.raw.unlock_write();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
