//! `sigmund info`: what a super-trace is, and what it holds.

use std::io::{self, Write};

use anyhow::Result;
use sigmund_model::{Ticks, tables};
use sigmund_sql::SuperTrace;

use crate::{
    Found, answer,
    cli::{FormatArg, TraceArg},
    output::{self, Cell, print_table},
};

/// The most frequent events that are shown.
const EVENTS_SHOWN: &str = "20";

pub(crate) async fn run(args: TraceArg) -> Result<Found> {
    let trace = answer::open(args.trace.as_deref()).await?;
    let out = &mut io::stdout();
    writeln!(out, "{}", trace.path().display())?;
    if let (Some(first), Some(last)) = (trace.first_tick(), trace.last_tick()) {
        let span = output::length(Ticks(last.0 - first.0), trace.tick_hz());
        writeln!(out, "  {:<18} {span}, ticks {first} to {last}", "time", first = first.0, last = last.0)?;
    }
    for (key, value) in trace.info().iter() {
        writeln!(out, "  {key:<18} {value}")?;
    }
    writeln!(out)?;
    print_tables(&trace).await?;
    writeln!(out)?;
    let query = format!(
        "SELECT level, name, sum(events) AS events FROM event_types WHERE events > 0 \
         GROUP BY level, name ORDER BY events DESC, name LIMIT {EVENTS_SHOWN}"
    );
    writeln!(out, "{}", trace.sql(&query).await?.to_text().await?)?;
    Ok(Found::Something)
}

async fn print_tables(trace: &SuperTrace) -> Result<()> {
    let mut rows = Vec::new();
    for table in tables::ALL {
        let count = trace.raw(table).await?.count().await.map_err(|e| trace.error(table.name, e))?;
        rows.push(vec![Cell::from(table.name), Cell::Count(count as i64), Cell::from(table.doc)]);
    }
    print_table(&["table", "rows", "a row"], &rows, FormatArg::Human)
}
