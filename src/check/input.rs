//! `sigmund check RUN`: whether an input of `merge`, a file of any of its formats or a run, is whole. Every record is read.

use anyhow::Result;
use serde_json::{Value, json};
use sigmund_model::LossKind;

use crate::{
    Found,
    cli::{CheckArgs, FormatArg},
    inputs::{Inputs, TraceSummary},
    output::{Table, counted, notice, print_json},
    terminal::line,
};

/// Losses because of which a trace is not whole. Events that were lost as it was recorded are listed, too, but it has what was
/// written.
const BROKEN: [LossKind; 2] = [LossKind::Damaged, LossKind::Truncated];

pub(super) fn run(inputs: Inputs, args: &CheckArgs) -> Result<Found> {
    #[cfg(feature = "sql")]
    if args.only.is_some() {
        anyhow::bail!("--only is for super-traces: {} is an input of `merge`", inputs.path.display());
    }
    let path = inputs.path.display().to_string();
    let traces = inputs.counted();
    let broken = traces.iter().filter(|trace| !is_whole(trace)).count();
    let all_whole = broken == 0 && !traces.is_empty();
    match args.format {
        FormatArg::Human => {
            traces.iter().try_for_each(print)?;
            if traces.is_empty() {
                notice(&format!("{path}: it has no trace: neither side was recorded"));
            }
            if traces.len() > 1 {
                line(format_args!("{path}: {} of {} are whole", traces.len() - broken, traces.len()))?;
            }
        }
        FormatArg::Json => {
            let traces: Vec<Value> = traces.iter().map(object).collect();
            print_json(&json!({"path": path, "whole": all_whole, "traces": traces}))?;
        }
        format => {
            let rows = traces.iter().flat_map(|trace| losses(trace).rows).collect();
            Table { rows, ..losses(&TraceSummary::new(path.as_ref(), String::new(), Vec::new())) }
                .print(format)?;
        }
    }
    Ok(if all_whole { Found::Something } else { Found::Nothing })
}

fn is_whole(trace: &TraceSummary) -> bool {
    trace.losses.keys().all(|(kind, _)| BROKEN.iter().all(|broken| broken.name() != *kind))
}

/// The verdict on a trace, and what it lacks.
fn print(trace: &TraceSummary) -> Result<()> {
    let verdict = if is_whole(trace) { "whole" } else { "not whole" };
    let events = counted(trace.events().unwrap_or_default(), "event");
    let streams = counted(trace.streams.len() as u64, "stream");
    line(format_args!("{verdict:<9} {}: {}, {events} in {streams}", trace.path.display(), trace.format))?;
    for ((kind, _), loss) in &trace.losses {
        let events = loss.events.map_or(String::new(), |events| format!(", {}", counted(events, "event")));
        line(format_args!("{:<9} {kind}, {}{events}: {}", "", counted(loss.losses, "time"), loss.example))?;
    }
    Ok(())
}

fn losses(trace: &TraceSummary) -> Table {
    let columns = ["trace", "kind", "level", "losses", "events", "example"];
    let path = trace.path.display().to_string();
    Table::new("Losses", &columns, &trace.losses, |((kind, level), loss)| {
        let (path, example) = (path.clone().into(), loss.example.as_str().into());
        vec![path, (*kind).into(), (*level).into(), loss.losses.into(), loss.events.into(), example]
    })
}

fn object(trace: &TraceSummary) -> Value {
    json!({
        "path": trace.path.display().to_string(),
        "format": trace.format,
        "whole": is_whole(trace),
        "streams": trace.streams.len(),
        "events": trace.events(),
        "losses": losses(trace).objects(),
    })
}
