//! What is wrong with a schema: where, what was expected, and what was found.

use std::fmt;

/// Why a text is no schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    place: String,
    line: Option<usize>,
    message: String,
}

impl Error {
    /// An error at a byte of the text.
    pub(crate) fn at(place: &str, text: &str, byte: Option<usize>, message: impl Into<String>) -> Error {
        let line = byte.map(|byte| line_at(text, byte));
        Error { place: place.into(), line, message: message.into() }
    }

    /// An error in a line of a schema, counted from 1. For other crates, which parse parts of a schema.
    pub fn in_line(place: &str, line: usize, message: impl Into<String>) -> Error {
        Error { place: place.into(), line: Some(line), message: message.into() }
    }

    /// The line, counted from 1; `None` if the error is about the whole file.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

/// The line of a byte, from 1.
pub(crate) fn line_at(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|b| *b == b'\n').count() + 1
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.message),
            None => write!(f, "{}: {}", self.place, self.message),
        }
    }
}

impl std::error::Error for Error {}
