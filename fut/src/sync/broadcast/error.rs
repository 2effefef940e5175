//! Why nothing was received from a broadcast channel.

use std::{error::Error, fmt};

/// Why [`Receiver::recv`](super::Receiver::recv) returned no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// All senders were dropped, and everything was read.
    Closed,
    /// This number of values was overwritten before it was read.
    Lagged(u64),
}

/// Why no value was received without waiting, or in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is none.
    Empty,
    /// All senders were dropped, and everything was read.
    Closed,
    /// This number of values was overwritten before it was read.
    Lagged(u64),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Closed => f.write_str("receiving from a closed channel"),
            RecvError::Lagged(lost) => write!(f, "the receiver was too slow and lost {lost} values"),
        }
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryRecvError::Empty => f.write_str("receiving from an empty channel"),
            TryRecvError::Closed => RecvError::Closed.fmt(f),
            TryRecvError::Lagged(lost) => RecvError::Lagged(*lost).fmt(f),
        }
    }
}

impl Error for RecvError {}
impl Error for TryRecvError {}
