//! `sigmund sql`: any query on a super-trace, in any format.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use arrow::{array::RecordBatch, util::pretty::pretty_format_batches_with_schema};
use futures::StreamExt;
use sigmund_export::tables::{RowFormat, RowWriter};

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
    let format = match args.format {
        FormatArg::Tsv => RowFormat::Tsv,
        FormatArg::Json => RowFormat::Json,
        FormatArg::Ndjson => RowFormat::Ndjson,
        FormatArg::Csv | FormatArg::Human => RowFormat::Csv,
    };
    let mut writer = RowWriter::new(format, &result.schema(), out)?;
    let mut stream = result.stream().await?;
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch.context("running the query")?;
        rows += batch.num_rows();
        writer.write(&batch)?;
    }
    writer.finish()?.flush()?;
    Ok(found(rows))
}

fn found(rows: usize) -> Found {
    if rows > 0 { Found::Something } else { Found::Nothing }
}
