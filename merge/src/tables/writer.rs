//! One table: rows in, a Parquet file out.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::{
    array::{
        ArrayRef, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, ListBuilder, RecordBatch,
        StringBuilder, StringDictionaryBuilder,
    },
    datatypes::{Int32Type, SchemaRef},
};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, Encoding, ZstdLevel},
    file::properties::WriterProperties,
    schema::types::ColumnPath,
};
use sigmund_model::tables::{ColumnType, Table};

use crate::error::Error;

/// Rows that are gathered before they go to the Parquet writer.
const BATCH_ROWS: usize = 16 << 10;
/// Rows of a row group: what a reader can skip by its statistics.
const ROW_GROUP_ROWS: usize = 512 << 10;

/// Writes one table.
pub(crate) struct TableWriter {
    path: PathBuf,
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    parquet: ArrowWriter<File>,
}

enum Column {
    Int64(Int64Builder),
    Int32(Int32Builder),
    Float64(Float64Builder),
    Bool(BooleanBuilder),
    Word(StringDictionaryBuilder<Int32Type>),
    Text(StringBuilder),
    Numbers(ListBuilder<Int64Builder>),
    Texts(ListBuilder<StringBuilder>),
}

/// One row, filled in the order of the table's columns.
///
/// # Panics
/// If a cell is not what its column holds: a mistake of ours, found by the first row of any test.
pub(crate) struct Row<'w> {
    columns: std::slice::IterMut<'w, Column>,
}

impl TableWriter {
    pub(super) fn create(table: &'static Table, path: &Path) -> Result<TableWriter, Error> {
        let schema = table.schema();
        let file = File::create_new(path).map_err(Error::io(path))?;
        let parquet = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties(table)));
        let parquet = parquet.map_err(|error| Error::Parquet { path: path.to_path_buf(), error })?;
        let columns = table.columns.iter().map(|c| Column::new(c.ty)).collect();
        Ok(TableWriter { path: path.to_path_buf(), schema, columns, rows: 0, parquet })
    }

    /// Adds a row, which `fill` fills.
    pub(crate) fn row(&mut self, fill: impl FnOnce(Row<'_>)) -> Result<(), Error> {
        fill(Row { columns: self.columns.iter_mut() });
        self.rows += 1;
        if self.rows >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    /// Completes the file.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        let path = self.path;
        self.parquet.close().map_err(|error| Error::Parquet { path, error })?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let arrays = self.columns.iter_mut().map(Column::finish).collect();
        self.rows = 0;
        let parquet_error = |error| Error::Parquet { path: self.path.clone(), error };
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        let batch = batch.map_err(|error| parquet_error(error.into()))?;
        self.parquet.write(&batch).map_err(parquet_error)
    }
}

/// zstd; ticks as differences, which are small where rows are in the order of time; words by dictionary.
fn properties(table: &Table) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_created_by(concat!("sigmund ", env!("CARGO_PKG_VERSION")).into());
    for column in table.columns.iter().filter(|c| c.ty == ColumnType::Int64 && c.name.ends_with("_tick")) {
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

impl Column {
    fn new(ty: ColumnType) -> Column {
        match ty {
            ColumnType::Int64 => Column::Int64(Int64Builder::new()),
            ColumnType::Int32 => Column::Int32(Int32Builder::new()),
            ColumnType::Float64 => Column::Float64(Float64Builder::new()),
            ColumnType::Bool => Column::Bool(BooleanBuilder::new()),
            ColumnType::Word => Column::Word(StringDictionaryBuilder::new()),
            ColumnType::Text => Column::Text(StringBuilder::new()),
            ColumnType::Numbers => Column::Numbers(ListBuilder::new(Int64Builder::new())),
            ColumnType::Texts => Column::Texts(ListBuilder::new(StringBuilder::new())),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Column::Int64(b) => Arc::new(b.finish()),
            Column::Int32(b) => Arc::new(b.finish()),
            Column::Float64(b) => Arc::new(b.finish()),
            Column::Bool(b) => Arc::new(b.finish()),
            Column::Word(b) => Arc::new(b.finish()),
            Column::Text(b) => Arc::new(b.finish()),
            Column::Numbers(b) => Arc::new(b.finish()),
            Column::Texts(b) => Arc::new(b.finish()),
        }
    }
}

impl Row<'_> {
    /// A number in an `Int64` or `Int32` column.
    pub(crate) fn int(&mut self, value: impl Into<i64>) -> &mut Self {
        self.maybe_int(Some(value.into()))
    }

    /// A number that may be unknown.
    pub(crate) fn maybe_int(&mut self, value: Option<i64>) -> &mut Self {
        match self.columns.next() {
            Some(Column::Int64(b)) => b.append_option(value),
            Some(Column::Int32(b)) => b.append_option(value.map(|v| v as i32)),
            _ => unreachable!("a number for a column that holds none"),
        }
        self
    }

    /// An unsigned count or tick.
    pub(crate) fn count(&mut self, value: u64) -> &mut Self {
        self.maybe_int(Some(value as i64))
    }

    /// An unsigned number that may be unknown.
    pub(crate) fn maybe_count(&mut self, value: Option<u64>) -> &mut Self {
        self.maybe_int(value.map(|v| v as i64))
    }

    /// A fraction that may be unknown.
    pub(crate) fn maybe_float(&mut self, value: Option<f64>) -> &mut Self {
        match self.columns.next() {
            Some(Column::Float64(b)) => b.append_option(value),
            _ => unreachable!("a fraction for a column that holds none"),
        }
        self
    }

    /// Yes or no.
    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        match self.columns.next() {
            Some(Column::Bool(b)) => b.append_value(value),
            _ => unreachable!("yes or no for a column that holds neither"),
        }
        self
    }

    /// A word or a text.
    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.maybe_text(Some(value))
    }

    /// A word or a text that may be unknown.
    pub(crate) fn maybe_text(&mut self, value: Option<&str>) -> &mut Self {
        match self.columns.next() {
            Some(Column::Word(b)) => b.append_option(value),
            Some(Column::Text(b)) => b.append_option(value),
            _ => unreachable!("a text for a column that holds none"),
        }
        self
    }

    /// A list of numbers.
    pub(crate) fn numbers(&mut self, values: impl Iterator<Item = Option<i64>>) -> &mut Self {
        match self.columns.next() {
            Some(Column::Numbers(b)) => b.append_value(values),
            _ => unreachable!("numbers for a column that holds none"),
        }
        self
    }

    /// A list of texts.
    pub(crate) fn texts<'t>(&mut self, values: impl Iterator<Item = Option<&'t str>>) -> &mut Self {
        match self.columns.next() {
            Some(Column::Texts(b)) => b.append_value(values),
            _ => unreachable!("texts for a column that holds none"),
        }
        self
    }
}
