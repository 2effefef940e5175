//! `sigmund sql`: any query on a super-trace, in any format.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use arrow::{
    array::RecordBatch,
    json::{ArrayWriter, LineDelimitedWriter},
    util::{
        display::{ArrayFormatter, FormatOptions},
        pretty::pretty_format_batches_with_schema,
    },
};
use futures::StreamExt;

use crate::{
    Found, answer,
    cli::{FormatArg, SqlArgs},
};

pub(crate) async fn run(args: SqlArgs) -> Result<Found> {
    let trace = answer::open(Some(&args.trace)).await?;
    let result = trace.sql(&args.query).await?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.format == FormatArg::Human {
        let schema = result.schema();
        let batches = result.collect().await?;
        writeln!(out, "{}", pretty_format_batches_with_schema(schema, &batches)?)?;
        out.flush()?;
        return Ok(found(batches.iter().map(RecordBatch::num_rows).sum()));
    }
    let schema = result.schema();
    let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let mut stream = result.stream().await?;
    let mut rows = 0;
    let mut json = JsonOut::new(args.format);
    let separator = if args.format == FormatArg::Tsv { '\t' } else { ',' };
    if json.is_none() {
        write_row(&mut out, names.into_iter(), separator)?;
    }
    while let Some(batch) = stream.next().await {
        let batch = batch.context("running the query")?;
        rows += batch.num_rows();
        match &mut json {
            Some(json) => json.write(&batch, &mut out)?,
            None => write_batch(&mut out, &batch, separator)?,
        }
    }
    if let Some(json) = json {
        json.finish(&mut out)?;
    }
    out.flush()?;
    Ok(found(rows))
}

fn found(rows: usize) -> Found {
    if rows > 0 { Found::Something } else { Found::Nothing }
}

fn write_batch(out: &mut impl Write, batch: &RecordBatch, separator: char) -> Result<()> {
    let options = FormatOptions::new();
    let columns: Result<Vec<_>, _> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options)).collect();
    let columns = columns?;
    for row in 0..batch.num_rows() {
        write_row(out, columns.iter().map(|column| column.value(row).to_string()), separator)?;
    }
    Ok(())
}

/// Texts that hold the separator, quotes or newlines are quoted (RFC 4180).
fn write_row(out: &mut impl Write, cells: impl Iterator<Item = String>, separator: char) -> io::Result<()> {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            write!(out, "{separator}")?;
        }
        if cell.contains([separator, '"', '\n', '\r']) {
            write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            write!(out, "{cell}")?;
        }
    }
    writeln!(out)
}

/// One array, or an object a line.
enum JsonOut {
    Array(ArrayWriter<Vec<u8>>),
    Lines(LineDelimitedWriter<Vec<u8>>),
}

impl JsonOut {
    fn new(format: FormatArg) -> Option<JsonOut> {
        match format {
            FormatArg::Json => Some(JsonOut::Array(ArrayWriter::new(Vec::new()))),
            FormatArg::Ndjson => Some(JsonOut::Lines(LineDelimitedWriter::new(Vec::new()))),
            FormatArg::Human | FormatArg::Tsv | FormatArg::Csv => None,
        }
    }

    fn write(&mut self, batch: &RecordBatch, out: &mut impl Write) -> Result<()> {
        let written = match self {
            JsonOut::Array(writer) => {
                writer.write(batch)?;
                writer.get_mut()
            }
            JsonOut::Lines(writer) => {
                writer.write(batch)?;
                writer.get_mut()
            }
        };
        out.write_all(written)?;
        written.clear();
        Ok(())
    }

    fn finish(self, out: &mut impl Write) -> Result<()> {
        let rest = match self {
            JsonOut::Array(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
            JsonOut::Lines(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
        };
        out.write_all(&rest)?;
        Ok(writeln!(out)?)
    }
}
