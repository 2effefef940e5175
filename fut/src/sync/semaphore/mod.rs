//! Counted permits, for user threads.

mod permit;
mod raw;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

pub use permit::{AcquireError, OwnedSemaphorePermit, SemaphorePermit, TryAcquireError};

use raw::RawSemaphore;

use super::{deadline_after, rt::checkpoint};
use crate::model_check::const_unless_loom;

/// A number of permits that user threads acquire and release, like `tokio::sync::Semaphore`.
///
/// First come, first served: a request for many permits is not overtaken by requests for few.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(2).build()?;
/// # runtime.run(|| {
/// use fut::sync::Semaphore;
///
/// static AT_ONCE: Semaphore = Semaphore::new(2);
///
/// let requests: Vec<_> = (0..10)
///     .map(|n| {
///         fut::spawn(move || {
///             let _permit = AT_ONCE.acquire().expect("it is never closed");
///             n // two at a time come here
///         })
///     })
///     .collect();
/// let sum: u32 = requests.into_iter().map(|request| request.join().unwrap()).sum();
/// assert_eq!((sum, AT_ONCE.available_permits()), (45, 2));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Semaphore {
    raw: RawSemaphore,
}

impl Semaphore {
    /// Maximum number of permits.
    pub const MAX_PERMITS: usize = raw::MAX_PERMITS;

    const_unless_loom! {
        /// A semaphore with `permits` free permits.
        ///
        /// # Panics
        /// If there are more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
        pub fn new(permits: usize) -> Semaphore {
            assert!(permits <= Semaphore::MAX_PERMITS, "more permits than Semaphore::MAX_PERMITS");
            Semaphore { raw: RawSemaphore::new(permits) }
        }
    }

    /// Number of free permits.
    pub fn available_permits(&self) -> usize {
        self.raw.available()
    }

    /// Waits for a permit. The permit is released when it is dropped.
    ///
    /// # Errors
    /// If the semaphore was closed, before or during the wait.
    pub fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.acquire_before(1, None).map_err(AcquireError::closed)
    }

    /// Waits for `n` permits at once.
    ///
    /// # Errors
    /// If the semaphore was closed, before or during the wait.
    pub fn acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.acquire_before(n, None).map_err(AcquireError::closed)
    }

    /// Takes a permit if one is free.
    ///
    /// # Errors
    /// If none is free, or the semaphore was closed.
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits if they are free.
    ///
    /// # Errors
    /// If not that many are free, or the semaphore was closed.
    pub fn try_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.raw.take(n as usize)?;
        Ok(SemaphorePermit::new(self, n))
    }

    /// Waits for a permit, at most for `timeout`.
    ///
    /// # Errors
    /// `NoPermits` at the time limit; `Closed` if the semaphore was closed, before or during the wait.
    pub fn try_acquire_for(&self, timeout: Duration) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.acquire_before(1, deadline_after(timeout))
    }

    /// Waits for a permit until `deadline`.
    ///
    /// # Errors
    /// Like [`try_acquire_for`](Semaphore::try_acquire_for).
    pub fn try_acquire_until(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.acquire_before(1, Some(deadline))
    }

    /// Waits for `n` permits at once, at most for `timeout`.
    ///
    /// # Errors
    /// Like [`try_acquire_for`](Semaphore::try_acquire_for).
    pub fn try_acquire_many_for(
        &self,
        n: u32,
        timeout: Duration,
    ) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.acquire_before(n, deadline_after(timeout))
    }

    /// Like [`acquire`](Semaphore::acquire). The permit shares ownership of the semaphore, so it has no lifetime.
    ///
    /// # Errors
    /// If the semaphore was closed, before or during the wait.
    pub fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.acquire_many_owned(1)
    }

    /// Like [`acquire_many`](Semaphore::acquire_many), with permits that share ownership of the semaphore.
    ///
    /// # Errors
    /// If the semaphore was closed, before or during the wait.
    pub fn acquire_many_owned(self: Arc<Self>, n: u32) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.acquire_before(n, None).map_err(AcquireError::closed)?.forget();
        Ok(OwnedSemaphorePermit::new(self, n))
    }

    /// Like [`try_acquire`](Semaphore::try_acquire), with a permit that shares ownership of the semaphore.
    ///
    /// # Errors
    /// If none is free, or the semaphore was closed.
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// Like [`try_acquire_many`](Semaphore::try_acquire_many), with permits that share ownership of the semaphore.
    ///
    /// # Errors
    /// If not that many are free, or the semaphore was closed.
    pub fn try_acquire_many_owned(self: Arc<Self>, n: u32) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.raw.take(n as usize)?;
        Ok(OwnedSemaphorePermit::new(self, n))
    }

    /// Adds permits. Waiters get them first.
    ///
    /// # Panics
    /// If there would be more than [`MAX_PERMITS`](Semaphore::MAX_PERMITS).
    pub fn add_permits(&self, n: usize) {
        let room = Semaphore::MAX_PERMITS - self.available_permits();
        assert!(n <= room, "more permits than Semaphore::MAX_PERMITS");
        self.raw.give(n);
    }

    /// Removes up to `n` free permits permanently. Returns how many were removed.
    pub fn forget_permits(&self, n: usize) -> usize {
        self.raw.take_up_to(n)
    }

    /// Closes the semaphore: all waiting and later requests fail.
    pub fn close(&self) {
        self.raw.close();
    }

    /// Whether the semaphore was closed.
    pub fn is_closed(&self) -> bool {
        self.raw.is_closed()
    }

    fn acquire_before(
        &self,
        n: u32,
        deadline: Option<Instant>,
    ) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        checkpoint();
        self.raw.acquire(n as usize, deadline)?;
        Ok(SemaphorePermit::new(self, n))
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("permits", &self.available_permits())
            .field("closed", &self.is_closed())
            .finish()
    }
}
