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
    /// About a byte of the text.
    pub(crate) fn at(place: &str, text: &str, byte: Option<usize>, message: impl Into<String>) -> Error {
        let before = |byte: usize| text.bytes().take(byte).filter(|b| *b == b'\n').count();
        Error { place: place.into(), line: byte.map(|byte| before(byte) + 1), message: message.into() }
    }

    /// The line, from 1; `None` if it is about the whole file.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
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
