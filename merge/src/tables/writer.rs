//! Writes one table: gathers rows, and encodes them in batches of columns.

use sigmund_model::tables::Table;

use crate::{
    encoding::{Column, Parts},
    error::Error,
};

/// Number of rows that are gathered before they are encoded, as one page. This is 256 KiB of 64-bit values, which is
/// the maximum for which zstd uses its parameters for small inputs.
pub(super) const BATCH_ROWS: usize = 32 << 10;

/// Writes one table.
pub(crate) struct TableWriter {
    columns: Vec<Column>,
    rows: usize,
    parts: Parts,
}

/// One row, filled in the order of the table's columns.
///
/// # Panics
/// If a cell does not have the type of its column. This is a programming error, which the first row of any test shows.
pub(crate) struct Row<'w> {
    columns: std::slice::IterMut<'w, Column>,
}

impl TableWriter {
    pub(super) fn new(table: &Table, parts: Parts) -> TableWriter {
        TableWriter { columns: table.columns.iter().map(|c| Column::new(c.ty)).collect(), rows: 0, parts }
    }

    /// Adds a row, which `fill` fills.
    #[inline]
    pub(crate) fn row(&mut self, fill: impl FnOnce(Row<'_>)) -> Result<(), Error> {
        fill(Row { columns: self.columns.iter_mut() });
        self.rows += 1;
        if self.rows >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    /// Completes the files.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.parts.finish()
    }

    fn flush(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        self.parts.write(self.columns.iter_mut().map(Column::finish).collect(), rows)
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
            Some(Column::Numbers(numbers)) => numbers.push(value),
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
        self.maybe_int(value.map(|v| v.to_bits() as i64))
    }

    /// Yes or no.
    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        match self.columns.next() {
            Some(Column::Bools(bits)) => bits.push(u64::from(value), 1),
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
            Some(Column::Words(words)) => words.append(value),
            Some(Column::Texts(texts)) => texts.push(value),
            _ => unreachable!("a text for a column that holds none"),
        }
        self
    }

    /// A list of texts.
    pub(crate) fn texts<'t>(&mut self, values: impl Iterator<Item = Option<&'t str>>) -> &mut Self {
        match self.columns.next() {
            Some(Column::Texts(texts)) => texts.push_list(values),
            _ => unreachable!("texts for a column that holds none"),
        }
        self
    }
}
