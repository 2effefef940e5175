//! Runs queries and prints their results.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{BufWriter, ErrorKind, Write},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::TryStreamExt;
use sigmund_export::tables::{RowFormat, RowWriter};
use sigmund_query::{MeasureNote, register_measures_noting};
use sigmund_sql::{Defined, Parameters, QueryResult, SuperTrace};

use super::describe;
use crate::{
    Found,
    cli::{FormatArg, SqlArgs},
    terminal::{self, Pages},
};

/// Maximum number of rows printed at the prompt, because a pager gets all of its text at once.
const MOST_DRAWN: usize = 10_000;

/// An open super-trace, and how results are printed.
pub(super) struct Session {
    pub(super) trace: Arc<SuperTrace>,
    pub(super) format: FormatArg,
    pub(super) parameters: Parameters,
    /// Whether it is at a prompt. Few rows are then drawn, and long tables go to a pager.
    pub(super) is_prompt: bool,
    /// Whether it prints how long each query took.
    pub(super) is_timed: bool,
    /// The output for results, if not the terminal.
    pub(super) file: Option<(PathBuf, File)>,
    /// Notes about the measures of the current query, each once.
    notes: Arc<Mutex<BTreeSet<MeasureNote>>>,
    /// Whether an answer with a gap in its time ends with another status.
    is_strict: bool,
}

/// The name in `DESCRIBE NAME` or `DESC NAME`.
fn described(query: &str) -> Option<&str> {
    let (word, name) = query.trim().trim_end_matches(';').split_once(char::is_whitespace)?;
    let is_described = ["DESCRIBE", "DESC"].iter().any(|described| word.eq_ignore_ascii_case(described));
    is_described.then_some(name.trim())
}

impl Session {
    pub(super) fn new(trace: Arc<SuperTrace>, args: &SqlArgs) -> Session {
        let notes: Arc<Mutex<BTreeSet<MeasureNote>>> = Arc::default();
        let of_measures = notes.clone();
        register_measures_noting(&trace, move |note| _ = lock(&of_measures).insert(note));
        Session {
            trace,
            format: args.format,
            parameters: args.parameters(),
            is_prompt: false,
            is_timed: false,
            file: None,
            notes,
            is_strict: args.strict,
        }
    }

    /// Runs one query and prints its rows. `None` if it only defined a view.
    pub(super) async fn run(&self, query: &str) -> Result<Option<Found>> {
        let begin = Instant::now();
        // The session's own DESCRIBE knows only tables and views, so functions are handled here.
        if let Some(function) = described(query).filter(|name| describe::is_function(&self.trace, name)) {
            return self.describe(Some(function)).await.map(Some);
        }
        let defined = self.trace.define(query, &self.parameters).await;
        if !matches!(defined, Ok(None)) {
            self.warn();
        }
        if let Some(defined) = defined? {
            match defined {
                Defined::View(name) if self.is_prompt => {
                    terminal::notice(&format!("{name} is a view of this session"));
                }
                Defined::Dropped(name) if self.is_prompt => {
                    terminal::notice(&format!("{name} is no view any more"));
                }
                Defined::View(_) | Defined::Dropped(_) => {}
                Defined::Included(module) => terminal::notice(&format!(
                    "{module}: nothing is included; `sigmund sql --schema` lists the tables that are there"
                )),
            }
            return Ok(None);
        }
        let result = self.trace.sql_with(query, &self.parameters).await;
        self.warn();
        lock(&self.notes).clear();
        let (rows, read_for) = self.print(result?).await?;
        let notes = std::mem::take(&mut *lock(&self.notes));
        notes.iter().for_each(|note| terminal::notice(&note.text));
        if self.is_timed {
            terminal::line(timing(rows, begin.elapsed().saturating_sub(read_for)))?;
        }
        Ok(Some(match rows {
            _ if self.is_strict && notes.iter().any(|note| note.is_about_gaps) => Found::Gaps,
            0 => Found::Nothing,
            _ => Found::Something,
        }))
    }

