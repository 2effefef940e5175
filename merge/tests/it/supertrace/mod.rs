//! Support for tests: writes inputs of a merge, merges them, and reads the tables of the super-trace as numbers or lines.
//!
//! [`Inputs`] are listings, ftrace's text, user traces ([`user_file`]) and run directories; [`Merged`] is the result.

mod inputs;
mod merged;
pub(crate) mod user_file;

use std::{fs::File, path::Path};

use arrow::{
    array::{ArrayRef, RecordBatch},
    compute::{cast, concat_batches, kernels::numeric::sub},
    datatypes::{DataType, Int64Type},
    util::display::{ArrayFormatter, FormatOptions},
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

pub(crate) use self::{
    inputs::{Inputs, folder_in_memory, ftrace_text, switch, tsv},
    merged::Merged,
};

/// A whole table.
pub(crate) struct Table(RecordBatch);

impl Table {
    pub(crate) fn read(trace: &Path, name: &str) -> Table {
        let file = File::open(trace.join(name).join("part-00000.parquet")).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let schema = reader.schema().clone();
        let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
        Table(concat_batches(&schema, &batches).unwrap())
    }

    /// The numbers of a column; NULL is `None`.
    pub(crate) fn numbers(&self, column: &str) -> Vec<Option<i64>> {
        let wide = cast(&self.column(column), &DataType::Int64).unwrap();
        arrow::array::AsArray::as_primitive::<Int64Type>(&wide).iter().collect()
    }

    /// The rows, with a blank between the cells of these columns; NULL is `?`, an empty text is `""`.
    pub(crate) fn lines(&self, columns: &[&str]) -> Vec<String> {
        let options = FormatOptions::default().with_null("?");
        let arrays: Vec<ArrayRef> = columns.iter().map(|name| self.column(name)).collect();
        let columns: Vec<_> =
            arrays.iter().map(|array| ArrayFormatter::try_new(array.as_ref(), &options).unwrap()).collect();
        let cell = |text: String| if text.is_empty() { "\"\"".to_string() } else { text };
        let line = |row| columns.iter().map(|c| cell(c.value(row).to_string())).collect::<Vec<_>>().join(" ");
        (0..self.0.num_rows()).map(line).collect()
    }

    /// A column. `on_cpu_tick` of system calls is computed: the table has the time off CPUs, which is mostly 0.
    fn column(&self, name: &str) -> ArrayRef {
        let stored = |name: &str| self.0.column_by_name(name).cloned();
        let on_cpu = || {
            let (length, off_cpu) = (stored("dur_tick")?, stored("off_cpu_tick")?);
            sub(&length, &off_cpu).ok().filter(|_| name == "on_cpu_tick")
        };
        stored(name).or_else(on_cpu).unwrap_or_else(|| panic!("no column {name}"))
    }
}
