//! The formats of a listing.

use std::str::FromStr;

use crate::Error;

/// How a listing is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Columns of fixed width, for people.
    #[default]
    Human,
    /// Tab separated, with a header; `sigmund merge` reads it back.
    Tsv,
    /// Comma separated, with a header (RFC 4180).
    Csv,
    /// One JSON array of objects.
    Json,
    /// One JSON object per line.
    Ndjson,
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Format, Error> {
        Ok(match text {
            "human" | "table" => Format::Human,
            "tsv" => Format::Tsv,
            "csv" => Format::Csv,
            "json" => Format::Json,
            "ndjson" => Format::Ndjson,
            _ => {
                let message = format!("format: expected human, tsv, csv, json or ndjson, found `{text}`");
                return Err(Error::argument(message));
            }
        })
    }
}
