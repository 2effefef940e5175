//! Permits of a semaphore, and errors of acquiring them.

use std::{error::Error, fmt, sync::Arc};

use super::Semaphore;

/// Permits. They are released when this value is dropped.
#[must_use = "a permit that is dropped is released"]
#[derive(Debug)]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: u32,
}

/// Permits that share ownership of their semaphore. They are released when this value is dropped.
#[must_use = "a permit that is dropped is released"]
#[derive(Debug)]
pub struct OwnedSemaphorePermit {
    semaphore: Arc<Semaphore>,
    permits: u32,
}

/// The semaphore is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquireError(());

/// Why no permit was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore is closed.
    Closed,
    /// Not enough permits were free at once or in time.
    NoPermits,
}

impl<'a> SemaphorePermit<'a> {
    /// Makes the permits of a thread that has just taken them.
    pub(super) fn new(semaphore: &'a Semaphore, permits: u32) -> SemaphorePermit<'a> {
        SemaphorePermit { semaphore, permits }
    }

    /// Never releases the permits.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Number of permits.
    pub fn num_permits(&self) -> usize {
        self.permits as usize
    }

    /// Takes over the permits of `other`.
    ///
    /// # Panics
    /// If they are of two semaphores, or more than [`u32::MAX`] together. The permits of `other` are released then.
    pub fn merge(&mut self, mut other: SemaphorePermit<'a>) {
        assert!(std::ptr::eq(self.semaphore, other.semaphore), "permits of two semaphores were merged");
        let together = self.permits.checked_add(other.permits);
        self.permits = together.expect("more than u32::MAX permits were merged");
        other.permits = 0;
    }

    /// Splits off `n` permits; `None` if there are fewer.
    pub fn split(&mut self, n: usize) -> Option<SemaphorePermit<'a>> {
        let n = u32::try_from(n).ok()?;
        self.permits = self.permits.checked_sub(n)?;
        Some(SemaphorePermit { semaphore: self.semaphore, permits: n })
    }
}

impl OwnedSemaphorePermit {
    /// Makes the permits of a thread that has just taken them.
    pub(super) fn new(semaphore: Arc<Semaphore>, permits: u32) -> OwnedSemaphorePermit {
        OwnedSemaphorePermit { semaphore, permits }
    }

    /// Never releases the permits.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Number of permits.
    pub fn num_permits(&self) -> usize {
        self.permits as usize
    }

    /// The semaphore of these permits.
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }
}

impl Drop for SemaphorePermit<'_> {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.semaphore.raw.give(self.permits as usize);
        }
    }
}

impl Drop for OwnedSemaphorePermit {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.semaphore.raw.give(self.permits as usize);
        }
    }
}

impl AcquireError {
    /// The error of a call without a deadline: the only reason is that the semaphore was closed.
    pub(super) fn closed(_: TryAcquireError) -> AcquireError {
        AcquireError(())
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the semaphore is closed")
    }
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryAcquireError::Closed => "the semaphore is closed",
            TryAcquireError::NoPermits => "the semaphore does not have enough permits",
        })
    }
}

impl Error for AcquireError {}
impl Error for TryAcquireError {}
