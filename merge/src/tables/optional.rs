//! Tables that may be left out.

use sigmund_model::tables::{OPTIONAL, Table};

use super::{
    directory::Directory,
    writer::{Row, TableWriter},
};
use crate::error::Error;

/// A table that may be left out. If it is, its rows are discarded.
pub(crate) struct OptionalTable(Option<TableWriter>);

impl OptionalTable {
    /// Creates the table, unless its name is among those left out.
    pub(crate) fn create(
        directory: &Directory,
        table: &'static Table,
        left_out: &[String],
    ) -> Result<OptionalTable, Error> {
        debug_assert!(OPTIONAL.iter().any(|optional| optional.name == table.name));
        if left_out.iter().any(|name| name == table.name) {
            return Ok(OptionalTable(None));
        }
        Ok(OptionalTable(Some(directory.table(table)?)))
    }

    /// Whether rows are written.
    pub(crate) fn is_written(&self) -> bool {
        self.0.is_some()
    }

    /// Adds a row, which `fill` fills.
    #[inline]
    pub(crate) fn row(&mut self, fill: impl FnOnce(Row<'_>)) -> Result<(), Error> {
        self.0.as_mut().map_or(Ok(()), |table| table.row(fill))
    }

    /// Completes the files.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), TableWriter::finish)
    }
}
