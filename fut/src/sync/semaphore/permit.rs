//! What a semaphore gives, and why it does not.

use std::{error::Error, fmt, sync::Arc};

use super::Semaphore;

/// Permits, given back when this is dropped.
#[must_use = "a permit that is dropped is given back"]
#[derive(Debug)]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: u32,
}

/// Permits that keep their semaphore alive, given back when this is dropped.
#[must_use = "a permit that is dropped is given back"]
#[derive(Debug)]
pub struct OwnedSemaphorePermit {
    semaphore: Arc<Semaphore>,
    permits: u32,
}

/// The semaphore is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquireError(());

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore is closed.
    Closed,
    /// Not enough are free, or were in time.
    NoPermits,
}

impl<'a> SemaphorePermit<'a> {
    /// For a thread that has just taken them.
    pub(super) fn new(semaphore: &'a Semaphore, permits: u32) -> SemaphorePermit<'a> {
        SemaphorePermit { semaphore, permits }
    }

    /// Never gives them back.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// How many these are.
    pub fn num_permits(&self) -> usize {
        self.permits as usize
    }

    /// Takes the permits of another over.
    ///
    /// # Panics
    /// If they are of two semaphores, or more than [`u32::MAX`] together; the permits of the other are given back then.
    pub fn merge(&mut self, mut other: SemaphorePermit<'a>) {
        assert!(std::ptr::eq(self.semaphore, other.semaphore), "permits of two semaphores were merged");
        let together = self.permits.checked_add(other.permits);
        self.permits = together.expect("permits of more than u32::MAX were merged");
        other.permits = 0;
    }

    /// Splits that many off; `None` if these are fewer.
    pub fn split(&mut self, n: usize) -> Option<SemaphorePermit<'a>> {
        let n = u32::try_from(n).ok()?;
        self.permits = self.permits.checked_sub(n)?;
        Some(SemaphorePermit { semaphore: self.semaphore, permits: n })
    }
}

impl OwnedSemaphorePermit {
    /// For a thread that has just taken them.
    pub(super) fn new(semaphore: Arc<Semaphore>, permits: u32) -> OwnedSemaphorePermit {
        OwnedSemaphorePermit { semaphore, permits }
    }

    /// Never gives them back.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// How many these are.
    pub fn num_permits(&self) -> usize {
        self.permits as usize
    }

    /// The semaphore they are of.
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
    /// Why a call without a deadline failed: there is one reason only.
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
            TryAcquireError::NoPermits => "the semaphore has not enough permits",
        })
    }
}

impl Error for AcquireError {}
impl Error for TryAcquireError {}
