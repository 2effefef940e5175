//! Prints answers of measures, for people and for programs.

use std::ops::Range;

use anyhow::{Error, Result};
use sigmund_measures::{Answer, Kind, Measure, Value, object_text};
use sigmund_model::{Hertz, Ticks};
use sigmund_query::{Filter, MeasureOptions, Measured, OfHosts, compare_traces, measure_hosts};
use sigmund_sql::SuperTrace;

use crate::{
    Found,
    cli::{FormatArg, Question, Unit},
    gaps,
    output::{Cell, EachRow, length, notice, print_rows},
};

pub(crate) async fn run(
    trace: &SuperTrace,
    measure: &'static Measure,
    filter: &Filter,
    question: &Question,
) -> Result<Found> {
    let OfHosts { answers, notes } = measure_hosts(trace, measure, filter, &options(question)).await?;
    print(
        &answers.iter().map(|of| (of.host, &of.measured.answer, of.trace.tick_hz())).collect::<Vec<_>>(),
        question,
    )?;
    notes.iter().for_each(|note| notice(note));
    finish(answers.iter().map(|of| (of.host, &of.measured)), !notes.is_empty(), question)
}

/// Prints the differences between two super-traces.
pub(crate) async fn compare(
    a: &SuperTrace,
    b: &SuperTrace,
    measure: &'static Measure,
    filter: &Filter,
    question: &Question,
) -> Result<Found> {
    let measured = compare_traces((a, b), measure, filter, &options(question)).await?;
    let answer = &measured.answer;
    if question.format.of_table()? == FormatArg::Human {
        print_compared(answer)?;
    } else {
        print(&[(None, answer, None)], question)?;
    }
    finish([(None, &measured)].into_iter(), false, question)
}

/// For people, each figure is followed by its unit: `31.2 ms/s`, `450 ns`, `12.0 /s`.
fn print_compared(answer: &Answer) -> Result<()> {
    let unit = answer.column("unit");
    let places: Vec<usize> = (0..answer.columns.len()).filter(|place| Some(*place) != unit).collect();
    let columns: Vec<&str> = places.iter().map(|place| &*answer.columns[*place].name).collect();
    let cells = |row: &[Value<'_>]| {
        let unit = unit.map(|unit| &row[unit]);
        let cell = |place: &usize| match (answer.columns[*place].kind, &row[*place], unit) {
            (Kind::Fraction, Value::Fraction(figure), Some(Value::Text(unit))) => {
                Cell::Length(with_unit(*figure, unit))
            }
            (_, value, _) => cell(value.clone()).into_owned(),
        };
        places.iter().map(cell).collect::<Vec<Cell<'_>>>()
    };
    let rows = |some: Range<usize>, each: &mut EachRow<'_>| {
        answer.rows.range(some).try_for_each(|row| each(&cells(&row)))
    };
    print_rows(&columns, answer.rows.len(), rows, FormatArg::Human)
}

fn with_unit(figure: f64, unit: &str) -> String {
    let ticks = |ns: f64| signed(ns.round() as i64, Hertz::new(1e9));
    match unit {
        "ns" => ticks(figure),
        "ns/s" => format!("{}/s", ticks(figure)),
        _ => format!("{figure:.1} {}", unit.strip_prefix('1').unwrap_or(unit)),
    }
}

pub(crate) fn options(question: &Question) -> MeasureOptions {
    let args = &question.measure;
    let pair = match question.reactivity.as_slice() {
        [from, to] => Some((from.clone(), to.clone())),
        _ => args.pair.clone(),
    };
    let subject = args.subject.clone();
    MeasureOptions { by: args.by, worst: args.worst, subject, pair, ..MeasureOptions::default() }
}

/// Prints notes, and returns how the command ends. `is_explained` says that other notes were printed.
fn finish<'m>(
    measured: impl Iterator<Item = (Option<&'m str>, &'m Measured)>,
    mut is_explained: bool,
    question: &Question,
) -> Result<Found> {
    let (mut rows, mut gaps) = (0, 0);
    for (host, measured) in measured {
        let of_host = host.map_or_else(String::new, |host| format!("{host}: "));
        measured.answer.rows.check().map_err(Error::msg)?;
        measured.answer.notes.iter().for_each(|note| notice(&format!("{of_host}{note}")));
        is_explained |= !measured.answer.notes.is_empty();
        rows += measured.answer.rows.len();
        gaps += measured.gaps;
    }
    if rows == 0 && !is_explained {
        nothing();
    }
    Ok(gaps::finish(rows, gaps, question.measure.strict))
}

/// The notice about an answer without rows that nothing else explains.
pub(crate) fn nothing() {
    notice(
        "nothing of the kind happened or was recorded in this time; `sigmund info` tells what was recorded",
    );
}

