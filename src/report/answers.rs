//! The answer to one question on a super-trace: rows, or the reason why there are none.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arrow::{
    array::{Array, ArrayRef, AsArray},
    compute::cast,
    datatypes::{DataType, Float64Type, Int64Type},
};
use futures::StreamExt;
use sigmund_measures::{Kind, Measure};
use sigmund_query::{Error, ErrorKind, Filter, MeasureOptions, Selector, measure};
use sigmund_schemata::{Asked, Question};
use sigmund_sql::{SuperTrace, nearest};
use tokio::time::timeout_at;

use super::Evidence;
use crate::{measured, output::Cell};

/// The result of a question.
pub(super) struct Answered {
    pub(super) question: Question,
    pub(super) outcome: Outcome,
    /// Notes on the interpretation of the answer, one sentence each.
    pub(super) notes: Vec<String>,
    /// The number of gaps of the trace that affect the answer.
    pub(super) gaps: usize,
}

pub(super) enum Outcome {
    Rows(Rows),
    /// No rows, and the reason.
    Nothing(String),
    /// The question is invalid.
    Failed(String),
}

/// The first rows of an answer.
pub(super) struct Rows {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The total number of rows.
    pub(super) total: usize,
}

impl Rows {
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|other| other.name == column)
    }

    /// Whether a schema that wants the column `wanted` means this one: `_tick` and `_ns` may be left out.
    pub(super) fn means(&self, wanted: &str, column: &str) -> bool {
        wanted == column || (wanted == short(column) && !self.has(wanted))
    }

    /// A note for each column that a schema wants and this answer does not have, unless it is one of those that depend on
    /// what makes a row.
    fn unknown_columns(&self, wanted: &[String]) -> Vec<String> {
        let is_known = |wanted: &&String| {
            OF_GROUPS.contains(&wanted.as_str())
                || self.columns.iter().any(|column| self.means(wanted, &column.name))
        };
        let note = |unknown: &String| {
            let near = nearest(unknown, self.columns.iter().map(|column| column.name.as_str())).join(", ");
            format!("expected a column of this answer, found {unknown:?}; nearest: {near}")
        };
        wanted.iter().filter(|wanted| !is_known(wanted)).map(note).collect()
    }
}

/// Columns that identify the subject of a row.
const OF_GROUPS: [&str; 5] = ["thread", "lwp", "pid", "name", "pattern"];

/// The name of a column without its unit.
pub(super) fn short(column: &str) -> &str {
    column.strip_suffix("_tick").or_else(|| column.strip_suffix("_ns")).unwrap_or(column)
}

pub(super) struct Column {
    pub(super) name: String,
    pub(super) unit: Unit,
}

/// The unit of the numbers in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Durations in ticks.
    Ticks,
    /// Durations in nanoseconds.
    Nanos,
    Other,
}

impl Answered {
    /// Answers the question. At most `top` rows are kept.
    pub(super) async fn ask(
        trace: &SuperTrace,
        evidence: &Evidence,
        question: &Question,
        top: usize,
    ) -> Result<Answered> {
        let mut notes = Vec::new();
        let (mut outcome, gaps) = match &question.asked {
            Asked::Sql(query) => (by_query(trace, query, top).await?, evidence.gaps),
            Asked::Measure { measure, by, worst, subject, pair } => {
                let parsed = |(from, to): &(String, String)| {
                    Ok::<(Selector, Selector), Error>((from.parse()?, to.parse()?))
                };
                let options = pair.as_ref().map(parsed).transpose().map(|pair| MeasureOptions {
                    by: *by,
                    worst: *worst,
                    subject: subject.clone(),
                    pair,
                    with_lengths: false,
                });
                by_measure(trace, measure, options, top, &mut notes).await?
            }
        };
        if let Outcome::Rows(rows) = &outcome {
            notes.extend(rows.unknown_columns(&question.columns));
        }
        if matches!(&outcome, Outcome::Rows(rows) if rows.total == 0) {
            outcome = Outcome::Nothing(evidence.why_nothing(&question.needs));
        } else if let Some(unrecorded) = evidence.describe_unrecorded(&question.needs) {
            match outcome {
                // An event that was not recorded has no view.
                Outcome::Failed(_) => outcome = Outcome::Nothing(unrecorded),
                Outcome::Rows(_) => notes.push(unrecorded),
                Outcome::Nothing(_) => {}
            }
        }
        Ok(Answered { question: question.clone(), outcome, notes, gaps })
    }
}

