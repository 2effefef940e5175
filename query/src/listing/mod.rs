//! Lists the events that a filter selects, in time order, and prints them.

mod declarations;
mod format;
mod json;
mod names;
mod params;
mod rows;
mod table;

use std::io::Write;

use datafusion::{
    error::Result as PlanResult,
    logical_expr::{Expr, ident},
    physical_plan::common::spawn_buffered,
    prelude::DataFrame,
};
use sigmund_model::{Level, tables::EVENTS};
use sigmund_sql::{SuperTrace, ThreadNames};

use crate::{Error, Filter};

pub use format::Format;
pub use rows::{EventBatch, EventRow, EventRows};

use declarations::Declarations;
use names::Names;

/// Batches that are read ahead.
const AHEAD: usize = 2;

/// Bytes that [`list`] writes at once.
const WRITTEN: usize = 1 << 16;

/// Returns the events that the filter selects, in time order; equal ticks are in the order of the merge.
///
/// They are read lazily: memory does not grow with the trace.
///
/// # Errors
/// When the filter gives a time and the rate of the clock is unknown; when the trace cannot be read.
pub async fn list_events(trace: &SuperTrace, filter: &Filter) -> Result<EventRows, Error> {
    let conditions = filter.events_where(trace)?;
    let plan = plan(trace.raw(&EVENTS).await?, conditions).map_err(Error::on(trace, EVENTS.name))?;
    let stream = trace.in_file_order(plan).execute_stream().await.map_err(Error::on(trace, EVENTS.name))?;
    // Another CPU reads while this one prints.
    Ok(EventRows::new(spawn_buffered(stream, AHEAD), trace))
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
    let mut rows = list_events(trace, filter).await?;
    let mut listing = Listing::new(trace, format, out)?;
    let mut names = Names::new(trace);
    while let Some(batch) = rows.next().await? {
        names.mention(&batch, &listing.declarations);
        let names = names.read().await?;
        for row in batch.rows() {
            listing.append(&row, names);
            if listing.line.len() >= WRITTEN {
                listing.flush_line()?;
            }
        }
    }
    listing.finish()
}

/// No sort: `events` is stored in time order, and one task reads it from first to last.
fn plan(events: DataFrame, conditions: Vec<Expr>) -> PlanResult<DataFrame> {
    let filtered = conditions.into_iter().try_fold(events, |frame, condition| frame.filter(condition))?;
    filtered.select(rows::COLUMNS.map(ident).to_vec())
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
        // Not before the first event: an empty listing needs no names.
        self.append(row, self.trace.threads()?);
        self.flush_line()
    }

    /// Adds one event to what is written next.
    fn append(&mut self, row: &EventRow<'_>, threads: &ThreadNames) {
        let ty = self.declarations.of(row);
        match self.format {
            Format::Human => table::human(&mut self.line, row, ty, threads),
            Format::Tsv => table::tsv(&mut self.line, row, ty, threads),
            Format::Csv => table::csv(&mut self.line, row, ty, threads),
            Format::Ndjson => self.line.push_str(&format!("{}\n", json::object(row, ty, threads))),
            Format::Json => {
                self.line.push_str(if self.count == 0 { "\n" } else { ",\n" });
                self.line.push_str(&json::object(row, ty, threads).to_string());
            }
        }
        self.count += 1;
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

/// The value of the column `type`.
fn level_word(level: Option<Level>) -> &'static str {
    level.map_or("?", Level::name)
}
