//! A read-write lock for user threads.

mod guard;
mod mapped;
mod owned;
mod raw;

use std::{
    fmt,
    time::{Duration, Instant},
};

pub use guard::{RwLockReadGuard, RwLockWriteGuard};
pub use mapped::{MappedRwLockReadGuard, MappedRwLockWriteGuard};
pub use owned::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard};
use raw::{Access, RawRwLock};

use super::{deadline_after, rt::checkpoint};
use crate::model_check::{UnsafeCell, const_unless_loom};

/// Many readers or one writer, like `std::sync::RwLock`.
///
/// First come, first served: a reader does not overtake a waiting writer. So a deadlock is possible if a thread that
/// holds a read guard requests a second one: it then waits for a writer that waits for its first guard. The lock is not
/// poisoned by a panic.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(2).build()?;
/// # runtime.run(|| {
/// use fut::sync::RwLock;
///
/// static ROUTES: RwLock<Vec<&str>> = RwLock::new(Vec::new());
///
/// ROUTES.write().push("/index.html");
/// let reader = fut::spawn(|| ROUTES.read().len());
/// assert_eq!(reader.join().unwrap(), 1);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct RwLock<T: ?Sized> {
    raw: RawRwLock,
    value: UnsafeCell<T>,
}

// SAFETY: like `std::sync::RwLock`: writers move the value between threads.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: as above; and readers share the value.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    const_unless_loom! {
        /// An unlocked lock.
        pub fn new(value: T) -> RwLock<T> {
            RwLock { raw: RawRwLock::new(), value: UnsafeCell::new(value) }
        }
    }

    /// Consumes the lock and returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks for reading. Waits until no writer holds the lock, and no writer that came before this thread waits for
    /// it.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        checkpoint();
        // Without a deadline it always returns `true`.
        let _locked = self.raw.lock(Access::Read, None);
        RwLockReadGuard::new(self)
    }

    /// Locks for writing. Waits until that is possible.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        checkpoint();
        let _locked = self.raw.lock(Access::Write, None);
        RwLockWriteGuard::new(self)
    }

    /// Locks for reading, if that is possible without waiting.
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.raw.try_lock(Access::Read).then(|| RwLockReadGuard::new(self))
    }

    /// Locks for writing, if the lock is not held.
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.raw.try_lock(Access::Write).then(|| RwLockWriteGuard::new(self))
    }

    /// Like [`read`](RwLock::read), but waits at most for `timeout`.
    pub fn try_read_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T>> {
        self.read_before(deadline_after(timeout))
    }

    /// Like [`read`](RwLock::read), but waits until `deadline`.
    pub fn try_read_until(&self, deadline: Instant) -> Option<RwLockReadGuard<'_, T>> {
        self.read_before(Some(deadline))
    }

    /// Like [`write`](RwLock::write), but waits at most for `timeout`.
    pub fn try_write_for(&self, timeout: Duration) -> Option<RwLockWriteGuard<'_, T>> {
        self.write_before(deadline_after(timeout))
    }

    /// Like [`write`](RwLock::write), but waits until `deadline`.
    pub fn try_write_until(&self, deadline: Instant) -> Option<RwLockWriteGuard<'_, T>> {
        self.write_before(Some(deadline))
    }

    /// The value. The exclusive access proves that the lock is not held.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: the lock is borrowed mutably, so there is no guard.
        self.value.with_mut(|value| unsafe { &mut *value })
    }

    fn read_before(&self, deadline: Option<Instant>) -> Option<RwLockReadGuard<'_, T>> {
        checkpoint();
        self.raw.lock(Access::Read, deadline).then(|| RwLockReadGuard::new(self))
    }

    fn write_before(&self, deadline: Option<Instant>) -> Option<RwLockWriteGuard<'_, T>> {
        checkpoint();
        self.raw.lock(Access::Write, deadline).then(|| RwLockWriteGuard::new(self))
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> RwLock<T> {
        RwLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_read() {
            Some(value) => f.debug_tuple("RwLock").field(&&*value).finish(),
            None => f.write_str("RwLock(<locked>)"),
        }
    }
}
