//! A guard that shares the ownership of its mutex.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use super::{Mutex, checkpoint};

/// Access to the value, like a [`MutexGuard`](super::MutexGuard), from a mutex in an [`Arc`]. It has no lifetime, so a
/// struct or another user thread may keep it.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(1).build()?;
/// # runtime.run(|| {
/// use std::sync::Arc;
///
/// use fut::sync::Mutex;
///
/// let total = Arc::new(Mutex::new(1));
/// let guard = Arc::clone(&total).lock_owned();
/// let adds = fut::spawn(move || {
///     let mut guard = guard;
///     *guard += 1;
/// });
/// assert_eq!(*total.lock(), 2);
/// # adds.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "without its guard, the mutex is unlocked at once"]
pub struct OwnedMutexGuard<T: ?Sized> {
    mutex: Arc<Mutex<T>>,
}

// SAFETY: a shared guard gives only `&T`, and its `Arc` is not accessible.
unsafe impl<T: ?Sized + Sync + Send> Sync for OwnedMutexGuard<T> {}

impl<T: ?Sized> Mutex<T> {
    /// Like [`lock`](Mutex::lock). The guard keeps the mutex alive.
    pub fn lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        checkpoint();
        std::mem::forget(self.lock_for(&|| {}));
        OwnedMutexGuard { mutex: self }
    }

    /// Like [`try_lock`](Mutex::try_lock). The guard keeps the mutex alive.
    pub fn try_lock_owned(self: Arc<Self>) -> Option<OwnedMutexGuard<T>> {
        std::mem::forget(self.try_lock()?);
        Some(OwnedMutexGuard { mutex: self })
    }
}

impl<T: ?Sized> Deref for OwnedMutexGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so the mutex is locked for its owner.
        self.mutex.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for OwnedMutexGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists and is borrowed mutably: nothing else accesses the value.
        self.mutex.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized> Drop for OwnedMutexGuard<T> {
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedMutexGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
