//! Why an arena cannot be used.

use std::{fmt, io, path::PathBuf};

/// Why an arena cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArenaError {
    /// The memory, the file or the socket cannot be made, opened, sized or mapped.
    Io(PathBuf, io::Error),
    /// It is not an arena, or not one of ours.
    Foreign {
        /// The file.
        file: PathBuf,
        /// What should have been there.
        expected: String,
        /// What was.
        found: String,
    },
    /// The recorder cannot be reached: it has ended, or this process sees other files or is another user than the one that
    /// it has started.
    Unreachable {
        /// The recorder's socket.
        socket: PathBuf,
        /// What happened there.
        error: io::Error,
    },
    /// The recorder gave none.
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
                        write!(f, ": this process is another user than the one that was started")
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
