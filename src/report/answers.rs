//! The answer to one question on a super-trace: rows, or the reason why there are none.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arrow::{
    array::{Array, ArrayRef, AsArray},
    compute::cast,
    datatypes::{DataType, Float64Type, Int64Type},
};
use futures::StreamExt;
use sigmund_measures::{Answer, Kind, Measure, Value};
use sigmund_query::{Error, ErrorKind, Filter, MeasureOptions, Measured, Selector, measure};
use sigmund_schemata::{Asked, Located, Question, means, unknown_column};
use sigmund_sql::SuperTrace;
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
    pub(super) rows: Vec<Vec<Cell<'static>>>,
    /// The total number of rows.
    pub(super) total: usize,
}

impl Rows {
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|other| other.name == column)
    }

    /// A note for each column that a schema requests and this answer does not have. Columns that depend on the grouping
    /// get no note.
    fn unknown_columns<'q>(&self, wanted: impl Iterator<Item = &'q String>) -> Vec<String> {
        let all: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        wanted.filter_map(|wanted| unknown_column(wanted, &all)).collect()
    }
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
    /// Addresses.
    Object,
    Other,
}

impl Answered {
    /// Answers the question. At most `top` rows are kept.
    pub(super) async fn ask(
        trace: &SuperTrace,
        (evidence, filter): (&Evidence, &Filter),
        question: &Question,
        top: usize,
    ) -> Result<Answered> {
        let mut notes = Vec::new();
        let (mut outcome, gaps) = match &question.asked {
            Asked::Sql(query) => {
                if !filter.processes.is_empty() {
                    notes.push("It is an SQL query: its answer is about all processes.".into());
                }
                (by_query(trace, &query.text, top).await?, evidence.gaps)
            }
            Asked::Measure { measure, by, worst, subject, pair } => {
                let parsed = |(from, to): &(Located, Located)| {
                    Ok::<(Selector, Selector), Error>((from.text.parse()?, to.text.parse()?))
                };
                let options = pair.as_ref().map(parsed).transpose().map(|pair| MeasureOptions {
                    by: *by,
                    worst: *worst,
                    subject: subject.clone(),
                    pair,
                    ..MeasureOptions::default()
                });
                by_measure((trace, filter), measure, options, (question.sort.as_deref(), top), &mut notes)
                    .await?
            }
        };
        if let Outcome::Rows(rows) = &outcome {
            notes.extend(rows.unknown_columns(question.columns.iter().chain(&question.sort)));
        }
        if matches!(&outcome, Outcome::Rows(rows) if rows.total == 0) {
            outcome = Outcome::Nothing(evidence.why_nothing(&question.needs));
        } else if let Some(unrecorded) = evidence.describe_unrecorded(&question.needs) {
            match outcome {
                // An event that was not recorded has no view, so the query failed.
                Outcome::Failed(_) => outcome = Outcome::Nothing(unrecorded),
                Outcome::Rows(_) => notes.push(unrecorded),
                Outcome::Nothing(_) => {}
            }
        }
        Ok(Answered { question: question.clone(), outcome, notes, gaps })
    }
}

async fn by_measure(
    (trace, filter): (&SuperTrace, &Filter),
    asked: &Measure,
    options: Result<MeasureOptions, Error>,
    (sort, top): (Option<&str>, usize),
    notes: &mut Vec<String>,
) -> Result<(Outcome, usize)> {
    let measured = match options {
        Ok(options) => measure(trace, asked, filter, &options).await,
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
    let Measured { answer, gaps } = measured;
    let columns = answer.columns.iter().map(|column| Column {
        name: column.name.to_string(),
        unit: match column.kind {
            Kind::Length => Unit::Ticks,
            Kind::Object => Unit::Object,
            _ => Unit::Other,
        },
    });
    let (columns, total) = (columns.collect(), answer.rows.len());
    let rows = first_rows(&answer, sort, top);
    notes.extend(answer.notes);
    Ok((Outcome::Rows(Rows { columns, rows, total }), gaps))
}

/// The first `top` rows, or those with the largest values in the column `sort`.
fn first_rows(answer: &Answer, sort: Option<&str>, top: usize) -> Vec<Vec<Cell<'static>>> {
    let Answer { columns, rows, .. } = answer;
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    let place = sort.and_then(|sort| names.iter().position(|name| means(sort, name, &names)));
    let mut order: Vec<usize> = (0..rows.len()).collect();
    if let Some(place) = place {
        let sizes: Vec<f64> = rows.iter().map(|row| size(&row[place])).collect();
        // The sort is stable: rows with equal values keep the order of the answer.
        order.sort_by(|a, b| sizes[*b].total_cmp(&sizes[*a]));
    }
    let cell = |row: usize, column: usize| measured::cell(rows.cell(row, column)).into_owned();
    let row = |row: usize| (0..columns.len()).map(|column| cell(row, column)).collect();
    order.into_iter().take(top).map(row).collect()
}

/// The value by which rows are sorted. A value that is no number is smaller than any number.
fn size(value: &Value) -> f64 {
    match value {
        Value::Number(number) => *number as f64,
        Value::Fraction(number) => *number,
        Value::Null | Value::Text(_) => f64::NEG_INFINITY,
    }
}

/// The time limit of a query. The query is part of the recording's schema, which may come from an untrusted source.
const MOST_TIME: Duration = Duration::from_secs(60);

async fn by_query(trace: &SuperTrace, query: &str, top: usize) -> Result<Outcome> {
    let result = match trace.sql(query).await {
        Ok(result) => result,
        Err(error) => return Ok(Outcome::Failed(error.to_string())),
    };
    let column = |name: &String| Column {
        unit: match name.as_str() {
            "object" | "instruction" => Unit::Object,
            name if name.ends_with("_ns") && name != "ts_ns" => Unit::Nanos,
            _ => Unit::Other,
        },
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
        let cells: Result<Vec<Vec<Cell<'_>>>> = kept.columns().iter().map(cells_of).collect();
        let cells = match cells {
            Ok(cells) => cells,
            Err(error) => return Ok(Outcome::Failed(format!("{error:#}"))),
        };
        rows.extend((0..kept.num_rows()).map(|row| cells.iter().map(|column| column[row].clone()).collect()));
    }
    Ok(Outcome::Rows(Rows { columns, rows, total }))
}

fn cells_of(column: &ArrayRef) -> Result<Vec<Cell<'static>>> {
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
        _ => Cell::from(column.as_string::<i32>().value(row).to_string()),
    };
    Ok((0..column.len()).map(cell).collect())
}
