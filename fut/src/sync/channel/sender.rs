//! The sending side of a channel.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    SendError, SendTimeoutError, TrySendError,
    core::{Core, NotSent},
};
use crate::sync::deadline_after;

/// Sends to a channel. Clones send to the same channel.
pub struct Sender<T> {
    core: Arc<Core<T>>,
}

impl<T> Sender<T> {
    /// Makes a sender that the core has already counted.
    pub(super) fn new(core: Arc<Core<T>>) -> Sender<T> {
        Sender { core }
    }

    pub(super) fn core(&self) -> &Core<T> {
        &self.core
    }

    /// Sends a value. Waits until there is room.
    ///
    /// # Errors
    /// Returns the value if all receivers were dropped.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.core.send(value, None).map_err(|(_, value)| SendError(value))
    }

    /// Sends a value, if there is room.
    ///
    /// # Errors
    /// Returns the value if there is no room, or all receivers were dropped.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.core.try_send(value).map_err(|(why, value)| match why {
            NotSent::Full => TrySendError::Full(value),
            NotSent::Disconnected => TrySendError::Disconnected(value),
        })
    }

    /// Sends a value. Waits for room, at most for `timeout`.
    ///
    /// # Errors
    /// Returns the value if there was no room in time, or all receivers were dropped.
    pub fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.send_before(value, deadline_after(timeout))
    }

    /// Sends a value. Waits for room, at most until `deadline`.
    ///
    /// # Errors
    /// Returns the value if there was no room in time, or all receivers were dropped.
    pub fn send_deadline(&self, value: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.send_before(value, Some(deadline))
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

    /// Whether both send to the same channel.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    fn send_before(&self, value: T, deadline: Option<Instant>) -> Result<(), SendTimeoutError<T>> {
        self.core.send(value, deadline).map_err(|(why, value)| match why {
            NotSent::Full => SendTimeoutError::Timeout(value),
            NotSent::Disconnected => SendTimeoutError::Disconnected(value),
        })
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.core.add_sender();
        Sender { core: Arc::clone(&self.core) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.core.remove_sender();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender { .. }")
    }
}
