//! `sigmund sql`: any query on a super-trace, in any format.

use std::{io::Write, sync::Arc};

use anyhow::{Context, Result};
use futures::StreamExt;
use sigmund_export::tables::{RowFormat, RowWriter};

use crate::{
    Found, answer,
    cli::{FormatArg, SqlArgs},
    terminal,
};

pub(crate) async fn run(args: SqlArgs) -> Result<Found> {
    let trace = Arc::new(answer::open(Some(&args.trace)).await?);
    sigmund_query::register_measures(&trace);
    let result = trace.sql(&args.query).await;
    // A name that is not found may be a field that was left out.
    trace.notes().iter().for_each(|note| terminal::notice(&format!("warning: {note}")));
    let result = result?;
    let format = match args.format {
        FormatArg::Human => {
            let drawn = result.draw().await?;
            terminal::block(&drawn.text)?;
            return Ok(found(drawn.rows));
        }
        FormatArg::Tsv => RowFormat::Tsv,
        FormatArg::Json => RowFormat::Json,
        FormatArg::Ndjson => RowFormat::Ndjson,
        FormatArg::Csv => RowFormat::Csv,
    };
    let mut writer = RowWriter::new(format, &result.schema(), terminal::data())?;
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
