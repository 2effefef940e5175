//! Checks the files of a super-trace before any query runs, so that errors name the file.
//!
//! Only footers are read: a damaged page is found when a query reads it.

use std::{
    fmt::Display,
    fs::{self, File},
    path::{Path, PathBuf},
};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Schema},
};
use datafusion::parquet::arrow::{
    ProjectionMask,
    arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
};
use sigmund_files::open_regular;
use sigmund_model::tables::Table;

use crate::{Error, ErrorKind};

/// Rows of a batch: names of many threads are looked up in few batches.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Checks that the path is a directory.
pub(crate) fn check_directory(path: &Path) -> Result<(), Error> {
    let found = match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => return Ok(()),
        Ok(_) => "a file".to_string(),
        Err(error) => error.to_string(),
    };
    let message = format!("not a super-trace: expected a directory NAME.supertrace, found {found}");
    Err(Error::at(ErrorKind::NotASuperTrace, path, message))
}

/// Checks that each file of a table is readable and has the columns of the model. Returns the number of rows.
pub(crate) fn check_table(super_trace: &Path, table: &Table) -> Result<u64, Error> {
    let mut rows = 0;
    for path in parts(super_trace, table)? {
        let (_, metadata) = open(&path)?;
        check_columns(&path, metadata.schema(), table)?;
        rows += u64::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or_default();
    }
    Ok(rows)
}

/// The Parquet files of one table, in the order of their names, which is the order of time.
fn parts(super_trace: &Path, table: &Table) -> Result<Vec<PathBuf>, Error> {
    let folder = super_trace.join(table.name);
    let missing = |found: String| {
        let message =
            format!("the table `{}` is missing: expected part-00000.parquet, ..., found {found}", table.name);
        Error::at(ErrorKind::MissingTable, &folder, message)
    };
    let entries = fs::read_dir(&folder).map_err(|e| missing(e.to_string()))?;
    let mut parts = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| missing(e.to_string()))?.path();
        if path.extension().is_some_and(|e| e == "parquet") {
            parts.push(path);
        }
    }
    if parts.is_empty() {
        return Err(missing("no Parquet file".into()));
    }
    parts.sort();
    Ok(parts)
}

/// The columns of a table, in the order of its files.
pub(crate) fn read_columns(
    super_trace: &Path,
    table: &Table,
    columns: &[&str],
) -> Result<Vec<RecordBatch>, Error> {
    let mut batches = Vec::new();
    for path in parts(super_trace, table)? {
        let (file, metadata) = open(&path)?;
        check_columns(&path, metadata.schema(), table)?;
        let columns = ProjectionMask::columns(metadata.parquet_schema(), columns.iter().copied());
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
        let reader = reader.with_projection(columns).with_batch_size(ROWS_AT_ONCE).build();
        let reader = reader.map_err(|error| unreadable(&path, &error))?;
        for batch in reader {
            batches.push(batch.map_err(|error| unreadable(&path, &error))?);
        }
    }
    Ok(batches)
}

/// Opens a Parquet file and reads its footer.
fn open(path: &Path) -> Result<(File, ArrowReaderMetadata), Error> {
    let file = open_regular(path).map_err(|error| unreadable(path, &error))?;
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
    Ok((file, metadata.map_err(|error| unreadable(path, &error))?))
}

fn unreadable(path: &Path, error: &dyn Display) -> Error {
    Error::at(ErrorKind::Unreadable, path, format!("expected a whole Parquet file, found: {error}"))
}

fn check_columns(path: &Path, schema: &Schema, table: &Table) -> Result<(), Error> {
    for column in table.columns {
        let expected = column.ty.data_type();
        let found = match schema.field_with_name(column.name) {
            Ok(field) if same_values(field.data_type(), &expected) => continue,
            Ok(field) => field.data_type().to_string(),
            Err(_) => "no such column".to_string(),
        };
        let message = format!("column `{}`: expected {expected}, found {found}", column.name);
        return Err(Error::at(ErrorKind::Schema, path, message));
    }
    Ok(())
}

/// Whether both types hold the same values: another writer may have replaced a dictionary by texts, or Utf8 by LargeUtf8.
fn same_values(found: &DataType, expected: &DataType) -> bool {
    let is_text = |t: &DataType| match t {
        DataType::Dictionary(_, values) => {
            matches!(**values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }
        _ => matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    };
    match (found, expected) {
        (DataType::List(a) | DataType::LargeList(a), DataType::List(b)) => {
            same_values(a.data_type(), b.data_type())
        }
        _ => found == expected || (is_text(found) && is_text(expected)),
    }
}
