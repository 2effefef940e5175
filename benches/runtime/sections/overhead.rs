//! The cost of recording a program: the paper's table 2, for Sumtime and for a compute kernel.
//!
//! Every figure is from pairs of one round: a recorded run and the unrecorded run next to it.

use super::{Plan, verdict};
use crate::{
    contenders::Contender,
    recorded::Recorded,
    sample::{Job, Outcome, Sample, rounds},
    statistics::Samples,
    table::Table,
    work::Work,
};

/// The largest allowed cost of recording, and the paper's result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// With scheduling events, and with all: percent of the time of an unrecorded run.
    paper: [f64; 2],
    target: Limit,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    /// With scheduling events, and with all.
    Percent([f64; 2]),
    NsPerEvent(f64),
}

pub(crate) const SUMTIME: Limits = Limits { paper: [23.0, 80.0], target: Limit::NsPerEvent(12.0) };
pub(crate) const KERNEL: Limits = Limits { paper: [1.8, 4.6], target: Limit::Percent([0.5, 1.5]) };

/// Measures unrecorded runs twice, and runs with scheduling events and with all events.
pub(crate) fn run(plan: Plan<'_>, work: Work, limits: &Limits) {
    let contenders = [Contender::Fut, Contender::FutAgain, Contender::FutScheduling, Contender::FutAll];
    for cpus in [1, 2].into_iter().filter(|cpus| *cpus <= plan.cpus) {
        let jobs = contenders.map(|contender| Job { contender, work, cpus });
        table(work, cpus, limits, &rounds(&jobs, plan.rounds, plan.scratch));
    }
}

/// The table, from the outcomes of our contenders.
pub(crate) fn table(work: Work, cpus: usize, limits: &Limits, outcomes: &[Outcome]) {
    let what = work.title();
    println!(
        "\nWhat recording costs: {}, on {}",
        what.trim_end_matches(", ns a thread"),
        cpus_and_lwps(cpus)
    );
    let of = |contender| outcomes.iter().find(|outcome| outcome.job.contender == contender);
    let Some(plain) = of(Contender::Fut) else { return };
    let mut table = Table::new(&[
        "recorded",
        "ms",
        "overhead",
        "between",
        "by minima",
        "paper",
        "events",
        "lost",
        "MB",
        "MB/s",
        "ns an event",
        "target",
        "",
    ]);
    let rows = [
        ("nothing", Contender::Fut, None),
        ("nothing, once more", Contender::FutAgain, None),
        ("scheduling events", Contender::FutScheduling, Some(0)),
        ("all events", Contender::FutAll, Some(1)),
    ];
    for (name, contender, place) in rows {
        let Some(outcome) = of(contender) else { continue };
        if let Some(why) = plain.failed.as_ref().or(outcome.failed.as_ref()) {
            table.remark(name, why);
        } else if let Some(costs) = Costs::of(plain, outcome) {
            table.row(costs.row(name, contender != Contender::Fut, place, limits));
        }
    }
    print!("{table}");
}

/// `1 CPU`: there are always as many LWPs as CPUs.
pub(crate) fn cpus_and_lwps(cpus: usize) -> String {
    if cpus == 1 { "1 LWP and CPU".into() } else { format!("{cpus} LWPs and CPUs") }
}

/// Compares the samples of one outcome with the unrecorded samples.
struct Costs {
    ms: Samples,
    percent: Samples,
    percent_by_minima: f64,
    recorded: Option<(Recorded, CostOfEvents)>,
}

struct CostOfEvents {
    mb_per_s: f64,
    /// In CPU time.
    ns_per_event: Samples,
    lost: u64,
}

impl Costs {
    fn of(plain: &Outcome, outcome: &Outcome) -> Option<Costs> {
        let ms = |outcome: &Outcome| {
            Samples::new(outcome.samples.iter().map(|sample| sample.elapsed.as_secs_f64() * 1e3))
        };
        let pairs = || plain.samples.iter().zip(&outcome.samples);
        let percent = pairs().map(|(without, with)| {
            100.0 * (with.elapsed.as_secs_f64() / without.elapsed.as_secs_f64() - 1.0)
        });
        Some(Costs {
            percent_by_minima: 100.0 * (ms(outcome)?.least() / ms(plain)?.least() - 1.0),
            percent: Samples::new(percent)?,
            recorded: CostOfEvents::of(outcome, pairs()),
            ms: ms(outcome)?,
        })
    }