    /// Prints notes about left-out fields: a name that was not found may be one of these.
    fn warn(&self) {
        self.trace.notes().iter().for_each(|note| terminal::notice(&format!("warning: {note}")));
    }

    /// Prints a result. Returns the number of rows, and how long a user read them in a pager.
    async fn print(&self, result: QueryResult) -> Result<(usize, Duration)> {
        let format = match self.format {
            FormatArg::Human => return self.draw(result).await,
            FormatArg::Tsv => RowFormat::Tsv,
            FormatArg::Json => RowFormat::Json,
            FormatArg::Ndjson => RowFormat::Ndjson,
            FormatArg::Csv => RowFormat::Csv,
        };
        let out: Box<dyn Write + Send> = match &self.file {
            Some((path, file)) => Box::new(file.try_clone().with_context(|| path.display().to_string())?),
            None => Box::new(terminal::data()),
        };
        let schema = result.schema();
        let stream = result.stream().await?;
        let mut batches = stream.map_err(|error| sigmund_sql::Error::from_datafusion("query", error));
        // Reads the first batch before it prints the header, so that a query that fails at once prints nothing.
        let mut batch = batches.try_next().await?;
        let mut writer = RowWriter::new(format, &schema, out)?;
        let mut rows = 0;
        while let Some(found) = batch {
            rows += found.num_rows();
            writer.write(&found)?;
            batch = batches.try_next().await?;
        }
        writer.finish()?.flush()?;
        Ok((rows, Duration::ZERO))
    }

    async fn draw(&self, result: QueryResult) -> Result<(usize, Duration)> {
        if let Some((path, file)) = &self.file {
            let out = &mut BufWriter::new(file);
            let rows = result
                .draw_parts::<anyhow::Error>(|lines| {
                    out.write_all(lines.as_bytes()).with_context(|| path.display().to_string())
                })
                .await?;
            out.flush().with_context(|| path.display().to_string())?;
            return Ok((rows, Duration::ZERO));
        }
        if !self.is_prompt {
            let result = match terminal::width() {
                Some(width) => result.within(width),
                None => result,
            };
            let rows = result.draw_parts::<anyhow::Error>(|lines| Ok(terminal::block(lines)?)).await?;
            return Ok((rows, Duration::ZERO));
        }
        let (drawn, is_all) = result.draw_first(MOST_DRAWN).await?;
        let shown = Instant::now();
        terminal::paged(&drawn.text)?;
        let read_for = shown.elapsed();
        if !is_all {
            terminal::notice(&format!("the first {} rows; \\f csv and \\o FILE for all", drawn.rows));
        }
        Ok((drawn.rows, read_for))
    }

    /// Prints the catalog, or describes one table, view or table function.
    pub(super) async fn describe(&self, name: Option<&str>) -> Result<Found> {
        let pages = (self.is_prompt && self.format == FormatArg::Human).then(Pages::begin);
        match name {
            Some(name) => describe::one(&self.trace, name, self.format).await?,
            None => describe::all(&self.trace, self.format)?,
        }
        pages.map_or(Ok(()), Pages::end)?;
        Ok(Found::Something)
    }

    /// Writes results to a new file. Without a path: to the terminal again.
    pub(super) fn redirect(&mut self, path: Option<&str>) -> Result<()> {
        self.file = match path {
            None => None,
            Some(path) => {
                let file = OpenOptions::new().append(true).create_new(true).open(path);
                let expected = match &file {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        "expected a file that is not there yet"
                    }
                    _ => "expected a new file that can be written",
                };
                Some((path.into(), file.with_context(|| format!("{path}: {expected}"))?))
            }
        };
        Ok(())
    }
}

fn lock(notes: &Mutex<BTreeSet<MeasureNote>>) -> MutexGuard<'_, BTreeSet<MeasureNote>> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn timing(rows: usize, elapsed: Duration) -> String {
    let rows = crate::output::counted(rows as u64, "row");
    format!("{rows}, {:.3} ms", elapsed.as_secs_f64() * 1e3)
}
