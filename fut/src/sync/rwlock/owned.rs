//! Guards that share the ownership of their lock.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use super::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Read access, like a [`RwLockReadGuard`], from a lock in an [`Arc`].
#[must_use = "without its guard, the lock is released at once"]
pub struct OwnedRwLockReadGuard<T: ?Sized> {
    lock: Arc<RwLock<T>>,
}

/// Write access, like a [`RwLockWriteGuard`], from a lock in an [`Arc`].
#[must_use = "without its guard, the lock is released at once"]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    lock: Arc<RwLock<T>>,
}

impl<T: ?Sized> RwLock<T> {
    /// Like [`read`](RwLock::read). The guard keeps the lock alive.
    ///
    /// ```
    /// # let runtime = fut::Runtime::builder().lwps(1).build()?;
    /// # runtime.run(|| {
    /// use std::sync::Arc;
    ///
    /// use fut::sync::RwLock;
    ///
    /// let lock = Arc::new(RwLock::new(1));
    /// *Arc::clone(&lock).write_owned() += 1;
    /// let guard = Arc::clone(&lock).read_owned();
    /// assert_eq!(fut::spawn(move || *guard).join().unwrap(), 2);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_owned(self: Arc<Self>) -> OwnedRwLockReadGuard<T> {
        std::mem::forget::<RwLockReadGuard<'_, T>>(self.read());
        OwnedRwLockReadGuard { lock: self }
    }

    /// Like [`write`](RwLock::write). The guard keeps the lock alive.
    pub fn write_owned(self: Arc<Self>) -> OwnedRwLockWriteGuard<T> {
        std::mem::forget::<RwLockWriteGuard<'_, T>>(self.write());
        OwnedRwLockWriteGuard { lock: self }
    }

    /// Like [`try_read`](RwLock::try_read). The guard keeps the lock alive.
    pub fn try_read_owned(self: Arc<Self>) -> Option<OwnedRwLockReadGuard<T>> {
        std::mem::forget(self.try_read()?);
        Some(OwnedRwLockReadGuard { lock: self })
    }

    /// Like [`try_write`](RwLock::try_write). The guard keeps the lock alive.
    pub fn try_write_owned(self: Arc<Self>) -> Option<OwnedRwLockWriteGuard<T>> {
        std::mem::forget(self.try_write()?);
        Some(OwnedRwLockWriteGuard { lock: self })
    }
}

impl<T: ?Sized> Deref for OwnedRwLockReadGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so there is no writer.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> Deref for OwnedRwLockWriteGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so the lock is held exclusively for its owner.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for OwnedRwLockWriteGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists and is borrowed mutably: nothing else accesses the value.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized> Drop for OwnedRwLockReadGuard<T> {
    fn drop(&mut self) {
        self.lock.raw.unlock_read();
    }
}

impl<T: ?Sized> Drop for OwnedRwLockWriteGuard<T> {
    fn drop(&mut self) {
        self.lock.raw.unlock_write();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedRwLockReadGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedRwLockWriteGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
