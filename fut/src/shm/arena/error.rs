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
            ArenaError::Refused { socket, why } => {
                write!(f, "{}: the recorder refused: {}", socket.display(), why.escape_debug())
            }
        }
    }
}

impl std::error::Error for ArenaError {}
