//! The receiving side of a channel.

use std::{
    fmt,
    iter::FusedIterator,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    RecvError, RecvTimeoutError, TryRecvError,
    core::{Core, NotReceived},
};
use crate::sync::deadline_after;

/// Receives from a channel. Clones receive from the same channel: each value goes to one of them.
pub struct Receiver<T> {
    core: Arc<Core<T>>,
}

/// Iterates over received values, waiting for each, until all senders were dropped.
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

/// Iterates over the available values without waiting.
#[derive(Debug)]
pub struct TryIter<'a, T>(&'a Receiver<T>);

/// Like [`Iter`], but owns the receiver.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Receiver<T> {
    /// Makes a receiver that the core has already counted.
    pub(super) fn new(core: Arc<Core<T>>) -> Receiver<T> {
        Receiver { core }
    }

    pub(super) fn core(&self) -> &Core<T> {
        &self.core
    }

    /// Waits for a value.
    ///
    /// # Errors
    /// If there is no value and all senders were dropped.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.core.recv(None).map_err(|_| RecvError)
    }

    /// Receives a value if one is available.
    ///
    /// # Errors
    /// If there is no value.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.core.try_recv().map_err(|why| match why {
            NotReceived::Empty => TryRecvError::Empty,
            NotReceived::Disconnected => TryRecvError::Disconnected,
        })
    }

    /// Waits for a value, at most for `timeout`.
    ///
    /// # Errors
    /// If no value arrived in time, or there is none and all senders were dropped.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.recv_before(deadline_after(timeout))
    }

    /// Waits for a value until `deadline`.
    ///
    /// # Errors
    /// If no value arrived in time, or there is none and all senders were dropped.
    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_before(Some(deadline))
    }

    /// Iterates over received values, waiting for each, until all senders were dropped.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// Iterates over the available values without waiting.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }

    /// Number of values in the channel.
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Whether the channel is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the channel has no room. With capacity 0 it is always full.
    pub fn is_full(&self) -> bool {
        Some(self.len()) == self.capacity()
    }

    /// The capacity; `None` if unbounded.
    pub fn capacity(&self) -> Option<usize> {
        self.core.capacity()
    }

    /// Whether both receive from the same channel.
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    fn recv_before(&self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        self.core.recv(deadline).map_err(|why| match why {
            NotReceived::Empty => RecvTimeoutError::Timeout,
            NotReceived::Disconnected => RecvTimeoutError::Disconnected,
        })
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        self.core.add_receiver();
        Receiver { core: Arc::clone(&self.core) }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.core.remove_receiver();
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiver { .. }")
    }
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> FusedIterator for Iter<'_, T> {}
impl<T> FusedIterator for IntoIter<T> {}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}
