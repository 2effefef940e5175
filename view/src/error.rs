//! Errors: of the super-trace, of a question, or of the index.

use std::{fmt, io, path::Path};

/// The reason why a view cannot be opened.
#[derive(Debug)]
pub struct Error(Cause);

#[derive(Debug)]
enum Cause {
    Trace(sigmund_sql::Error),
    Other(String),
}

impl Error {
    pub(crate) fn index(path: Option<&Path>, error: &io::Error) -> Error {
        let place = path.map_or("a temporary file".to_string(), |path| path.display().to_string());
        Error(Cause::Other(format!("the index in {place}: {error}")))
    }

    pub(crate) fn defect(what: String) -> Error {
        Error(Cause::Other(format!("the new index: {what}: this is a defect of sigmund")))
    }
}

impl From<sigmund_sql::Error> for Error {
    fn from(error: sigmund_sql::Error) -> Error {
        Error(Cause::Trace(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Trace(error) => error.fmt(f),
            Cause::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Cause::Trace(error) => std::error::Error::source(error),
            Cause::Other(_) => None,
        }
    }
}
