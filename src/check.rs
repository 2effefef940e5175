//! `sigmund check`: whether a super-trace can be trusted.

use std::io::{self, Write};

use anyhow::Result;
use sigmund_query::{Figure, Verdict, check};

use crate::{Found, answer, cli::TraceArg};

pub(crate) async fn run(args: TraceArg) -> Result<Found> {
    let trace = answer::open(args.trace.as_deref()).await?;
    let report = check(&trace).await?;
    let out = &mut io::stdout().lock();
    for item in &report.items {
        writeln!(out, "{:<15} {}", item.verdict, item.promise)?;
        let figures: Vec<String> = item.figures.iter().map(figure).collect();
        let detail = Some(item.detail.clone()).filter(|detail| !detail.is_empty());
        let more: Vec<String> =
            (!figures.is_empty()).then(|| figures.join(", ")).into_iter().chain(detail).collect();
        if item.verdict != Verdict::NotApplicable && !more.is_empty() {
            writeln!(out, "{:<15} {}", "", more.join("; "))?;
        }
    }
    let broken = report.items.iter().filter(|item| item.verdict == Verdict::Broken).count();
    if broken > 0 {
        writeln!(out, "{}: {broken} of {} promises broken", trace.path().display(), report.items.len())?;
        return Ok(Found::Nothing);
    }
    writeln!(out, "{}: can be trusted", trace.path().display())?;
    Ok(Found::Something)
}

/// `agree 10959`, `percent 99.9909`.
pub(crate) fn figure(figure: &Figure) -> String {
    let value = figure.value;
    if value.fract() == 0.0 {
        format!("{} {value:.0}", figure.name)
    } else {
        format!("{} {value:.4}", figure.name)
    }
}
