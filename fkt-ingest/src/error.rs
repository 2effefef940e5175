//! Errors: which input, where in it, what was expected and what was found.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why an input could not be used, or a recording could not be made.
///
/// Its text is `trace.dat: at byte 4096 (options section): expected 16 bytes, found 4`.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    input: PathBuf,
    position: Option<ErrorPosition>,
    source: Option<io::Error>,
}

/// The position in an input where it violates its format.
#[derive(Debug)]
enum ErrorPosition {
    Bytes(ParseError),
    /// In a text, by line number.
    Line {
        number: u64,
        expected: String,
        found: String,
    },
}

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused an operation.
    Io,
    /// The input has another format.
    NotThisFormat,
    /// The input has the right format, in a variant that is not supported.
    Unsupported,
    /// The input contradicts its own format, or ends within its header.
    Damaged,
}

/// A place where the bytes violate the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    /// Byte in the file; for compressed data, the start of the compressed part.
    pub(crate) at: u64,
    /// What was being read.
    pub(crate) part: &'static str,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {} ({}): expected {}, found {}", self.at, self.part, self.expected, self.found)
    }
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file, or the kernel's control file, that the error concerns.
    pub fn input(&self) -> &Path {
        &self.0.input
    }

    /// The byte in the file, if there is one.
    pub fn offset(&self) -> Option<u64> {
        match &self.0.position {
            Some(ErrorPosition::Bytes(parse_error)) => Some(parse_error.at),
            Some(ErrorPosition::Line { .. }) | None => None,
        }
    }

    pub(crate) fn io(input: &Path, source: io::Error) -> Error {
        Error(Box::new(Inner {
            kind: ErrorKind::Io,
            input: input.to_owned(),
            position: None,
            source: Some(source),
        }))
    }

    pub(crate) fn at(kind: ErrorKind, input: &Path, position: ParseError) -> Error {
        Error(Box::new(Inner {
            kind,
            input: input.to_owned(),
            position: Some(ErrorPosition::Bytes(position)),
            source: None,
        }))
    }

    /// An error in a text, where people look for a line number.
    pub(crate) fn in_line(input: &Path, number: u64, expected: String, found: String) -> Error {
        let position = Some(ErrorPosition::Line { number, expected, found });
        Error(Box::new(Inner { kind: ErrorKind::Damaged, input: input.to_owned(), position, source: None }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.0.input.display())?;
        match (&self.0.position, &self.0.source) {
            (Some(ErrorPosition::Bytes(parse_error)), _) => parse_error.fmt(f),
            (Some(ErrorPosition::Line { number, expected, found }), _) => {
                write!(f, "line {number}: expected {expected}, found {found}")
            }
            (None, Some(source)) => source.fmt(f),
            (None, None) => f.write_str("unknown error"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|s| s as _)
    }
}
