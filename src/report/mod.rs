//! `sigmund report`: answers, on one page, the questions that a super-trace was recorded for.
//!
//! ```text
//! evidence.rs   which events the trace has, and why others are missing
//! answers.rs    the answer to one question: rows, or why there are none
//! command.rs    the command that prints a whole answer
//! page.rs       the page for people, plain or in Markdown
//! json.rs       the same for programs
//! ```
//! This module computes nothing itself: each question is answered by a measure or an SQL query.

mod answers;
mod command;
mod evidence;
mod json;
mod page;

use std::sync::Arc;

use anyhow::{Context, Result};
use sigmund_model::tables::info_keys::RECORDED_SCHEMA;
use sigmund_query::{Filter, ProcessRef};
use sigmund_schemata::{OVERVIEW, Schema, our};
use sigmund_sql::SuperTrace;

use crate::{
    Found, answer,
    cli::{ReportArgs, ReportFormat},
    output::{notice, report_error},
};
use answers::{Answered, Outcome};
use evidence::Evidence;

/// The questions of one schema, with their answers.
struct Section {
    schema: Schema,
    answers: Vec<Answered>,
}

/// A whole report.
struct Report {
    trace: Arc<SuperTrace>,
    evidence: Evidence,
    sections: Vec<Section>,
    /// The processes that answers of measures are limited to; all if empty.
    processes: Vec<ProcessRef>,
    /// Whether the trace names no schema, and none was requested.
    is_by_default: bool,
}

pub(crate) async fn run(args: ReportArgs) -> Result<Found> {
    let trace = Arc::new(answer::open(args.trace.as_deref(), args.damage.into()).await?);
    sigmund_query::register_measures(&trace);
    let processes: Vec<ProcessRef> = args.process.into_iter().flat_map(|list| list.0).collect();
    let filter = Filter { processes, ..Filter::default() };
    filter.check_known(&trace).await?;
    let evidence = Evidence::of(&trace).await?;
    let mut schemata = args.schema;
    if schemata.is_empty() {
        schemata = recorded(&trace);
    }
    let is_by_default = schemata.is_empty();
    if is_by_default {
        schemata.push(our(OVERVIEW).context("the schema `overview`")?);
    }
    let mut sections = Vec::with_capacity(schemata.len());
    for schema in schemata {
        let mut answers = Vec::with_capacity(schema.questions.len());
        for (number, question) in (1..).zip(&schema.questions) {
            let top = args.top.map_or(question.top, |top| top as usize);
            let answered = Answered::ask(&trace, (&evidence, &filter), question, top).await?;
            if let Outcome::Failed(why) = &answered.outcome {
                report_error(&format!("question {number} of the schema {}: {why}", schema.name));
            }
            answers.push(answered);
        }
        sections.push(Section { schema, answers });
    }
    trace.notes().iter().for_each(|note| notice(&format!("warning: {note}")));
    let report = Report { trace, evidence, sections, processes: filter.processes, is_by_default };
    match args.format {
        ReportFormat::Human => page::print(&report, page::Style::Plain)?,
        ReportFormat::Markdown => page::print(&report, page::Style::Markdown)?,
        ReportFormat::Json => json::print(&report)?,
    }
    let mut answers = report.sections.iter().flat_map(|section| &section.answers);
    let has_answer = answers.any(|answer| matches!(answer.outcome, Outcome::Rows(_)));
    Ok(match has_answer {
        _ if args.strict && report.evidence.gaps > 0 => Found::Gaps,
        true => Found::Something,
        false => Found::Nothing,
    })
}

/// The schemata that the trace was recorded with. A schema that cannot be read is reported and left out.
fn recorded(trace: &SuperTrace) -> Vec<Schema> {
    let texts = trace.info().iter().filter(|(key, _)| key.starts_with(RECORDED_SCHEMA));
    let parsed = texts.filter_map(|(key, text)| {
        let place = format!("{}: {key}", trace.path().display());
        Schema::parse_recorded(&place, text).inspect_err(|error| report_error(&error.to_string())).ok()
    });
    parsed.collect()
}
