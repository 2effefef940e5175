//! Errors: the input, the position, what was expected and what was found.

use std::{fmt, path::Path};

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;

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
    /// The query is wrong: syntax, a name that does not exist, or a value that it cannot compute with, like the 0 of
    /// `1/0`.
    Query,
    /// The query would change something, and this session only reads.
    Refused,
    /// The query needs more memory than the session may use.
    BeyondMemory,
    /// The query failed while it ran, and not by its values.
    Execution,
}

/// An error of this crate.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    input: String,
    message: String,
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
        Error { kind, input: path.display().to_string(), message: message.into() }
    }

    /// An error for a query that requests something that does not exist, or requests it in a wrong way.
    pub fn wrong_query(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Query, input: "query".into(), message: message.into() }
    }

    /// An error for a question that needs more memory than `limit` allows; `found` was in use when it was stopped. Both
    /// are in bytes.
    pub fn beyond_memory(what: &str, limit: usize, found: usize, hint: &str) -> Error {
        let [limit, found] = [limit, found].map(|bytes| size(&format!("{bytes} B")));
        let message = format!(
            "expected a question that keeps within the memory limit of {limit} (--memory), found {found} in use \
             before its end; {hint}"
        );
        Error { kind: ErrorKind::BeyondMemory, input: what.into(), message }
    }

    /// The same with a hint at the end.
    pub(crate) fn with(mut self, hint: &str) -> Error {
        self.message.push_str(hint);
        self
    }

    pub(crate) fn unknown(message: String) -> Error {
        Error { kind: ErrorKind::Query, input: "query".into(), message }
    }

    pub(crate) fn refused(what: &str) -> Error {
        let message = format!("a super-trace is only read: expected a SELECT, found {what}");
        Error { kind: ErrorKind::Refused, input: "query".into(), message }
    }

    /// An error of DataFusion about a table or a query, as [`Query`](ErrorKind::Query) or
    /// [`Execution`](ErrorKind::Execution). If it wraps an error of this crate, that one is returned.
    pub fn from_datafusion(input: impl Into<String>, source: DataFusionError) -> Error {
        let root = source.find_root();
        if let Some(Error { kind, input, message }) = inner_error(&source) {
            return Error { kind: *kind, input: input.clone(), message: message.clone() };
        }
        let kind = match root {
            DataFusionError::SQL(..) | DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => {
                ErrorKind::Query
            }
            DataFusionError::NotImplemented(_) | DataFusionError::Execution(_) => ErrorKind::Query,
            DataFusionError::ArrowError(error, _) if is_of_a_value(error) => ErrorKind::Query,
            DataFusionError::ParquetError(error) if is_of_a_filter(error) => ErrorKind::Query,
            DataFusionError::ResourcesExhausted(_) => ErrorKind::BeyondMemory,
            _ => ErrorKind::Execution,
        };
        let message = match root {
            DataFusionError::ResourcesExhausted(what) => beyond_memory(what),
            DataFusionError::External(inner) => inner.to_string(),
            _ => in_own_words(&source.strip_backtrace()),
        };
        Error { kind, input: input.into(), message: on_one_line(&message) }
    }
}

/// The error of this crate that another error wraps.
fn inner_error(source: &DataFusionError) -> Option<&Error> {
    if let DataFusionError::External(inner) = source.find_root()
        && let Some(error) = inner.downcast_ref()
    {
        return Some(error);
    }
    let first: &(dyn std::error::Error + 'static) = source;
    let mut causes = std::iter::successors(Some(first), |error| error.source()).take(MOST_CAUSES);
    causes.find_map(|cause| cause.downcast_ref::<Error>())
}

/// The maximum number of errors around one of this crate.
const MOST_CAUSES: usize = 32;

/// Whether a query computed with a value for which there is no result.
fn is_of_a_value(error: &ArrowError) -> bool {
    matches!(
        error,
        ArrowError::DivideByZero
            | ArrowError::ArithmeticOverflow(_)
            | ArrowError::CastError(_)
            | ArrowError::ParseError(_)
            | ArrowError::ComputeError(_)
            | ArrowError::InvalidArgumentError(_)
    )
}

/// Whether a filter computed with such a value. Filters are computed while a file is read.
fn is_of_a_filter(error: &ParquetError) -> bool {
    matches!(error, ParquetError::External(inner) if inner.downcast_ref::<ArrowError>().is_some_and(is_of_a_value))
}

/// DataFusion's text without advice that users of this session cannot follow. For a failed cast, only the text about
/// the cast, without the errors around it.
fn in_own_words(text: &str) -> String {
    let of_cast = ["CastError(\"", "Cast error: "].iter().find_map(|begin| text.split_once(begin));
    if let Some((_, cast)) = of_cast {
        let cast = cast.split("\")").next().unwrap_or(cast);
        // For a cast of a number, the value is too large, so the advice does not apply.
        let is_of_text = cast.contains("string");
        let advice = "; to compare a text with a number's digits, write them in quotes, as '5'";
        return format!("{cast}{}", if is_of_text { advice } else { "" });
    }
    if text.ends_with(DIVIDED) {
        return format!("{text}; `a / nullif(b, 0)` is NULL where b is 0");
    }
    let advice = (" You can use double quotes to refer to ", "enable_ident_normalization configuration.");
    match text.split_once(advice.0) {
        Some((before, rest)) => {
            let (_, after) = rest.split_once(advice.1).unwrap_or(("", rest));
            format!("{before}{after}")
        }
        None => text.to_string(),
    }
}

/// How Arrow's error for a division by zero ends.
const DIVIDED: &str = "Divide by zero error";

/// The text on one line: line breaks and tabs, from a quoted query or from DataFusion, become spaces.
fn on_one_line(text: &str) -> String {
    let lines = text.split(['\n', '\t', '\r']).map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Shortens `Failed to allocate additional 5.5 MB for GroupedHashAggregateStream[0] with … for the total memory pool:
/// fair(pool_size: 16.0 MB)…`. The rest of that text is about settings that users do not have.
fn beyond_memory(what: &str) -> String {
    let between = |begin: &str, end: &str| Some(what.split_once(begin)?.1.split_once(end)?.0);
    let limit = between("pool_size: ", ")").map_or(String::new(), |limit| format!(" of {}", size(limit)));
    let expected = format!("expected a query that keeps within the memory limit{limit} (--memory)");
    let asked = between("additional ", " for ").zip(between(" for ", " with "));
    match asked {
        Some((more, part)) => format!("{expected}; {} needs {} more", part.trim_end(), size(more)),
        None => format!("{expected}; {what}"),
    }
}

/// Converts `16.0 MB`, by which DataFusion means 2²⁴ bytes, to the notation of `--memory`: `16MiB`.
pub(crate) fn size(text: &str) -> String {
    const UNITS: [(&str, &str); 5] = [("TB", "TiB"), ("GB", "GiB"), ("MB", "MiB"), ("KB", "KiB"), ("B", "B")];
    let found = text.split_once(' ').and_then(|(number, unit)| {
        let place = UNITS.iter().position(|(name, _)| *name == unit)?;
        Some((number.parse::<f64>().ok()?, place))
    });
    let Some((mut number, mut place)) = found else { return text.to_string() };
    while number >= 1024.0 && place > 0 {
        number /= 1024.0;
        place -= 1;
    }
    format!("{}{}", (number * 10.0).round() / 10.0, UNITS[place].1)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.input, self.message)
    }
}

