//! `sigmund merge`: merges inputs into a super-trace, and reports the result.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Result, bail};
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
    record::beside,
    signals,
};

/// The maximum number of losses that are reported. All of them are in the table `losses`.
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
    let output = match &args.output {
        Some(output) => output.clone(),
        None => beside_input(&args.inputs)?,
    };
    let summary = merge(&args.inputs, &output, &options)?;
    Ok(if summary.is_damaged() { Found::Damaged } else { Found::Something })
}

/// The default path of the super-trace for a single input: the path where the recorder would have put it.
fn beside_input(inputs: &[PathBuf]) -> Result<PathBuf> {
    let [input] = inputs else {
        bail!("expected -o NAME.supertrace for {} inputs, found none", inputs.len());
    };
    // `.` and `..` have no name to append to. And the input must not be overwritten.
    if input.file_name().is_none() || input.extension().is_some_and(|e| e == "supertrace") {
        bail!("{}: expected -o NAME.supertrace for this input, found none", input.display());
    }
    Ok(if input.is_dir() { beside(input) } else { input.with_extension("supertrace") })
}

/// Merges, and reports the result. A signal that ends programs ends the merge, and its output is removed.
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

/// Whether some process of the program was recorded only in part, or not at all.
fn is_in_part(summary: &Summary) -> bool {
    let is_missing = |loss: &Loss| loss.kind == LossKind::NotRecorded && loss.level == Level::User;
    summary.losses.iter().any(|loss| is_missing(loss) && loss.severity != Severity::Note)
}

/// Reports damage as an error, and missing data as a warning.
fn report_losses(summary: &Summary) {
    let lines = loss_lines(&summary.losses);
    for (kind, text) in lines.iter().take(LOSSES_SHOWN) {
        if matches!(kind, LossKind::Damaged | LossKind::Truncated) {
            output::report_error(text);
        } else {
            output::notice(&format!("warning: {text}"));
        }
    }
    if lines.len() > LOSSES_SHOWN {
        output::notice(&format!("warning: {} more losses", lines.len() - LOSSES_SHOWN));
    }
}

/// A line for each loss that is not a note. A missing part is a loss of each CPU, with one row per CPU; it is reported
/// in one line.
fn loss_lines(losses: &[Loss]) -> Vec<(LossKind, String)> {
    let mut known = HashSet::new();
    let mut lines = Vec::new();
    for loss in losses.iter().filter(|loss| loss.severity != Severity::Note) {
        if known.insert((loss.kind.name(), loss.count, loss.detail.as_str())) {
            let count = loss.count.map_or(String::new(), |count| format!(" ({count})"));
            lines.push((loss.kind, format!("{}{count}: {}", loss.kind.name(), loss.detail)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use sigmund_model::Cpu;

    use super::*;

    #[test]
    fn a_part_that_is_missing_on_each_cpu_is_one_line() {
        let of_cpu = |cpu, detail: &str| {
            let loss = Loss::new(LossKind::NotRecorded, Level::Kern, detail);
            Loss { cpu: Some(Cpu(cpu)), ..loss }
        };
        let losses = [
            of_cpu(0, "kernel.part-00002.dat: the part is missing"),
            of_cpu(1, "kernel.part-00002.dat: the part is missing"),
            of_cpu(0, "kernel.part-00003.dat: the part is missing"),
            Loss { severity: Severity::Note, ..of_cpu(0, "a note") },
            of_cpu(1, "kernel.part-00003.dat: the part is missing"),
        ];
        let lines = loss_lines(&losses);
        let expected =
            [2, 3].map(|part| format!("not-recorded: kernel.part-0000{part}.dat: the part is missing"));
        assert_eq!(lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>(), expected);
    }
}
