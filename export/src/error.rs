//! Errors of the filter, the super-trace, or the output.

use std::{fmt, io};

use arrow::error::ArrowError;
use parquet::errors::ParquetError;

/// The kind of an error, for callers that match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments contradict each other.
    Argument,
    /// The filter does not apply to this trace, or the trace could not be read.
    Query(sigmund_query::ErrorKind),
    /// The output could not be written.
    Output(io::ErrorKind),
}

/// An error of this crate.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn argument(message: String) -> Error {
        Error { kind: ErrorKind::Argument, source: message.into() }
    }
}

impl From<sigmund_query::Error> for Error {
    fn from(error: sigmund_query::Error) -> Error {
        Error { kind: ErrorKind::Query(error.kind()), source: Box::new(error) }
    }
}

impl From<sigmund_sql::Error> for Error {
    fn from(error: sigmund_sql::Error) -> Error {
        sigmund_query::Error::from(error).into()
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error { kind: ErrorKind::Output(error.kind()), source: Box::new(error) }
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Error {
        match error {
            ArrowError::IoError(_, error) => error.into(),
            error => io::Error::other(error).into(),
        }
    }
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Error {
        match error {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => (*error).into(),
                Err(error) => io::Error::other(error).into(),
            },
            error => io::Error::other(error).into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ErrorKind::Output(_) = self.kind {
            f.write_str("writing the export: ")?;
        }
        self.source.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}
