//! `sigmund check FILE.paje`: whether a Pajé file, written by any program, follows the rules of the format.

use std::{
    io::{BufRead, BufReader},
    path::Path,
};

use anyhow::{Context, Result, bail};
use serde_json::json;
use sigmund_export::sinks::paje::{self, Fault, Report};
use sigmund_files::open_regular;

use crate::{
    Found,
    cli::{CheckArgs, FormatArg},
    output::{Table, counted, print_json},
    terminal::line,
};

/// The number of bytes read to recognise a Pajé file.
const HEAD: usize = 64 << 10;

/// Checks a Pajé file; `None` if `path` is not one: a folder, or a file of another format.
pub(super) fn run(path: &Path, args: &CheckArgs) -> Result<Option<Found>> {
    if !path.is_file() {
        return Ok(None);
    }
    let context = || path.display().to_string();
    let mut file = BufReader::with_capacity(HEAD, open_regular(path).with_context(context)?);
    if !paje::is_paje(file.fill_buf().with_context(context)?) {
        return Ok(None);
    }
    if args.only.is_some() {
        bail!("--only is for super-traces: {} is a Pajé file", path.display());
    }
    let report = paje::check(file).with_context(context)?;
    match args.format {
        FormatArg::Human => print_report(path, &report, args)?,
        FormatArg::Json => print_json(&json!({
            "file": path.display().to_string(),
            "lines": report.lines,
            "events": report.events,
            "faults": table(&report).objects(),
            "more_faults": report.more_faults,
        }))?,
        format => table(&report).print(format)?,
    }
    Ok(Some(if report.faults.is_empty() { Found::Something } else { Found::Nothing }))
}

fn table(report: &Report) -> Table {
    Table::new("Faults", &["line", "kind", "what"], &report.faults, |Fault { line, kind, what }| {
        vec![(*line).into(), kind.name().into(), what.as_str().into()]
    })
}

fn print_report(path: &Path, report: &Report, args: &CheckArgs) -> Result<()> {
    let shown = if args.all { report.faults.len() } else { args.list.min(report.faults.len()) };
    for fault in &report.faults[..shown] {
        line(fault)?;
    }
    let faults = report.faults.len() as u64 + report.more_faults;
    let not_shown = faults - shown as u64;
    if not_shown > 0 {
        line(format_args!("and {}", counted(not_shown, "more fault")))?;
    }
    let events: u64 = report.events.values().sum();
    let contents = format!("{}, {}", counted(report.lines, "line"), counted(events, "event"));
    let verdict = if faults == 0 { "valid Pajé".into() } else { counted(faults, "fault") };
    Ok(line(format_args!("{}: {verdict}: {contents}", path.display()))?)
}
