//! One table of a super-trace, filtered, for programs that read tables.
//!
//! Rows are in the order of the table's files: events by time, intervals by their ends. Each `X_tick` is followed by
//! `X_ns`, as in SQL.
//!
//! | format | lists (`args`, `texts`) | NULL | readers |
//! |---|---|---|---|
//! | csv, tsv | `[1, 2]`, in quotes if needed (RFC 4180) | empty | any program |
//! | ndjson | arrays | left out | jq, DuckDB |
//! | arrow (IPC file) | lists | NULL | pyarrow, Polars |
//! | parquet | lists | NULL | pyarrow, Polars, DuckDB |

mod filtered;
mod rows;
mod values;

use std::io::Write;

use arrow::{array::RecordBatch, datatypes::SchemaRef, ipc::writer::FileWriter};
use futures::{StreamExt, future::BoxFuture};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};
use sigmund_model::tables::Table;
use sigmund_query::Filter;
use sigmund_sql::SuperTrace;

use crate::Error;

pub use rows::{RowFormat, RowWriter};

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// A line per row.
    Rows(RowFormat),
    /// An Arrow IPC file.
    Arrow,
    /// A Parquet file, zstd.
    Parquet,
}

/// Writes the rows of a table that match a filter. Returns their number.
///
/// # Errors
/// If the table lacks a column that the filter needs, the trace cannot be read, or `out` cannot be written.
pub fn write_table<'a>(
    trace: &'a SuperTrace,
    table: &'static Table,
    filter: &'a Filter,
    format: TableFormat,
    out: &'a mut (dyn Write + Send),
    progress: &'a mut (dyn FnMut(u64) -> std::io::Result<()> + Send),
) -> BoxFuture<'a, Result<u64, Error>> {
    Box::pin(async move {
        let plan = filtered::plan(trace, table, filter, format).await?;
        let mut rows = plan.execute_stream().await.map_err(|e| trace.error(table.name, e))?;
        let mut writer = Writer::new(format, rows.schema(), &mut *out)?;
        let mut count = 0;
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(|e| trace.error(table.name, e))?;
            writer.write(&batch)?;
            count += batch.num_rows() as u64;
            progress(count)?;
        }
        writer.finish()?;
        out.flush()?;
        Ok(count)
    })
}

enum Writer<W: Write + Send> {
    Rows(RowWriter<W>),
    Arrow(FileWriter<W>),
    Parquet(ArrowWriter<W>),
}

impl<W: Write + Send> Writer<W> {
    fn new(format: TableFormat, schema: SchemaRef, out: W) -> Result<Writer<W>, Error> {
        Ok(match format {
            TableFormat::Rows(format) => Writer::Rows(RowWriter::new(format, &schema, out)?),
            TableFormat::Arrow => Writer::Arrow(FileWriter::try_new(out, &schema)?),
            TableFormat::Parquet => {
                let zstd = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(zstd).build();
                Writer::Parquet(ArrowWriter::try_new(out, schema, Some(properties))?)
            }
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        match self {
            Writer::Rows(writer) => writer.write(batch)?,
            Writer::Arrow(writer) => writer.write(batch)?,
            Writer::Parquet(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Error> {
        match self {
            Writer::Rows(writer) => writer.finish()?.flush()?,
            Writer::Arrow(mut writer) => writer.finish()?,
            Writer::Parquet(writer) => drop(writer.close()?),
        }
        Ok(())
    }
}
