//! Errors: the input, the position, what was expected and what was found.

use std::{fmt, path::Path};

use datafusion::error::DataFusionError;

/// The kind of an error, for callers that handle some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The path is not a super-trace: not there, or not a directory.
    NotASuperTrace,
    /// A table of the model is not there.
    MissingTable,
    /// A file is there and cannot be read as Parquet.
    Unreadable,
    /// The super-trace has another schema version than this program.
    SchemaVersion,
    /// A table does not have the columns or values of its schema version.
    Schema,
    /// The query is wrong: syntax, or a name that does not exist.
    Query,
    /// The query would change something, and this session only reads.
    Refused,
    /// The query needs more memory than the session may use.
    BeyondMemory,
    /// The query failed while it ran.
    Execution,
}

/// An error of this crate.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    input: String,
    message: String,
    source: Option<Box<DataFusionError>>,
}

impl Error {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The file, directory or query that it is about.
    pub fn input(&self) -> &str {
        &self.input
    }

    pub(crate) fn at(kind: ErrorKind, path: &Path, message: impl Into<String>) -> Error {
        Error { kind, input: path.display().to_string(), message: message.into(), source: None }
    }

    pub(crate) fn unknown(message: String) -> Error {
        Error { kind: ErrorKind::Query, input: "query".into(), message, source: None }
    }

    pub(crate) fn refused(what: &str) -> Error {
        let message = format!("a super-trace is only read: expected a SELECT, found {what}");
        Error { kind: ErrorKind::Refused, input: "query".into(), message, source: None }
    }

    /// An error of DataFusion about a table or a query, as [`Query`](ErrorKind::Query) or [`Execution`](ErrorKind::Execution).
    pub fn from_datafusion(input: impl Into<String>, source: DataFusionError) -> Error {
        let kind = match source.find_root() {
            DataFusionError::SQL(..) | DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => {
                ErrorKind::Query
            }
            DataFusionError::NotImplemented(_) => ErrorKind::Query,
            DataFusionError::ResourcesExhausted(_) => ErrorKind::BeyondMemory,
            _ => ErrorKind::Execution,
        };
        let message = match source.find_root() {
            DataFusionError::ResourcesExhausted(what) => beyond_memory(what),
            _ => source.strip_backtrace(),
        };
        Error { kind, input: input.into(), message, source: Some(Box::new(source)) }
    }
}

/// Shortens `Failed to allocate … - 5.5 MB remain available for the total memory pool: fair(pool_size: 16.0 MB)…`, which
/// goes on about settings that users do not have.
fn beyond_memory(what: &str) -> String {
    let limit = what.split_once("pool_size: ").and_then(|(_, rest)| Some(rest.split_once(')')?.0));
    let limit = limit.map_or(String::new(), |limit| format!(" of {limit}"));
    let what = what.split(" for the total memory pool").next().unwrap_or(what);
    format!("expected a query that keeps within the memory limit{limit} (--memory); {what}")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.input, self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
