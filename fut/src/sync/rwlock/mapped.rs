//! Guards of a part of a lock's value.

use std::{
    fmt,
    marker::PhantomData,
    mem::forget,
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

use super::{RwLockReadGuard, RwLockWriteGuard, raw::RawRwLock};

/// Read access to a part of the value, made by [`RwLockReadGuard::map`]. When the guard is dropped, the lock is
/// released.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(1).build()?;
/// # runtime.run(|| {
/// use fut::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
///
/// let pair = RwLock::new((1, "one"));
/// *RwLockWriteGuard::map(pair.write(), |pair| &mut pair.0) += 1;
/// let number = RwLockReadGuard::map(pair.read(), |pair| &pair.0);
/// assert_eq!((*number, pair.read().1), (2, "one"));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The guard can be sent to another thread only if a reference to the part can:
/// ```compile_fail,E0277
/// use fut::sync::{RwLock, RwLockReadGuard};
///
/// let lock = RwLock::new(std::cell::Cell::new(1));
/// let part = RwLockReadGuard::map(lock.read(), |value| value);
/// fut::scope(|scope| scope.spawn(move || part.set(2)).join());
/// ```
#[must_use = "without its guard, the lock is released at once"]
pub struct MappedRwLockReadGuard<'a, U: ?Sized> {
    value: NonNull<U>,
    lock: &'a RawRwLock,
    _value: PhantomData<&'a U>,
}

/// Write access to a part of the value, made by [`RwLockWriteGuard::map`]. When the guard is dropped, the lock is
/// released.
#[must_use = "without its guard, the lock is released at once"]
pub struct MappedRwLockWriteGuard<'a, U: ?Sized> {
    value: NonNull<U>,
    lock: &'a RawRwLock,
    _value: PhantomData<&'a mut U>,
}

// SAFETY: the guard gives only `&U`, and any thread may release the lock.
unsafe impl<U: ?Sized + Sync> Send for MappedRwLockReadGuard<'_, U> {}
// SAFETY: as above.
unsafe impl<U: ?Sized + Sync> Sync for MappedRwLockReadGuard<'_, U> {}
// SAFETY: the guard is the only access to the `U`, and any thread may release the lock.
unsafe impl<U: ?Sized + Send> Send for MappedRwLockWriteGuard<'_, U> {}
// SAFETY: a shared guard gives only `&U`.
unsafe impl<U: ?Sized + Sync> Sync for MappedRwLockWriteGuard<'_, U> {}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    /// A guard for a part of the value. If `part` panics, the lock is released.
    pub fn map<U: ?Sized>(guard: Self, part: impl FnOnce(&T) -> &U) -> MappedRwLockReadGuard<'a, U> {
        let value = NonNull::from(part(&guard));
        RwLockReadGuard::mapped(guard, value)
    }

    /// Like [`map`](RwLockReadGuard::map), if there is such a part.
    ///
    /// # Errors
    /// Returns the guard if there is no such part.
    pub fn filter_map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<MappedRwLockReadGuard<'a, U>, Self> {
        match part(&guard).map(NonNull::from) {
            Some(value) => Ok(RwLockReadGuard::mapped(guard, value)),
            None => Err(guard),
        }
    }

    fn mapped<U: ?Sized>(guard: Self, value: NonNull<U>) -> MappedRwLockReadGuard<'a, U> {
        let lock = &guard.lock.raw;
        forget(guard);
        MappedRwLockReadGuard { value, lock, _value: PhantomData }
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// A guard for a part of the value. If `part` panics, the lock is released.
    pub fn map<U: ?Sized>(
        mut guard: Self,
        part: impl FnOnce(&mut T) -> &mut U,
    ) -> MappedRwLockWriteGuard<'a, U> {
        let value = NonNull::from(part(&mut guard));
        RwLockWriteGuard::mapped(guard, value)
    }

    /// Like [`map`](RwLockWriteGuard::map), if there is such a part.
    ///
    /// # Errors
    /// Returns the guard if there is no such part.
    pub fn filter_map<U: ?Sized>(
        mut guard: Self,
        part: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<MappedRwLockWriteGuard<'a, U>, Self> {
        match part(&mut guard).map(NonNull::from) {
            Some(value) => Ok(RwLockWriteGuard::mapped(guard, value)),
            None => Err(guard),
        }
    }

    fn mapped<U: ?Sized>(guard: Self, value: NonNull<U>) -> MappedRwLockWriteGuard<'a, U> {
        let lock = &guard.lock.raw;
        forget(guard);
        MappedRwLockWriteGuard { value, lock, _value: PhantomData }
    }
}

impl<U: ?Sized> Deref for MappedRwLockReadGuard<'_, U> {
    type Target = U;

    fn deref(&self) -> &U {
        // SAFETY: this is a part of the value of the lock, which has no writer while this guard exists.
        unsafe { self.value.as_ref() }
    }
}

impl<U: ?Sized> Deref for MappedRwLockWriteGuard<'_, U> {
    type Target = U;

    fn deref(&self) -> &U {
        // SAFETY: this is a part of the value of the lock, which is held exclusively for this guard.
        unsafe { self.value.as_ref() }
    }
}

impl<U: ?Sized> DerefMut for MappedRwLockWriteGuard<'_, U> {
    fn deref_mut(&mut self) -> &mut U {
        // SAFETY: as above, and the guard is borrowed mutably: nothing else accesses the value.
        unsafe { self.value.as_mut() }
    }
}

impl<U: ?Sized> Drop for MappedRwLockReadGuard<'_, U> {
    fn drop(&mut self) {
        self.lock.unlock_read();
    }
}

impl<U: ?Sized> Drop for MappedRwLockWriteGuard<'_, U> {
    fn drop(&mut self) {
        self.lock.unlock_write();
    }
}

impl<U: ?Sized + fmt::Debug> fmt::Debug for MappedRwLockReadGuard<'_, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<U: ?Sized + fmt::Debug> fmt::Debug for MappedRwLockWriteGuard<'_, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
