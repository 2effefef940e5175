//! A guard of a part of a mutex's value.

use std::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

use super::{Mutex, MutexGuard};

/// Access to a part of the value, made by [`MutexGuard::map`]. When the guard is dropped, the mutex is unlocked.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(1).build()?;
/// # runtime.run(|| {
/// use fut::sync::{Mutex, MutexGuard};
///
/// let pair = Mutex::new((1, "one"));
/// let mut number = MutexGuard::map(pair.lock(), |pair| &mut pair.0);
/// *number = 2;
/// drop(number);
/// assert_eq!(pair.lock().0, 2);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "without its guard, the mutex is unlocked at once"]
pub struct MappedMutexGuard<'a, U: ?Sized> {
    value: NonNull<U>,
    mutex: &'a dyn Unlock,
    _value: PhantomData<&'a mut U>,
}

/// A mutex whose value has any type.
trait Unlock {
    /// Called by the holder.
    fn unlock(&self);
}

impl<T> Unlock for Mutex<T> {
    fn unlock(&self) {
        Mutex::unlock(self);
    }
}

impl<'a, T> MutexGuard<'a, T> {
    /// A guard for a part of the value. If `part` panics, the mutex is unlocked.
    pub fn map<U: ?Sized>(mut guard: Self, part: impl FnOnce(&mut T) -> &mut U) -> MappedMutexGuard<'a, U> {
        let value = NonNull::from(part(&mut guard));
        let mutex = guard.mutex;
        std::mem::forget(guard);
        MappedMutexGuard { value, mutex, _value: PhantomData }
    }

    /// Like [`map`](MutexGuard::map), if there is such a part.
    ///
    /// # Errors
    /// Returns the guard if there is no such part.
    pub fn filter_map<U: ?Sized>(
        mut guard: Self,
        part: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<MappedMutexGuard<'a, U>, Self> {
        match part(&mut guard).map(NonNull::from) {
            Some(value) => {
                let mutex = guard.mutex;
                std::mem::forget(guard);
                Ok(MappedMutexGuard { value, mutex, _value: PhantomData })
            }
            None => Err(guard),
        }
    }
}

impl<U: ?Sized> Deref for MappedMutexGuard<'_, U> {
    type Target = U;

    fn deref(&self) -> &U {
        // SAFETY: this is a part of the value of the mutex, which is locked for this guard.
        unsafe { self.value.as_ref() }
    }
}

impl<U: ?Sized> DerefMut for MappedMutexGuard<'_, U> {
    fn deref_mut(&mut self) -> &mut U {
        // SAFETY: as above, and the guard is borrowed mutably: nothing else accesses the value.
        unsafe { self.value.as_mut() }
    }
}

impl<U: ?Sized> Drop for MappedMutexGuard<'_, U> {
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

impl<U: ?Sized + fmt::Debug> fmt::Debug for MappedMutexGuard<'_, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
