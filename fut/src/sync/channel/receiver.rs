//! The side of a channel that receives.

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

/// Receives from a channel. Clones receive from the same one: each value goes to one of them.
pub struct Receiver<T> {
    core: Arc<Core<T>>,
}

/// Waits for one value after the other, until all senders are gone.
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

/// Gives the values that are there; never waits.
#[derive(Debug)]
pub struct TryIter<'a, T>(&'a Receiver<T>);

/// As [`Iter`], with a receiver of its own.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Receiver<T> {
    /// Takes over a receiver that the core counts already.
    pub(super) fn new(core: Arc<Core<T>>) -> Receiver<T> {
        Receiver { core }
    }

    /// Waits for a value.
    ///
    /// # Errors
    /// When there is none and all senders are gone.
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to wait.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.core.recv(None, "fut::sync::channel::Receiver::recv").map_err(|_| RecvError)
    }

    /// A value, if one is there.
    ///
    /// # Errors
    /// When there is none.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.core.try_recv().map_err(|why| match why {
            NotReceived::Empty => TryRecvError::Empty,
            NotReceived::Disconnected => TryRecvError::Disconnected,
        })
    }

    /// Waits for a value, but no longer than this.
    ///
    /// # Errors
    /// When none came in time, or there is none and all senders are gone.
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to wait.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.recv_before(deadline_after(timeout), "fut::sync::channel::Receiver::recv_timeout")
    }

    /// Waits for a value, but not past `deadline`.
    ///
    /// # Errors
    /// When none came in time, or there is none and all senders are gone.
    ///
    /// # Panics
    /// Outside of a runtime, when it would have to wait.
    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_before(Some(deadline), "fut::sync::channel::Receiver::recv_deadline")
    }

    /// Waits for one value after the other, until all senders are gone.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// Gives the values that are there; never waits.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }

    /// How many values are in the channel now.
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// None is in the channel now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// It has no room now. A channel with room for none is always full.
    pub fn is_full(&self) -> bool {
        Some(self.len()) == self.capacity()
    }

    /// How many values it has room for; `None` if for any number.
    pub fn capacity(&self) -> Option<usize> {
        self.core.capacity()
    }

    /// Whether both receive from the same channel.
    pub fn same_channel(&self, other: &Receiver<T>) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    fn recv_before(&self, deadline: Option<Instant>, call: &'static str) -> Result<T, RecvTimeoutError> {
        self.core.recv(deadline, call).map_err(|why| match why {
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
