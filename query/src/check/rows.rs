//! Reads the rows of an answer, cell by cell. It accepts each width of number and each kind of text that a column may
//! have.

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt64Type},
};
use sigmund_model::{Cpu, Lwp, Thread, Ticks};

/// One row.
#[derive(Clone, Copy)]
pub(super) struct Row<'b> {
    batch: &'b RecordBatch,
    row: usize,
}

/// All rows.
pub(super) fn of(batches: &[RecordBatch]) -> impl Iterator<Item = Row<'_>> {
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| Row { batch, row }))
}

impl<'b> Row<'b> {
    fn cell(&self, column: usize) -> Option<&'b dyn Array> {
        let cells = self.batch.column(column).as_ref();
        cells.is_valid(self.row).then_some(cells)
    }

    /// A whole number; `None` if it is NULL.
    pub(super) fn number(&self, column: usize) -> Option<i64> {
        let cells = self.cell(column)?;
        Some(match cells.data_type() {
            DataType::Int32 => cells.as_primitive::<Int32Type>().value(self.row).into(),
            DataType::UInt64 => cells.as_primitive::<UInt64Type>().value(self.row) as i64,
            _ => cells.as_primitive::<Int64Type>().value(self.row),
        })
    }

    /// A count; 0 if it is NULL.
    pub(super) fn count(&self, column: usize) -> u64 {
        self.number(column).map_or(0, |n| n.max(0) as u64)
    }

    pub(super) fn tick(&self, column: usize) -> Option<Ticks> {
        self.number(column).map(|n| Ticks(n as u64))
    }

    pub(super) fn cpu(&self, column: usize) -> Option<Cpu> {
        self.number(column).map(|n| Cpu(n as u32))
    }

    pub(super) fn lwp(&self, column: usize) -> Option<Lwp> {
        self.number(column).map(|n| Lwp(n as u32))
    }

    pub(super) fn thread(&self, column: usize) -> Option<Thread> {
        self.number(column).map(|n| Thread(n as u64))
    }

    /// A fraction; `None` if it is NULL.
    pub(super) fn fraction(&self, column: usize) -> Option<f64> {
        Some(self.cell(column)?.as_primitive::<Float64Type>().value(self.row))
    }

    /// A text, which the query has cast to VARCHAR if it is a word; empty if it is NULL.
    pub(super) fn text(&self, column: usize) -> &'b str {
        self.cell(column).map_or("", |cells| cells.as_string::<i32>().value(self.row))
    }

    /// A text; `None` if it is NULL.
    pub(super) fn maybe_text(&self, column: usize) -> Option<String> {
        self.cell(column).map(|_| self.text(column).to_string())
    }

    /// The numbers of a list; none if it is NULL.
    pub(super) fn numbers(&self, column: usize) -> Vec<i64> {
        let Some(cells) = self.cell(column) else { return Vec::new() };
        let list = cells.as_list::<i32>().value(self.row);
        match list.data_type() {
            DataType::Int32 => list.as_primitive::<Int32Type>().iter().flatten().map(i64::from).collect(),
            _ => list.as_primitive::<Int64Type>().iter().flatten().collect(),
        }
    }
}
