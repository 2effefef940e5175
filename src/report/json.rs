//! The report as one JSON object. Ticks are not converted, and all columns are included.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{
    Report, Section,
    answers::{Answered, Outcome, Rows},
    command::command,
};
use crate::output::print_json;

pub(super) fn print(report: &Report) -> Result<()> {
    let Report { trace, evidence, .. } = report;
    print_json(&json!({
        "path": trace.path().display().to_string(),
        "command": trace.info().get("command"),
        "ended": trace.info().get("ended"),
        "first_tick": trace.first_tick().map(|tick| tick.0),
        "last_tick": trace.last_tick().map(|tick| tick.0),
        "tick_hz": trace.tick_hz().map(|hz| hz.per_second()),
        "kernel_side": evidence.kernel_side,
        "missing_tracepoints": evidence.missing,
        "gaps": evidence.gaps,
        "lost_events": evidence.lost,
        "by_default": report.is_by_default,
        "schemata": report.sections.iter().map(|section| schema(report, section)).collect::<Vec<_>>(),
    }))
}

fn schema(report: &Report, section: &Section) -> Value {
    let Section { schema, answers } = section;
    json!({
        "name": schema.name,
        "about": schema.about,
        "unrecorded_events": report.evidence.not_recorded(&schema.events),
        "questions": answers.iter().map(|answered| question(report, answered)).collect::<Vec<_>>(),
    })
}

fn question(report: &Report, answered: &Answered) -> Value {
    let Answered { question, outcome, notes, gaps } = answered;
    let (rows, total, why, error) = match outcome {
        Outcome::Rows(rows) => (objects(rows), rows.total, None, None),
        Outcome::Nothing(why) => (Vec::new(), 0, Some(why), None),
        Outcome::Failed(error) => (Vec::new(), 0, None, Some(error)),
    };
    json!({
        "text": question.text,
        "answered_by": command(report.trace.path(), question, &report.processes),
        "rows": rows,
        "total_rows": total,
        "why_none": why,
        "error": error,
        "notes": notes,
        "gaps": gaps,
    })
}

fn objects(rows: &Rows) -> Vec<Value> {
    let object = |row: &Vec<crate::output::Cell<'_>>| {
        let cells = rows.columns.iter().zip(row).map(|(column, cell)| (column.name.clone(), cell.json()));
        Value::Object(cells.collect::<Map<_, _>>())
    };
    rows.rows.iter().map(object).collect()
}
