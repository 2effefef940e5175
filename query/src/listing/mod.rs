//! Lists the events that a filter selects, in time order, and prints them.

mod declarations;
mod format;
mod json;
mod names;
mod params;
mod rows;
mod side_by_side;
mod table;

use std::{io::Write, ops::Range};

use datafusion::{
    common::ScalarValue,
    error::Result as PlanResult,
    logical_expr::{Expr, ident, lit},
    physical_plan::common::spawn_buffered,
    prelude::DataFrame,
};
use futures::{FutureExt, future::BoxFuture};
use rayon::prelude::*;
use sigmund_model::{Level, tables::EVENTS};
use sigmund_sql::{SuperTrace, ThreadNames};

use crate::{Error, Filter};

pub use format::Format;
pub use rows::{EventBatch, EventRow, EventRows};

use declarations::Declarations;
use names::Names;

/// Batches that are read ahead, and printed together.
const AHEAD: usize = 8;

/// Rows that one CPU prints at a time.
const PRINTED: usize = 2048;

/// Returns the events that the filter selects, in time order; equal ticks are in the order of the merge.
///
/// They are read lazily: memory does not grow with the trace.
///
/// # Errors
/// When the filter gives a time and the rate of the clock is unknown; when the trace cannot be read.
pub fn list_events<'a>(trace: &'a SuperTrace, filter: &'a Filter) -> BoxFuture<'a, Result<EventRows, Error>> {
    Box::pin(async move { read(trace, filter, &[]).await })
}

/// As [`list_events`]; the columns `left_out` are NULL in all rows.
async fn read(trace: &SuperTrace, filter: &Filter, left_out: &[&str]) -> Result<EventRows, Error> {
    let conditions = filter.events_where(trace)?;
    let events = trace.raw(&EVENTS).await?;
    let mut streams = Vec::new();
    for part in side_by_side::parts(trace, filter)? {
        let conditions = conditions.iter().cloned().chain(part.holds("ts_tick"));
        let plan = plan(events.clone(), conditions, left_out).map_err(Error::on(trace, EVENTS.name))?;
        let rows = trace.in_file_order(plan).execute_stream().await;
        // Other threads read ahead while this one prints.
        streams.push(spawn_buffered(rows.map_err(Error::on(trace, EVENTS.name))?, AHEAD));
    }
    Ok(EventRows::new(side_by_side::in_order(streams), trace))
}

/// Lists the events that the filter selects. Returns their number.
///
/// # Errors
/// As [`list_events`]; when `out` cannot be written.
pub async fn list(
    trace: &SuperTrace,
    filter: &Filter,
    format: Format,
    out: &mut impl Write,
) -> Result<u64, Error> {
    let mut rows = read(trace, filter, &rows::NOT_PRINTED).await?;
    let mut listing = Listing::new(trace, format, out)?;
    let mut names = Names::new(trace);
    while let Some(batch) = rows.next().await? {
        let mut batches = vec![batch];
        // Also takes the batches that have been read in the meantime.
        while batches.len() < AHEAD
            && let Some(Some(batch)) = rows.next().now_or_never().transpose()?
        {
            batches.push(batch);
        }
        batches.iter().for_each(|batch| names.mention(batch, &listing.declarations));
        listing.batches(&batches, names.read().await?)?;
    }
    listing.finish()
}

/// Needs no sort: `events` is stored in time order, and one task reads it from beginning to end.
fn plan(
    events: DataFrame,
    mut conditions: impl Iterator<Item = Expr>,
    left_out: &[&str],
) -> PlanResult<DataFrame> {
    let filtered = conditions.try_fold(events, |frame, condition| frame.filter(condition))?;
    let column = |name: &str| -> PlanResult<Expr> {
        if !left_out.contains(&name) {
            return Ok(ident(name));
        }
        let field = filtered.schema().field_with_unqualified_name(name)?;
        Ok(lit(ScalarValue::try_new_null(field.data_type())?).alias(name))
    };
    let columns: PlanResult<Vec<Expr>> = rows::COLUMNS.into_iter().map(column).collect();
    filtered.select(columns?)
}