    fn row(&self, name: &str, compared: bool, place: Option<usize>, limits: &Limits) -> Vec<String> {
        let mut row = vec![name.to_string(), format!("{:.1}", self.ms.median())];
        if compared {
            row.push(format!("{:+.2} %", self.percent.median()));
            let between = self.percent.median_between();
            row.push(between.map_or("?".into(), |(low, high)| format!("{low:+.2} … {high:+.2} %")));
            row.push(format!("{:+.2} %", self.percent_by_minima));
        }
        let (Some((recorded, costs)), Some(place)) = (&self.recorded, place) else { return row };
        row.push(format!("{:+} %", limits.paper[place]));
        row.push(recorded.events.to_string());
        row.push(costs.lost.to_string());
        row.push(format!("{:.1}", recorded.bytes as f64 / 1e6));
        row.push(format!("{:.1}", costs.mb_per_s));
        row.push(format!("{:.1}", costs.ns_per_event.median()));
        let (target, verdict) = match limits.target {
            Limit::Percent(most) => {
                (format!("≤ {:+} %", most[place]), verdict_of(&self.percent, most[place]))
            }
            Limit::NsPerEvent(most) => (format!("≤ {most} ns"), verdict_of(&costs.ns_per_event, most)),
        };
        row.push(target);
        row.push(if costs.lost > 0 { "void: events were lost".into() } else { verdict });
        row
    }
}

/// With a question mark if more samples could change the verdict.
fn verdict_of(samples: &Samples, most: f64) -> String {
    let sure = samples.median_between().is_some_and(|(low, high)| high <= most || low > most);
    verdict(samples.median() <= most) + if sure { "" } else { "?" }
}

impl CostOfEvents {
    /// With the figures of the last sample: they vary slightly, because two LWPs do not always meet at the same points.
    fn of<'a>(
        outcome: &Outcome,
        pairs: impl Iterator<Item = (&'a Sample, &'a Sample)>,
    ) -> Option<(Recorded, CostOfEvents)> {
        let last = outcome.samples.last()?;
        let recorded = last.recorded?;
        let cpus = outcome.job.cpus as f64;
        let ns_per_event = pairs.filter_map(|(without, with)| {
            let more = with.elapsed.as_secs_f64() - without.elapsed.as_secs_f64();
            Some(more * 1e9 * cpus / with.recorded?.events.max(1) as f64)
        });
        let costs = CostOfEvents {
            mb_per_s: recorded.bytes as f64 / 1e6 / last.elapsed.as_secs_f64(),
            ns_per_event: Samples::new(ns_per_event)?,
            lost: outcome.samples.iter().filter_map(|sample| sample.recorded).map(|r| r.lost).max()?,
        };
        Some((recorded, costs))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn outcome(contender: Contender, ms: &[u64], recorded: Option<Recorded>) -> Outcome {
        let elapsed = |ms: &u64| Duration::from_millis(*ms);
        let samples = ms.iter().map(|ms| Sample { recorded, ..Sample::of(elapsed(ms)) }).collect();
        Outcome { job: Job { contender, work: Work::sumtime(19, 1), cpus: 2 }, samples, failed: None }
    }

    #[test]
    fn overhead_is_computed_from_pairs_of_one_round() {
        let plain = outcome(Contender::Fut, &[100, 200, 400], None);
        let recorded = Recorded { events: 1_000_000, bytes: 24_000_000, lost: 0 };
        let costs = Costs::of(&plain, &outcome(Contender::FutAll, &[110, 220, 440], Some(recorded))).unwrap();
        assert!((costs.percent.median() - 10.0).abs() < 1e-9);
        let (_, costs) = costs.recorded.unwrap();
        // 20 ms more on two CPUs, for a million events.
        assert!((costs.ns_per_event.median() - 40.0).abs() < 1e-9);
    }

    #[test]
    fn a_verdict_that_more_samples_could_change_has_a_question_mark() {
        let samples = Samples::new([0.1, 0.2, 0.2, 0.2, 0.2, 0.9]).unwrap();
        assert_eq!(verdict_of(&samples, 1.0), "met");
        assert_eq!(verdict_of(&samples, 0.5), "met?");
        assert_eq!(verdict_of(&samples, 0.15), "MISSED?");
        assert_eq!(verdict_of(&samples, 0.05), "MISSED");
        assert_eq!(verdict_of(&Samples::new([0.1]).unwrap(), 1.0), "met?");
    }
}
