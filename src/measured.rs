//! Answers of measures, for people and for programs.

use anyhow::Result;
use sigmund_measures::{Answer, Kind, Measure, Value};
use sigmund_model::{Hertz, Ticks};
use sigmund_query::{Filter, MeasureOptions, Measured, compare_traces, measure};
use sigmund_sql::SuperTrace;

use crate::{
    Found,
    cli::{FormatArg, Question, Unit},
    output::{Cell, counted, length, notice, print_table},
};

pub(crate) async fn run(
    trace: &SuperTrace,
    measure_: &'static Measure,
    filter: &Filter,
    question: &Question,
) -> Result<Found> {
    let measured = measure(trace, measure_, filter, &options(question)).await?;
    print(&measured.answer, question, trace.tick_hz())?;
    finish(&measured, question)
}

/// The differences between two super-traces.
pub(crate) async fn compare(
    a: &SuperTrace,
    b: &SuperTrace,
    measure: &'static Measure,
    filter: &Filter,
    question: &Question,
) -> Result<Found> {
    let measured = compare_traces((a, b), measure, filter, &options(question)).await?;
    print(&measured.answer, question, None)?;
    finish(&measured, question)
}

fn options(question: &Question) -> MeasureOptions {
    let args = &question.measure;
    let pair = match question.reactivity.as_slice() {
        [from, to] => Some((from.clone(), to.clone())),
        _ => args.pair.clone(),
    };
    MeasureOptions { by: args.by, worst: args.worst, subject: args.subject.clone(), pair }
}

/// Notes, and how the command ends.
fn finish(measured: &Measured, question: &Question) -> Result<Found> {
    for note in &measured.answer.notes {
        notice(note);
    }
    if measured.gaps > 0 {
        let gaps = counted(measured.gaps as u64, "gap");
        notice(&format!("events are missing in this time ({gaps}): `sigmund check --only gaps` lists them"));
    }
    Ok(match (measured.answer.rows.is_empty(), measured.gaps) {
        (_, 1..) if question.measure.strict => Found::Gaps,
        (true, _) => Found::Nothing,
        _ => Found::Something,
    })
}

/// For people, lengths have a unit of their own; for programs they are ticks, and in the unit that was asked for, too.
fn print(answer: &Answer, question: &Question, tick_hz: Option<Hertz>) -> Result<()> {
    let format = question.format.of_table()?;
    let is_for_people = format == FormatArg::Human && question.unit.is_none();
    let mut columns: Vec<String> = Vec::new();
    for column in &answer.columns {
        let name = column.name.strip_suffix("_tick").filter(|_| column.kind == Kind::Length);
        let is_taken = |name: &str| answer.columns.iter().any(|other| other.name == name);
        columns.push(match name {
            // "culprit" is the name, "culprit_tick" the time.
            Some(name) if is_for_people && tick_hz.is_some() && is_taken(name) => format!("{name}_time"),
            Some(name) if is_for_people && tick_hz.is_some() => name.to_string(),
            _ => column.name.to_string(),
        });
        if let (Some(name), Some(unit)) = (name, question.unit) {
            columns.push(format!("{name}_{}", unit.name()));
        }
    }
    let mut rows = Vec::with_capacity(answer.rows.len());
    for row in &answer.rows {
        let mut cells = Vec::with_capacity(columns.len());
        for (column, value) in answer.columns.iter().zip(row) {
            match (column.kind, value) {
                (Kind::Length, Value::Number(ticks)) if is_for_people => {
                    cells.push(Cell::Length(signed(*ticks, tick_hz)));
                }
                _ => cells.push(cell(value)),
            }
            if let (Kind::Length, Some(unit)) = (column.kind, question.unit) {
                cells.push(in_unit(value, unit, tick_hz)?);
            }
        }
        rows.push(cells);
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    print_table(&columns, &rows, format)
}

pub(crate) fn signed(ticks: i64, tick_hz: Option<Hertz>) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    format!("{sign}{}", length(Ticks(ticks.unsigned_abs()), tick_hz))
}

fn in_unit(value: &Value, unit: Unit, tick_hz: Option<Hertz>) -> Result<Cell> {
    let Value::Number(ticks) = value else { return Ok(Cell::Nothing) };
    let length = unit.of(Ticks(ticks.unsigned_abs()), tick_hz)?;
    Ok(Cell::Fraction(if *ticks < 0 { -length } else { length }))
}

pub(crate) fn cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Nothing,
        Value::Number(number) => Cell::Count(*number),
        Value::Fraction(number) => Cell::Fraction(*number),
        Value::Text(text) => Cell::Text(text.to_string()),
    }
}