/// No `source`: the text already contains everything useful about the cause.
impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_memory_has_the_limit_once_and_as_it_was_given() {
        let of = |limit: &str| {
            let what = format!(
                "Failed to allocate additional 170.2 MB for GroupedHashAggregateStream[0] (count(1)) with 0.0 B already \
                 allocated for this reservation - 1024.0 KB remain available for the total memory pool: \
                 fair(pool_size: {limit})"
            );
            let error = DataFusionError::ResourcesExhausted(what);
            let advice = "Consider increasing the memory limit config: 'datafusion.runtime.memory_limit'";
            Error::from_datafusion("query", error.context(advice)).to_string()
        };
        assert_eq!(
            of("1024.0 KB"),
            "query: expected a query that keeps within the memory limit of 1MiB (--memory); \
             GroupedHashAggregateStream[0] (count(1)) needs 170.2MiB more"
        );
        assert!(
            of("100.0 MB").contains("limit of 100MiB (") && of("1536.0 MB").contains("limit of 1.5GiB (")
        );
    }

    #[test]
    fn an_error_is_one_line_without_advice_that_cannot_be_followed() {
        let of = |text: &str| Error::from_datafusion("query", DataFusionError::Plan(text.into())).to_string();
        let text = of(
            "No field named NAME. Did you mean 'spans.name'?\nColumn names are case sensitive. You can use double \
             quotes to refer to the spans.name column or disable the datafusion.sql_parser.enable_ident_normalization \
             configuration.\nValid fields are spans.name.",
        );
        assert!(
            text.ends_with(
                "Did you mean 'spans.name'? Column names are case sensitive. Valid fields are spans.name."
            ),
            "{text}"
        );
        let text = of(
            "External: Compute error: ArrowError(CastError(\"Cannot cast string 'a' to value of Int64 type\"), Some(\"\"))",
        );
        assert!(
            text.starts_with("query: Cannot cast string 'a' to value of Int64 type; to compare"),
            "{text}"
        );
    }

    #[test]
    fn what_a_query_cannot_compute_is_an_error_of_the_query() {
        let of = |source: DataFusionError| Error::from_datafusion("query", source).kind();
        assert_eq!(of(ArrowError::DivideByZero.into()), ErrorKind::Query);
        assert_eq!(of(ArrowError::CastError("a".into()).into()), ErrorKind::Query);
        assert_eq!(of(DataFusionError::Execution("expected a width of 1 or more".into())), ErrorKind::Query);
        let of_filter = ArrowError::ComputeError("Error evaluating filter predicate: …".into());
        let of_filter = ParquetError::External(Box::new(of_filter));
        assert_eq!(of(DataFusionError::ParquetError(Box::new(of_filter))), ErrorKind::Query);
        assert_eq!(of(ArrowError::ParquetError("a page".into()).into()), ErrorKind::Execution);
        assert_eq!(of(DataFusionError::Internal("a defect".into())), ErrorKind::Execution);
        assert_eq!(of(DataFusionError::IoError(std::io::ErrorKind::NotFound.into())), ErrorKind::Execution);
    }

    #[test]
    fn an_error_in_an_error_is_that_one() {
        let inner = Error::at(ErrorKind::Unreadable, Path::new("t/spans"), "damaged");
        let error = Error::from_datafusion("query", DataFusionError::External(Box::new(inner)));
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Unreadable, "t/spans: damaged"));
    }
}
