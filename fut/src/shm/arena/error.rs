//! Why an arena cannot be used.

use std::{fmt, io, path::PathBuf};

/// Why an arena cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArenaError {
    /// The memory, the file or the socket cannot be created, opened, sized or mapped.
    Io(PathBuf, io::Error),
    /// The memory is not an arena, or not one of this version.
    Foreign {
        /// The file.
        file: PathBuf,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The recorder cannot be reached. It has ended, or this process has another root directory or user than the
    /// process that the recorder started.
    Unreachable {
        /// The recorder's socket.
        socket: PathBuf,
        /// The error of the connection.
        error: io::Error,
    },
    /// The recorder refused.
    Refused {
        /// The recorder's socket.
        socket: PathBuf,
        /// The recorder's reason.
        why: String,
    },
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArenaError::Io(file, error) => write!(f, "{}: {error}", file.display()),
            ArenaError::Foreign { file, expected, found } => {
                write!(f, "{}: expected {expected}, found {found}", file.display())
            }
            ArenaError::Unreachable { socket, error } => {
                write!(f, "its recorder cannot be reached: {}: {error}", socket.display())?;
                match error.kind() {
                    io::ErrorKind::NotFound => {
                        write!(f, ": it has ended, or this process has another root or /dev/shm than it had")
                    }
                    io::ErrorKind::PermissionDenied => {
                        write!(f, ": this process has another user than the one that the recorder started")
                    }
                    _ => Ok(()),
                }
            }
            ArenaError::Refused { socket, why } => {
                write!(f, "{}: the recorder refused: {}", socket.display(), why.escape_debug())
            }
        }
    }
}

impl std::error::Error for ArenaError {}
