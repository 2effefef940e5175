//! The page for people: what was recorded, followed by each question with the first rows of its answer.

use anyhow::Result;
use sigmund_measures::object_text;
use sigmund_model::{Hertz, Printable, Ticks};
use sigmund_schemata::{Asked, Question, means, short};

use super::{
    Report, Section,
    answers::{Answered, Outcome, Rows, Unit},
    command::command,
};
use crate::{
    measured::signed,
    output::{self, Cell, counted, print_all_rows},
    terminal::line,
};

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Markdown,
}

pub(super) fn print(report: &Report, style: Style) -> Result<()> {
    head(report, style)?;
    for section in &report.sections {
        print_section(report, section, style)?;
    }
    Ok(())
}

/// The head of the page: what was recorded, for how long, and what is missing.
fn head(report: &Report, style: Style) -> Result<()> {
    let Report { trace, evidence, .. } = report;
    let fact = |key| trace.info().get(key).unwrap_or_default();
    let mut title = trace.path().display().to_string();
    if !fact("command").is_empty() {
        title += &format!(": {}, {}", fact("command"), fact("ended"));
    }
    line(if style == Style::Markdown { format!("# {}", in_markdown(&title)) } else { title })?;
    if style == Style::Markdown {
        line("")?;
    }
    let span = trace.first_tick().zip(trace.last_tick()).map(|(first, last)| Ticks(last.0 - first.0));
    let time = span.map_or("no event".into(), |span| output::length(span, trace.tick_hz()));
    let count = |key, what| counted(fact(key).parse().unwrap_or(0), what);
    let threads = counted(trace.threads()?.iter().count() as u64, "user thread");
    let (kernel, user) = (count("kernel_events", "kernel event"), count("user_events", "user event"));
    text(&format!("{time}; {kernel}, {user}, {threads}"), style)?;
    if let Some(side) = &evidence.kernel_side {
        text(side, style)?;
    }
    if !evidence.missing.is_empty() {
        let missing = evidence.missing.join(", ");
        text(&format!("tracepoints that the recorded kernel does not have: {missing}"), style)?;
    }
    let gaps = counted(evidence.gaps as u64, "gap");
    let lost = counted(evidence.lost, "event");
    match (evidence.gaps, evidence.lost) {
        (0, 0) => text("no event is lost", style)?,
        (0, _) => text(&format!("{lost} lost: `sigmund check` lists them"), style)?,
        (_, 0) => text(&format!("events are missing ({gaps}): `sigmund check` lists them"), style)?,
        (..) => {
            text(&format!("events are missing ({gaps}, {lost} lost): `sigmund check` lists them"), style)?
        }
    }
    if report.is_by_default {
        let schemata = "recorded without a schema, so this is `overview`; --schema asks for another";
        text(schemata, style)?;
    }
    Ok(())
}

fn print_section(report: &Report, section: &Section, style: Style) -> Result<()> {
    let schema = &section.schema;
    line("")?;
    match style {
        Style::Plain => line(format_args!("{}: {}", schema.name, schema.about))?,
        Style::Markdown => {
            line(format_args!("## {}", schema.name))?;
            line("")?;
            line(in_markdown(&schema.about))?;
        }
    }
    let unrecorded = report.evidence.not_recorded(&schema.events);
    if !unrecorded.is_empty() {
        text(&format!("the program did not record: {}", unrecorded.join(", ")), style)?;
    }
    for answered in &section.answers {
        line("")?;
        print_answer(report, answered, style)?;
    }
    Ok(())
}