/// Prints events in one [`Format`].
pub struct Listing<'t, W: Write> {
    trace: &'t SuperTrace,
    format: Format,
    out: W,
    declarations: Declarations<'t>,
    line: String,
    count: u64,
}

impl<'t, W: Write> Listing<'t, W> {
    /// Begins a listing: writes the header, if the format has one.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn new(trace: &'t SuperTrace, format: Format, out: W) -> Result<Listing<'t, W>, Error> {
        let declarations = Declarations::new(trace.event_types());
        let line = String::new();
        let mut listing = Listing { trace, format, out, declarations, line, count: 0 };
        listing.line.push_str(&match format {
            Format::Human => table::human_header(),
            Format::Tsv => table::HEADER.join("\t") + "\n",
            Format::Csv => table::HEADER.join(",") + "\n",
            Format::Json => "[".into(),
            Format::Ndjson => String::new(),
        });
        listing.flush_line()?;
        Ok(listing)
    }

    /// Adds one event.
    ///
    /// # Errors
    /// When `out` cannot be written, or the names of the threads cannot be read.
    pub fn event(&mut self, row: &EventRow<'_>) -> Result<(), Error> {
        let is_first = self.count == 0;
        // Not read before the first event, because an empty listing needs no names.
        push(&mut self.line, self.format, row, &self.declarations, self.trace.threads()?, is_first);
        self.count += 1;
        self.flush_line()
    }

    /// Adds the events of several batches. They are formatted on all CPUs.
    fn batches(&mut self, batches: &[EventBatch], names: &ThreadNames) -> Result<(), Error> {
        let (types, format) = (self.declarations.types(), self.format);
        let print = |(batch, rows, mut is_first): (&EventBatch, Range<usize>, bool)| {
            let declarations = Declarations::sharing(types.clone());
            let mut lines = String::with_capacity(rows.len() * 100);
            for row in rows {
                push(&mut lines, format, &batch.row(row), &declarations, names, is_first);
                is_first = false;
            }
            lines
        };
        let mut parts = Vec::new();
        for batch in batches {
            for first in (0..batch.len()).step_by(PRINTED) {
                let is_first = self.count == 0 && parts.is_empty();
                parts.push((batch, first..batch.len().min(first + PRINTED), is_first));
            }
        }
        let printed: Vec<String> = parts.into_par_iter().map(print).collect();
        printed.iter().try_for_each(|lines| self.out.write_all(lines.as_bytes()))?;
        self.count += batches.iter().map(|batch| batch.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Ends the listing. Returns its number of events.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn finish(mut self) -> Result<u64, Error> {
        if self.format == Format::Json {
            self.line.push_str(if self.count == 0 { "]\n" } else { "\n]\n" });
        }
        self.flush_line()?;
        self.out.flush()?;
        Ok(self.count)
    }

    fn flush_line(&mut self) -> Result<(), Error> {
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

/// Appends one event.
fn push(
    out: &mut String,
    format: Format,
    row: &EventRow<'_>,
    declarations: &Declarations<'_>,
    threads: &ThreadNames,
    is_first: bool,
) {
    let ty = declarations.of(row);
    match format {
        Format::Human => table::human(out, row, ty, threads),
        Format::Tsv => table::tsv(out, row, ty, threads),
        Format::Csv => table::csv(out, row, ty, threads),
        Format::Ndjson => {
            out.push_str(&json::object(row, ty, threads).to_string());
            out.push('\n');
        }
        Format::Json => {
            out.push_str(if is_first { "\n" } else { ",\n" });
            out.push_str(&json::object(row, ty, threads).to_string());
        }
    }
}

/// The value of the column `type`.
fn level_word(level: Option<Level>) -> &'static str {
    level.map_or("?", Level::name)
}
