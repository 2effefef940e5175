//! Why a session could not start.

use std::{fmt, io};

use crate::{
    probe::{DeclaredTwice, SwitchError},
    shm::ArenaError,
};

/// Why this process cannot record. It continues unrecorded.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// No shared memory is available.
    Arena(ArenaError),
    /// Two different events have the same name.
    DeclaredTwice(DeclaredTwice),
    /// The library that holds the probes could be unloaded while they are recorded.
    Unloadable(io::Error),
    /// No memory that is zeroed in child processes is available (`MADV_WIPEONFORK`, Linux 4.14).
    Slots(io::Error),
    /// The probes cannot be switched on.
    Switch(SwitchError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Arena(error) => error.fmt(f),
            StartError::DeclaredTwice(error) => error.fmt(f),
            StartError::Unloadable(error) => {
                write!(f, "the library with the probes cannot be kept loaded: {error}")
            }
            StartError::Slots(error) => {
                write!(f, "cannot map memory that is zeroed in child processes (MADV_WIPEONFORK): {error}")
            }
            StartError::Switch(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl From<ArenaError> for StartError {
    fn from(error: ArenaError) -> StartError {
        StartError::Arena(error)
    }
}

impl From<DeclaredTwice> for StartError {
    fn from(error: DeclaredTwice) -> StartError {
        StartError::DeclaredTwice(error)
    }
}

impl From<SwitchError> for StartError {
    fn from(error: SwitchError) -> StartError {
        StartError::Switch(error)
    }
}

/// For callers that return an `io::Error`.
impl From<StartError> for io::Error {
    fn from(error: StartError) -> io::Error {
        io::Error::other(error)
    }
}
