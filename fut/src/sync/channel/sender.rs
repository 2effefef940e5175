//! The side of a channel that sends.

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

/// Sends to a channel. Clones send to the same one.
pub struct Sender<T> {
    core: Arc<Core<T>>,
}

impl<T> Sender<T> {
    /// Takes over a sender that the core counts already.
    pub(super) fn new(core: Arc<Core<T>>) -> Sender<T> {
        Sender { core }
    }

    /// Sends a value; waits for room.
    ///
    /// # Errors
    /// The value, when all receivers are gone.
    ///
    /// # Panics
    /// Outside of a runtime, when there is no room.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.core.send(value, None, "fut::sync::channel::Sender::send").map_err(|(_, value)| SendError(value))
    }

    /// Sends a value, if there is room.
    ///
    /// # Errors
    /// The value, when there is none, or all receivers are gone.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.core.try_send(value).map_err(|(why, value)| match why {
            NotSent::Full => TrySendError::Full(value),
            NotSent::Disconnected => TrySendError::Disconnected(value),
        })
    }

    /// Sends a value; waits for room, but no longer than this.
    ///
    /// # Errors
    /// The value, when there was no room in time, or all receivers are gone.
    ///
    /// # Panics
    /// Outside of a runtime, when there is no room.
    pub fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.send_before(value, deadline_after(timeout), "fut::sync::channel::Sender::send_timeout")
    }

    /// Sends a value; waits for room, but not past `deadline`.
    ///
    /// # Errors
    /// The value, when there was no room in time, or all receivers are gone.
    ///
    /// # Panics
    /// Outside of a runtime, when there is no room.
    pub fn send_deadline(&self, value: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.send_before(value, Some(deadline), "fut::sync::channel::Sender::send_deadline")
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

    /// Whether both send to the same channel.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    fn send_before(
        &self,
        value: T,
        deadline: Option<Instant>,
        call: &'static str,
    ) -> Result<(), SendTimeoutError<T>> {
        self.core.send(value, deadline, call).map_err(|(why, value)| match why {
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
