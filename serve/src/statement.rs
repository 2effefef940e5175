//! A query with the values of its parameters. Clients keep it between two calls.

use arrow::{
    array::{Array, RecordBatch},
    datatypes::DataType,
    error::ArrowError,
    util::display::{ArrayFormatter, FormatOptions},
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sigmund_sql::Parameters;
use std::collections::BTreeMap;
use tonic::Status;

/// A query, and the values of `$1`, `$name` and `?`. The first `?` is `$1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Statement {
    pub(crate) query: String,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
}

impl Statement {
    pub(crate) fn new(query: String) -> Statement {
        Statement { query, parameters: BTreeMap::new() }
    }

    /// The bytes that a client keeps.
    pub(crate) fn handle(&self) -> Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// The statement from the bytes that a client kept.
    pub(crate) fn of_handle(handle: &[u8]) -> Result<Statement, Status> {
        serde_json::from_slice(handle)
            .map_err(|error| Status::invalid_argument(format!("expected a handle of this server: {error}")))
    }

    pub(crate) fn parameters(&self) -> Parameters {
        Parameters(self.parameters.clone())
    }

    /// Takes the values of one row. The first column is for `$1`, and so on. A column with a name is also for `$name`.
    ///
    /// # Errors
    /// When there is more than one row, or a value that SQL has no literal for.
    pub(crate) fn bind(&mut self, rows: &[RecordBatch]) -> Result<(), Status> {
        let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
        if count > 1 {
            let message = format!("expected the values of one row as parameters, found {count} rows");
            return Err(Status::invalid_argument(message));
        }
        let Some(row) = rows.iter().find(|rows| rows.num_rows() == 1) else { return Ok(()) };
        let schema = row.schema();
        let values: Vec<_> =
            row.columns().iter().map(|column| text(column)).collect::<Result<_, _>>().map_err(|error| {
                Status::invalid_argument(format!(
                    "expected parameters that are numbers, booleans, texts or NULL: {error}"
                ))
            })?;
        // Drivers name the columns 0, 1, ... The position takes precedence over such a name, so it is inserted last.
        for (field, value) in schema.fields().iter().zip(&values) {
            self.parameters.insert(field.name().trim_start_matches('$').to_string(), value.clone());
        }
        for (place, value) in (1..).zip(values) {
            self.parameters.insert(format!("{place}"), value);
        }
        Ok(())
    }
}

/// The value in the form that [`Parameters`] takes. A text is quoted, so that a text of digits is no number.
fn text(column: &dyn Array) -> Result<String, ArrowError> {
    let ty = column.data_type();
    if ty.is_null() || column.is_null(0) {
        return Ok("NULL".into());
    }
    let is_literal = ty.is_primitive() || ty.is_string() || *ty == DataType::Boolean;
    if !is_literal && !matches!(ty, DataType::Dictionary(_, values) if values.is_string()) {
        return Err(ArrowError::InvalidArgumentError(format!("found {ty}")));
    }
    let options = FormatOptions::default();
    let text = ArrayFormatter::try_new(column, &options)?.value(0).try_to_string()?;
    match ty {
        DataType::Boolean => Ok(text.to_uppercase()),
        // `inf` and `NaN` do not end with a digit.
        _ if ty.is_floating() && !text.ends_with(|c: char| c.is_ascii_digit()) => {
            Err(ArrowError::InvalidArgumentError(format!("found {text}")))
        }
        _ if ty.is_numeric() => Ok(text),
        _ => Ok(format!("'{}'", text.replace('\'', "''"))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, NullArray, StringArray,
    };

    use super::*;

    #[test]
    fn a_handle_has_the_query_and_its_values() {
        let mut statement = Statement::new("SELECT $1, $2, $name".into());
        let row = RecordBatch::try_from_iter([
            ("0", Arc::new(Int64Array::from(vec![15])) as ArrayRef),
            ("1", Arc::new(StringArray::from(vec!["work/6"])) as ArrayRef),
            ("name", Arc::new(StringArray::from(vec!["main"])) as ArrayRef),
        ])
        .unwrap();
        statement.bind(&[row.slice(0, 0), row.clone()]).unwrap();
        let again = Statement::of_handle(&statement.handle()).unwrap();
        assert_eq!(again, statement);
        let values = again.parameters().0;
        let value = |name: &str| values.get(name).map(String::as_str);
        assert_eq!((value("1"), value("2"), value("name")), (Some("15"), Some("'work/6'"), Some("'main'")));
        assert!(statement.bind(&[row.clone(), row]).is_err());
        let texts = StringArray::from(vec![Some("5"), Some("it's"), None]);
        let texts = RecordBatch::try_from_iter([("0", Arc::new(texts) as ArrayRef)]).unwrap();
        for (row, value) in [(0, "'5'"), (1, "'it''s'"), (2, "NULL")] {
            statement.bind(&[texts.slice(row, 1)]).unwrap();
            assert_eq!(statement.parameters().0["1"], value);
        }
        let mut bound = |value: ArrayRef| {
            let row = RecordBatch::try_from_iter_with_nullable([("0", value, true)]).unwrap();
            statement.bind(&[row]).map(|()| statement.parameters().0["1"].clone())
        };
        assert_eq!(bound(Arc::new(NullArray::new(1))).unwrap(), "NULL");
        assert_eq!(bound(Arc::new(BooleanArray::from(vec![true]))).unwrap(), "TRUE");
        assert_eq!(bound(Arc::new(Float64Array::from(vec![-1.5e-300]))).unwrap(), "-1.5e-300");
        let refused: [(ArrayRef, &str); 2] = [
            (Arc::new(Float64Array::from(vec![f64::NAN])), "found NaN"),
            (Arc::new(BinaryArray::from_vec(vec![b"ab"])), "found Binary"),
        ];
        for (value, found) in refused {
            assert!(bound(value).unwrap_err().message().contains(found));
        }
        assert!(Statement::of_handle(b"{").is_err() && Statement::of_handle(&[0xff]).is_err());
    }
}
