//! Errors: of an argument, of the super-trace, or of the output.

use std::{fmt, io};

use datafusion::error::DataFusionError;
use sigmund_sql::SuperTrace;

/// The kind of an error, for callers to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A filter, selector or format cannot be parsed, or does not apply to this measure.
    Argument,
    /// A time was given in seconds, and the rate of the trace's clock is unknown.
    UnknownClockRate,
    /// The super-trace could not be read.
    Trace(sigmund_sql::ErrorKind),
    /// The answer could not be written.
    Output(io::ErrorKind),
}

/// An error of this crate.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// A question that cannot be asked: of any super-trace, or of this one.
    pub fn argument(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Argument, message: message.into(), source: None }
    }

    /// A computation in another process that failed.
    pub fn elsewhere(message: impl Into<String>) -> Error {
        let kind = ErrorKind::Trace(sigmund_sql::ErrorKind::Execution);
        Error { kind, message: message.into(), source: None }
    }

    /// Rows of an answer that could not be written to a temporary file.
    pub(crate) fn of_spill(measure: &str, error: io::Error) -> Error {
        let folder = std::env::temp_dir();
        let message = format!(
            "{measure}: expected room in {} (TMPDIR) for rows that do not fit into the memory of --memory, found none: {error}",
            folder.display()
        );
        Error { kind: ErrorKind::Output(error.kind()), message, source: Some(Box::new(error)) }
    }

    /// A task that panicked, or was cancelled.
    pub(crate) fn of_task(error: impl std::error::Error + Send + Sync + 'static) -> Error {
        let (kind, message) = (ErrorKind::Trace(sigmund_sql::ErrorKind::Query), error.to_string());
        Error { kind, message, source: Some(Box::new(error)) }
    }

    pub(crate) fn unknown_rate(trace: &SuperTrace, instant: &str) -> Error {
        let message = format!(
            "{}: the rate of its clock is not known: expected ticks, found `{instant}`",
            trace.path().display()
        );
        Error { kind: ErrorKind::UnknownClockRate, message, source: None }
    }

    /// Adds the path of the trace, for callers with several traces.
    pub(crate) fn in_trace(mut self, path: &str) -> Error {
        if !self.message.starts_with(path) {
            self.message = format!("{path}: {}", self.message);
        }
        self
    }

    /// For `map_err` on results of DataFusion for one table.
    pub(crate) fn on<'t>(trace: &'t SuperTrace, table: &'t str) -> impl Fn(DataFusionError) -> Error + 't {
        move |e| trace.error(table, e).into()
    }
}

impl From<sigmund_sql::Error> for Error {
    fn from(error: sigmund_sql::Error) -> Error {
        Error {
            kind: ErrorKind::Trace(error.kind()),
            message: error.to_string(),
            source: Some(Box::new(error)),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        let message = format!("writing the answer: {error}");
        Error { kind: ErrorKind::Output(error.kind()), message, source: Some(Box::new(error)) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e.as_ref() as _)
    }
}
