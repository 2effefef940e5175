//! `sigmund ctl`: inspects a program while it is recorded, and changes what it records.

use std::io::Write;

use anyhow::Result;
use fut::control::{self, Process, Reply, Request};

use crate::{
    Found,
    cli::{CtlArgs, CtlVerb, FormatArg, KeyMask},
    output::{self, Cell, print_table},
    terminal,
};

pub(crate) fn run(args: &CtlArgs) -> Result<Found> {
    let request = match &args.verb {
        CtlVerb::List { .. } => Request::List,
        CtlVerb::Enable { pattern } => Request::Enable(pattern.clone()),
        CtlVerb::Disable { pattern } => Request::Disable(pattern.clone()),
        CtlVerb::Keys { mask, .. } => Request::Keys(mask.map(|KeyMask(mask)| mask)),
        CtlVerb::Status { .. } => Request::Status,
        CtlVerb::Threads { .. } => Request::Threads,
    };
    let reply = Process::find(args.pid)?.ask(&request)?;
    match &args.verb {
        CtlVerb::Enable { pattern } => switched(args.pid, pattern, "on", &reply),
        CtlVerb::Disable { pattern } => switched(args.pid, pattern, "off", &reply),
        CtlVerb::Status { format } => status(&reply, *format),
        CtlVerb::List { format } | CtlVerb::Keys { format, .. } | CtlVerb::Threads { format } => {
            if matches!(args.verb, CtlVerb::Keys { .. }) {
                output::notice(&format!("the key mask is {:#x}", reply.number("key_mask").unwrap_or(0)));
            }
            table(&reply, *format)
        }
    }
}

/// Reports the result of switching events. For scripts, the exit status has it.
fn switched(pid: u32, pattern: &str, to: &str, reply: &Reply) -> Result<Found> {
    let number = |fact| reply.number(fact).unwrap_or(0);
    let (matched, changed) = (number("matched"), number("changed"));
    if matched == 0 {
        output::notice(&format!(
            "process {pid}: nothing matched {pattern:?}; `sigmund ctl {pid} list` has the names"
        ));
        return Ok(Found::Nothing);
    }
    let matching = output::counted(matched, "event");
    output::notice(&format!("process {pid}: {matching} matched, {changed} switched {to}"));
    if to == "on" && number("key_mask") != u64::MAX {
        let mask = number("key_mask");
        output::notice(&format!(
            "the key mask is {mask:#x}: events with other keys stay off (`sigmund ctl {pid} keys`)"
        ));
    }
    Ok(Found::Something)
}

/// Prints facts, and a row for each LWP. In JSON, both are in one object.
fn status(reply: &Reply, format: FormatArg) -> Result<Found> {
    match format {
        FormatArg::Human => {
            for (name, value) in &reply.facts {
                terminal::line(format_args!("{name:<18} {}", shown(value)))?;
            }
            terminal::line("")?;
        }
        FormatArg::Json | FormatArg::Ndjson => {
            let mut object = serde_json::Map::new();
            object.extend(reply.facts.iter().map(|(name, value)| (name.clone(), cell(value).json())));
            let row = |row: &Vec<control::Cell>| {
                let cells = reply.columns.iter().cloned().zip(row.iter().map(|value| cell(value).json()));
                serde_json::Value::Object(cells.collect())
            };
            object.insert("lwps".into(), reply.rows.iter().map(row).collect());
            let out = &mut terminal::data();
            if format == FormatArg::Json {
                serde_json::to_writer_pretty(&mut *out, &object)?;
            } else {
                serde_json::to_writer(&mut *out, &object)?;
            }
            writeln!(out)?;
            out.flush()?;
            return Ok(Found::Something);
        }
        FormatArg::Tsv | FormatArg::Csv => {}
    }
    table(reply, format)?;
    Ok(Found::Something)
}

/// Prints the table of an answer. For people, columns without any value are left out.
fn table(reply: &Reply, format: FormatArg) -> Result<Found> {
    let for_people = format == FormatArg::Human;
    let has_values = |column: usize| reply.rows.iter().any(|row| row[column] != control::Cell::Nothing);
    let kept: Vec<usize> = (0..reply.columns.len()).filter(|c| !for_people || has_values(*c)).collect();
    let columns: Vec<&str> = kept.iter().map(|column| reply.columns[*column].as_str()).collect();
    let row = |row: &Vec<control::Cell>| kept.iter().map(|column| cell(&row[*column])).collect();
    let rows: Vec<Vec<Cell<'static>>> = reply.rows.iter().map(row).collect();
    print_table(&columns, &rows, format)?;
    if let Some(more) = reply.number("not_shown").filter(|more| *more > 0) {
        output::notice(&format!("and {more} more"));
    }
    Ok(if rows.is_empty() { Found::Nothing } else { Found::Something })
}

fn cell(value: &control::Cell) -> Cell<'static> {
    match value {
        control::Cell::Nothing => Cell::Nothing,
        // Masks are sent as text. Counts never get that large.
        control::Cell::Number(number) => Cell::Count(i64::try_from(*number).unwrap_or(i64::MAX)),
        control::Cell::Fraction(fraction) => Cell::Fraction(*fraction),
        control::Cell::Text(text) => Cell::from(text.as_str()),
    }
}

fn shown(value: &control::Cell) -> String {
    match value {
        control::Cell::Nothing => "-".into(),
        control::Cell::Number(number) => number.to_string(),
        control::Cell::Fraction(fraction) => fraction.to_string(),
        control::Cell::Text(text) => text.clone(),
    }
}