/// The name of the host, if it is of a fleet; its answer; and the rate of its clock.
pub(crate) type OfHost<'a> = (Option<&'a str>, &'a Answer, Option<Hertz>);

/// Prints answers. For people, each length has a fitting unit. For programs, lengths are in ticks, and additionally in
/// the requested unit.
pub(crate) fn print(answers: &[OfHost<'_>], question: &Question) -> Result<()> {
    let format = question.format.of_table()?;
    let Some((first_host, first, _)) = answers.first() else { return Ok(()) };
    let is_for_people = format == FormatArg::Human && question.unit.is_none();
    let in_time = is_for_people && answers.iter().all(|(_, _, tick_hz)| tick_hz.is_some());
    let mut columns: Vec<String> = first_host.iter().map(|_| "host".to_string()).collect();
    for column in &first.columns {
        let name = column.name.strip_suffix("_tick").filter(|_| column.kind == Kind::Length);
        let is_taken = |name: &str| first.columns.iter().any(|other| other.name == name);
        columns.push(match name {
            // For example, "culprit" is the name, and "culprit_tick" is the time.
            Some(name) if in_time && is_taken(name) => format!("{name}_time"),
            Some(name) if in_time => name.to_string(),
            _ => column.name.to_string(),
        });
        if let (Some(name), Some(unit)) = (name, question.unit) {
            columns.push(format!("{name}_{}", unit.name()));
        }
    }
    if let Some(unit) = question.unit {
        // Fails here if the rate is unknown, so that no row fails later.
        let with_rows = answers.iter().filter(|(_, answer, _)| !answer.rows.is_empty());
        with_rows
            .map(|(.., tick_hz)| tick_hz)
            .try_for_each(|tick_hz| unit.of(Ticks(0), *tick_hz).map(drop))?;
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let unit = question.unit;
    let mut len = 0;
    let of_hosts = answers.iter().map(|of_host @ (_, answer, _)| {
        let first = len;
        len += answer.rows.len();
        (first..len, of_host)
    });
    let of_hosts: Vec<(Range<usize>, &OfHost<'_>)> = of_hosts.collect();
    let rows = |some: Range<usize>, each: &mut EachRow<'_>| {
        let mut cells = Vec::new();
        of_hosts.iter().try_for_each(|(numbers, of_host)| {
            let (from, to) =
                (some.start.clamp(numbers.start, numbers.end), some.end.clamp(numbers.start, numbers.end));
            of_host.1.rows.try_for_each(from - numbers.start..to - numbers.start, |row| {
                cells.clear();
                add_cells(of_host, row.drain(..), (format == FormatArg::Human, unit), &mut cells);
                each(&cells)
            })
        })
    };
    print_rows(&columns, len, rows, format)
}

fn add_cells<'a>(
    (host, answer, tick_hz): &OfHost<'a>,
    row: impl Iterator<Item = Value<'a>>,
    (is_for_people, unit): (bool, Option<Unit>),
    cells: &mut Vec<Cell<'a>>,
) {
    cells.extend(host.iter().map(|host| Cell::Text((*host).into())));
    for (column, value) in answer.columns.iter().zip(row) {
        let in_unit = match (column.kind, unit) {
            (Kind::Length, Some(unit)) => Some(in_unit(&value, unit, *tick_hz).unwrap_or(Cell::Nothing)),
            _ => None,
        };
        match (column.kind, value) {
            (Kind::Length, Value::Number(ticks)) if is_for_people && unit.is_none() => {
                cells.push(Cell::Length(signed(ticks, *tick_hz)));
            }
            (Kind::Object, Value::Number(object)) if is_for_people => {
                cells.push(Cell::Length(object_text(object)));
            }
            (_, value) => cells.push(cell(value)),
        }
        cells.extend(in_unit);
    }
}

pub(crate) fn signed(ticks: i64, tick_hz: Option<Hertz>) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    format!("{sign}{}", length(Ticks(ticks.unsigned_abs()), tick_hz))
}

fn in_unit(value: &Value<'_>, unit: Unit, tick_hz: Option<Hertz>) -> Result<Cell<'static>> {
    let Value::Number(ticks) = value else { return Ok(Cell::Nothing) };
    let length = unit.of(Ticks(ticks.unsigned_abs()), tick_hz)?;
    Ok(Cell::Fraction(if *ticks < 0 { -length } else { length }))
}

pub(crate) fn cell(value: Value<'_>) -> Cell<'_> {
    match value {
        Value::Null => Cell::Nothing,
        Value::Number(number) => Cell::Count(number),
        Value::Fraction(number) => Cell::Fraction(number),
        Value::Text(text) => Cell::Text(text),
    }
}
