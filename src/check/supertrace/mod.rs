//! `sigmund check T`: whether a super-trace can be trusted.

mod around;
mod tables;

use std::io;

use anyhow::Result;
use serde_json::{Map, Value, json};
use sigmund_model::Severity;
use sigmund_query::{Figure, Item, Listed, Report, Trust, Verdict, check};
use sigmund_sql::SuperTrace;

use crate::{
    Found, answer,
    cli::{CheckArgs, CheckPart, FormatArg},
    output::{Table, counted, print_json},
    terminal::line,
};

/// The number of LWPs shown in human format, unless all are requested.
const LWPS_SHOWN: usize = 20;

pub(super) async fn run(args: CheckArgs) -> Result<Found> {
    let trace = answer::open(args.trace.as_deref(), args.damage.into()).await?;
    let listed = if args.all { Listed::ALL } else { Listed::first(args.list) };
    let report = check(&trace, listed).await?;
    match (args.format, args.only) {
        (FormatArg::Human, None) => print_all(&trace, &report, args.all)?,
        (FormatArg::Json, None) => print_object(&trace, &report)?,
        (format, only) => {
            table(&trace, &report, only.unwrap_or(CheckPart::Invariants)).print(format)?;
        }
    }
    Ok(match report.trust() {
        Trust::Sound | Trust::SoundWithGaps => Found::Something,
        Trust::Broken | Trust::Empty => Found::Nothing,
    })
}

/// A part of the report as a table.
fn table(trace: &SuperTrace, report: &Report, part: CheckPart) -> Table {
    match part {
        CheckPart::Invariants => tables::invariants(&report.items),
        CheckPart::Witnesses => tables::witnesses(&report.lwps),
        CheckPart::Disagreements => tables::disagreements(trace, &report.disagreements),
        CheckPart::Losses => tables::losses(trace, &report.losses),
        CheckPart::Gaps => tables::gaps(trace, &report.gaps),
        CheckPart::CpuTimes => tables::cpu_times(trace, &report.cpu_times),
        CheckPart::Clocks => tables::clocks(&report.clocks),
    }
}

fn print_all(trace: &SuperTrace, report: &Report, all: bool) -> Result<()> {
    for item in &report.items {
        print_item(item)?;
    }
    for part in CheckPart::TABLES {
        let mut table = table(trace, report, part);
        if table.rows.is_empty() {
            continue;
        }
        line("")?;
        line(table.heading)?;
        let left = table.rows.len().saturating_sub(LWPS_SHOWN);
        let shortened = part == CheckPart::Witnesses && !all && left > 0;
        if shortened {
            table.rows.truncate(LWPS_SHOWN);
        }
        table.print(FormatArg::Human)?;
        if shortened {
            line(format_args!("and {}; --all shows them", counted(left as u64, "more LWP")))?;
        }
        if part == CheckPart::Disagreements {
            around::print(trace, &report.disagreements)?;
        }
    }
    Ok(line(format_args!("{}: {}", trace.path().display(), conclusion(report)))?)
}

/// The first and the last part of the output of [`run`].
pub(crate) fn print_excerpt(trace: &SuperTrace, report: &Report) -> Result<()> {
    report.items.first().map_or(Ok(()), print_item)?;
    line("…")?;
    Ok(line(format_args!("{}: {}", trace.path().display(), conclusion(report)))?)
}

fn print_item(item: &Item) -> io::Result<()> {
    line(format_args!("{:<15} {}", item.verdict, item.invariant))?;
    let figures: Vec<String> = item.figures.iter().map(figure).collect();
    let detail = Some(item.detail.clone()).filter(|detail| !detail.is_empty());
    let more: Vec<String> =
        (!figures.is_empty()).then(|| figures.join(", ")).into_iter().chain(detail).collect();
    if item.verdict != Verdict::NotApplicable && !more.is_empty() {
        line(format_args!("{:<15} {}", "", more.join("; ")))?;
    }
    Ok(())
}

/// The verdict in one sentence.
fn conclusion(report: &Report) -> String {
    let with = |verdict| report.items.iter().filter(|item| item.verdict == verdict).count();
    let verdict = report.trust().name();
    match report.trust() {
        Trust::Sound => format!("{verdict}: {}", holding(report)),
        Trust::SoundWithGaps => {
            format!("{verdict}: {}", holding(report))
        }
        Trust::Empty => {
            let missing: Vec<&str> = report
                .losses
                .iter()
                .filter(|loss| loss.severity != Severity::Note.name())
                .map(|loss| loss.example.as_str())
                .collect();
            let what = if missing.is_empty() { String::new() } else { format!(" ({})", missing.join("; ")) };
            format!("{verdict}: there is no event{what}, so no invariant can be checked")
        }
        Trust::Broken => {
            format!("{verdict}: {} of {} invariants broken", with(Verdict::Broken), report.items.len())
        }
    }
}

/// For example `12 of 12 invariants hold`. If some do not, with the reasons.
fn holding(report: &Report) -> String {
    let with = |verdict| report.items.iter().filter(|item| item.verdict == verdict).count();
    let (all, gaps, none) = (report.items.len(), with(Verdict::Gaps), with(Verdict::NotApplicable));
    let mut text = format!("{} of {all} invariants hold", with(Verdict::Ok));
    if gaps > 0 {
        text += &format!(", {gaps} outside of gaps");
    }
    if none > 0 {
        text += &format!(", {none} not applicable");
    }
    text
}

fn print_object(trace: &SuperTrace, report: &Report) -> Result<()> {
    let mut object = Map::new();
    object.insert("trace".into(), trace.path().display().to_string().into());
    object.insert("verdict".into(), report.trust().name().into());
    object.insert("conclusion".into(), conclusion(report).into());
    for part in [CheckPart::Invariants].into_iter().chain(CheckPart::TABLES) {
        let rows = table(trace, report, part).objects();
        object.insert(part.name().into(), Value::Array(rows));
    }
    let listed = object.get_mut("disagreements").and_then(Value::as_array_mut).into_iter().flatten();
    for (disagreement, row) in report.disagreements.iter().zip(listed) {
        row["around"] = json!({
            "states": tables::states(&disagreement.around.states).objects(),
            "events": tables::events(&disagreement.around.events).objects(),
        });
    }
    print_json(&Value::Object(object))
}

/// `agree 10959`, `percent 99.9909`.
fn figure(figure: &Figure) -> String {
    let value = figure.value;
    if value.fract() == 0.0 {
        format!("{} {value:.0}", figure.name)
    } else {
        format!("{} {value:.4}", figure.name)
    }
}