async fn by_measure(
    trace: &SuperTrace,
    asked: &Measure,
    options: Result<MeasureOptions, Error>,
    top: usize,
    notes: &mut Vec<String>,
) -> Result<(Outcome, usize)> {
    let measured = match options {
        Ok(options) => measure(trace, asked, &Filter::default(), &options).await,
        Err(error) => Err(error),
    };
    let measured = match measured {
        Ok(measured) => measured,
        // The trace does not have what the question is about.
        Err(error) if error.kind() == ErrorKind::Argument => {
            return Ok((Outcome::Nothing(error.to_string()), 0));
        }
        Err(error) => return Err(error.into()),
    };
    notes.extend(measured.answer.notes);
    let columns = measured.answer.columns.iter().map(|column| Column {
        name: column.name.to_string(),
        unit: if column.kind == Kind::Length { Unit::Ticks } else { Unit::Other },
    });
    let (columns, total) = (columns.collect(), measured.answer.rows.len());
    let rows = measured.answer.rows.iter().take(top);
    let rows = rows.map(|row| row.into_iter().map(measured::cell).collect()).collect();
    Ok((Outcome::Rows(Rows { columns, rows, total }), measured.gaps))
}

/// The time limit of a query: it comes with the schema of a recording, which may be from an unknown source.
const MOST_TIME: Duration = Duration::from_secs(60);

async fn by_query(trace: &SuperTrace, query: &str, top: usize) -> Result<Outcome> {
    let result = match trace.sql(query).await {
        Ok(result) => result,
        Err(error) => return Ok(Outcome::Failed(error.to_string())),
    };
    let column = |name: &String| Column {
        unit: if name.ends_with("_ns") && name != "ts_ns" { Unit::Nanos } else { Unit::Other },
        name: name.clone(),
    };
    let columns: Vec<Column> = result.schema().fields().iter().map(|field| column(field.name())).collect();
    let (mut rows, mut total) = (Vec::new(), 0);
    let mut stream = result.stream().await?;
    let deadline = Instant::now() + MOST_TIME;
    loop {
        let Ok(next) = timeout_at(deadline.into(), stream.next()).await else {
            let message = format!("expected an answer within {} s, found none", MOST_TIME.as_secs());
            return Ok(Outcome::Failed(message));
        };
        let Some(batch) = next else { break };
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return Ok(Outcome::Failed(error.to_string())),
        };
        total += batch.num_rows();
        let kept = batch.slice(0, batch.num_rows().min(top - rows.len()));
        let cells: Result<Vec<Vec<Cell>>> = kept.columns().iter().map(cells_of).collect();
        let cells = match cells {
            Ok(cells) => cells,
            Err(error) => return Ok(Outcome::Failed(format!("{error:#}"))),
        };
        rows.extend((0..kept.num_rows()).map(|row| cells.iter().map(|column| column[row].clone()).collect()));
    }
    Ok(Outcome::Rows(Rows { columns, rows, total }))
}

fn cells_of(column: &ArrayRef) -> Result<Vec<Cell>> {
    let to = match column.data_type() {
        ty if ty.is_integer() => DataType::Int64,
        ty if ty.is_numeric() => DataType::Float64,
        _ => DataType::Utf8,
    };
    let column = cast(column, &to).context("showing a column")?;
    let cell = |row: usize| match &to {
        _ if column.is_null(row) => Cell::Nothing,
        DataType::Int64 => Cell::Count(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Cell::Fraction(column.as_primitive::<Float64Type>().value(row)),
        _ => Cell::Text(column.as_string::<i32>().value(row).to_string()),
    };
    Ok((0..column.len()).map(cell).collect())
}
