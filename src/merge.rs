//! `sigmund merge`: inputs into a super-trace, and the messages about it.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Result;
use fkt_ingest::EventNames;
use sigmund_merge::{MergeOptions, Summary};
use sigmund_model::{Level, Loss, LossKind, Severity, Ticks};
use signal_hook::low_level;

use crate::{
    Found,
    cli::MergeArgs,
    descriptors,
    output::{self, Progress, counted},
    owner::owner,
    signals,
};

/// Losses that are reported one by one; all are in the table `losses`.
const LOSSES_SHOWN: usize = 10;

pub(crate) fn run(args: &MergeArgs) -> Result<Found> {
    let MergeArgs { force, clock, hz: tick_hz, align_cpus, .. } = *args;
    let names = args.event_names.as_deref().map(EventNames::read).transpose()?;
    let event_names = names.unwrap_or_default();
    let left_out_tables = args.tables.clone().unwrap_or_default().0;
    let options = MergeOptions {
        force,
        clock,
        tick_hz,
        align_cpus,
        event_names,
        left_out_tables,
        ..MergeOptions::default()
    };
    let summary = merge(&args.inputs, &args.output, &options)?;
    Ok(if summary.is_damaged() { Found::Damaged } else { Found::Something })
}

/// Merges, and reports the result. A signal that ends programs ends the merge and removes its output.
pub(crate) fn merge(inputs: &[PathBuf], out: &Path, options: &MergeOptions) -> Result<Summary> {
    descriptors::raise_limit();
    let (stop, signals) = signals::stop_at_signals()?;
    let options = MergeOptions { stop: Some(stop), owner: owner(), ..options.clone() };
    let (progress, started) = (Progress::new(), Instant::now());
    let merged = sigmund_merge::merge(inputs, out, &options, |so_far| {
        let rate = so_far.events as f64 / started.elapsed().as_secs_f64() / 1e6;
        let (events, mib) = (so_far.events, so_far.bytes >> 20);
        progress.show(&format!("merging, {events} events, {mib} MiB written, {rate:.1} M events/s"));
    });
    progress.clear();
    for signal in signals {
        low_level::unregister(signal);
    }
    let summary = merged?;
    summary.finished.iter().for_each(|finished| output::notice(finished));
    summary.left_out.iter().for_each(|text| output::notice(&format!("warning: {text}")));
    report_losses(&summary);
    summary.assumed.iter().for_each(|assumed| output::notice(&format!("assumed: {assumed}")));
    output::notice(&describe(out, &summary));
    Ok(summary)
}

fn describe(out: &Path, summary: &Summary) -> String {
    let span = summary.span.map_or(Ticks(0), |(first, last)| Ticks(last.0 - first.0));
    let mut text = format!(
        "{}: {} and {}, {}, {}, over {}",
        out.display(),
        counted(summary.kernel_events, "kernel event"),
        counted(summary.user_events, "user event"),
        counted(summary.threads, "user thread"),
        counted(summary.carriers, "traced LWP"),
        output::length(span, summary.tick_hz),
    );
    let both = summary.witness_agree + summary.witness_disagree;
    if both > 0 {
        let percent = 100.0 * summary.witness_agree as f64 / both as f64;
        text +=
            &format!("; CPU by the probe and by sched_switch agree for {percent:.3} % of {both} user events");
    }
    if both == 0 && summary.kernel_events > 0 && summary.user_events > 0 {
        text += "; no sched_switch confirms the CPU of a user event";
    }
    text += &match summary.lost_events() {
        0 if summary.kernel_events + summary.user_events == 0 => "; there is nothing to ask".to_string(),
        0 if summary.is_damaged() || is_in_part(summary) => {
            "; the number of lost events is unknown".to_string()
        }
        0 => "; no event is lost".to_string(),
        lost => format!("; {} lost", counted(lost, "event")),
    };
    let is_usual = |kind| matches!(kind, LossKind::Dropped | LossKind::BeforeFirstSwitch);
    if summary.losses.iter().any(|loss| !is_usual(loss.kind)) {
        text += "; see its table `losses`";
    }
    text
}

/// Whether of some process of the program only a part, or nothing, was recorded.
fn is_in_part(summary: &Summary) -> bool {
    let is_missing = |loss: &Loss| loss.kind == LossKind::NotRecorded && loss.level == Level::User;
    summary.losses.iter().any(|loss| is_missing(loss) && loss.severity != Severity::Note)
}

/// What was damaged is an error, what is missing a warning.
fn report_losses(summary: &Summary) {
    let mut told = 0;
    for loss in summary.losses.iter().filter(|loss| loss.severity != Severity::Note) {
        told += 1;
        if told > LOSSES_SHOWN {
            continue;
        }
        let count = loss.count.map_or(String::new(), |count| format!(" ({count})"));
        let text = format!("{}{count}: {}", loss.kind.name(), loss.detail);
        if matches!(loss.kind, LossKind::Damaged | LossKind::Truncated) {
            output::report_error(&text);
        } else {
            output::notice(&format!("warning: {text}"));
        }
    }
    if told > LOSSES_SHOWN {
        output::notice(&format!("warning: {} more losses", told - LOSSES_SHOWN));
    }
}