fn print_answer(report: &Report, answered: &Answered, style: Style) -> Result<()> {
    let question = &answered.question;
    match style {
        Style::Plain => line(&question.text)?,
        Style::Markdown => {
            line(format_args!("### {}", in_markdown(&question.text)))?;
            line("")?;
        }
    }
    match &answered.outcome {
        Outcome::Nothing(why) => text(&format!("  no answer: {why}"), style)?,
        Outcome::Failed(why) => text(&format!("  error: {why}"), style)?,
        Outcome::Rows(rows) => {
            let (columns, cells) = for_people(rows, question, report.trace.tick_hz());
            match style {
                Style::Plain => {
                    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
                    print_all_rows(&columns, &cells)?;
                }
                Style::Markdown => markdown_table(&columns, &cells)?,
            }
            if rows.total > rows.rows.len() {
                let (shown, total) = (rows.rows.len(), rows.total);
                let all = match &question.asked {
                    Asked::Measure { .. } => {
                        format!("all of them: {}", command(report.trace.path(), question, &report.processes))
                    }
                    // A query would be too long to repeat.
                    Asked::Sql(_) => format!("--top {total} shows all"),
                };
                text(&format!("  {shown} of {total} rows; {all}"), style)?;
            }
        }
    }
    for note in &answered.notes {
        text(&format!("  {note}"), style)?;
    }
    if answered.gaps > 0 && matches!(answered.outcome, Outcome::Rows(_)) {
        text(
            &format!("  events are missing in this time ({})", counted(answered.gaps as u64, "gap")),
            style,
        )?;
    }
    Ok(())
}

/// The columns that the schema requests. If it requests none: all columns that have a value. Each length has a fitting
/// unit.
fn for_people(
    rows: &Rows,
    question: &Question,
    tick_hz: Option<Hertz>,
) -> (Vec<String>, Vec<Vec<Cell<'static>>>) {
    let all: Vec<&str> = rows.columns.iter().map(|column| column.name.as_str()).collect();
    let is_wanted = |name: &str| question.columns.iter().any(|wanted| means(wanted, name, &all));
    let wants_some = rows.columns.iter().any(|column| is_wanted(&column.name));
    let has_value = |place: usize| rows.rows.iter().any(|row| !matches!(row[place], Cell::Nothing));
    let is_kept = |place: &usize| has_value(*place) && (!wants_some || is_wanted(&rows.columns[*place].name));
    let kept: Vec<usize> = (0..rows.columns.len()).filter(is_kept).collect();
    let has_unit = |unit| match unit {
        Unit::Ticks => tick_hz.is_some(),
        Unit::Nanos => true,
        Unit::Object | Unit::Other => false,
    };
    let name = |place: &usize| {
        let column = &rows.columns[*place];
        let short = short(&column.name);
        match has_unit(column.unit) {
            true if short != column.name && rows.has(short) => format!("{short}_time"),
            true => short.to_string(),
            false => column.name.clone(),
        }
    };
    let cell = |row: &Vec<Cell<'static>>, place: &usize| match (&row[*place], rows.columns[*place].unit) {
        (Cell::Count(ticks), Unit::Ticks) => Cell::Length(signed(*ticks, tick_hz)),
        (Cell::Count(ns), Unit::Nanos) => Cell::Length(signed(*ns, Hertz::new(1e9))),
        (Cell::Count(object), Unit::Object) => Cell::Length(object_text(*object)),
        (cell, _) => cell.clone(),
    };
    let cells = rows.rows.iter().map(|row| kept.iter().map(|place| cell(row, place)).collect());
    (kept.iter().map(name).collect(), cells.collect())
}

fn text(what: &str, style: Style) -> Result<()> {
    match style {
        Style::Plain => line(what)?,
        // One paragraph each.
        Style::Markdown => {
            line(in_markdown(what.trim_start()))?;
            line("")?;
        }
    }
    Ok(())
}

fn markdown_table(columns: &[String], rows: &[Vec<Cell<'_>>]) -> Result<()> {
    let row = |cells: Vec<String>| line(format_args!("| {} |", cells.join(" | ")));
    row(columns.iter().map(|name| in_markdown(name)).collect())?;
    row(columns.iter().map(|_| "---".into()).collect())?;
    for cells in rows {
        row(cells.iter().map(|cell| in_markdown(&cell.for_people())).collect())?;
    }
    line("")?;
    Ok(())
}

/// Escapes text so that Markdown shows it unchanged: it cannot begin a cell, tag, link or emphasis.
fn in_markdown(text: &str) -> String {
    let mut shown = String::new();
    for c in Printable(text).to_string().chars() {
        if matches!(c, '\\' | '|' | '<' | '*' | '_' | '[' | ']' | '#' | '!' | '`' | '&') {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_in_names_is_escaped() {
        assert_eq!(in_markdown("a|b <img> ![x](y)\u{1b}"), "a\\|b \\<img> \\!\\[x\\](y)\\\\u{1b}");
    }
}
