//! Yield, spawn and join, and Sumtime: fut, migrating and pinned, compared with its peers.

use super::{Plan, overhead, verdict};
use crate::{
    contenders::{Contender, Role},
    sample::{Job, Outcome, rounds},
    statistics::Samples,
    table::Table,
    work::Work,
};

/// The largest allowed ratio to the time of the fastest peer.
#[derive(Clone, Copy, Debug)]
struct Target {
    times: f64,
    /// Also recorded, with scheduling events.
    recorded: bool,
}

const HALF: Target = Target { times: 0.5, recorded: false };
const FASTER: Target = Target { times: 1.0, recorded: true };

/// The largest cost of pinned user threads, relative to migrating ones.
const PINNED: f64 = 1.15;

pub(crate) fn run(plan: Plan<'_>, height: u32) {
    let small: [Work; 4] = [
        Work::Yield { threads: 2, yields: 2_000_000 / plan.hurry },
        Work::Yield { threads: 1000, yields: 2_000_000 / plan.hurry },
        Work::SpawnJoin { times: 500_000 / plan.hurry },
        Work::SpawnMany { at_once: 1000, rounds: 500 / plan.hurry },
    ];
    for work in small {
        table(work, 1, HALF, &measure(work, 1, plan));
    }
    let sumtime = Work::sumtime(height, plan.hurry);
    let cpus = [1, 2].into_iter().filter(|cpus| *cpus <= plan.cpus);
    let outcomes: Vec<_> = cpus.map(|cpus| (cpus, measure(sumtime, cpus, plan))).collect();
    for (cpus, outcomes) in &outcomes {
        table(sumtime, *cpus, FASTER, outcomes);
    }
    for (cpus, outcomes) in &outcomes {
        overhead::table(sumtime, *cpus, &overhead::SUMTIME, outcomes);
    }
}

fn measure(work: Work, cpus: usize, plan: Plan<'_>) -> Vec<Outcome> {
    let job = |contender: Contender| Some(Job { contender, work: contender.instead_of(work, cpus)?, cpus });
    let jobs: Vec<Job> = Contender::ALL.into_iter().filter_map(job).collect();
    rounds(&jobs, plan.rounds, plan.scratch)
}

fn table(work: Work, cpus: usize, target: Target, outcomes: &[Outcome]) {
    println!("\n{}, on {}", work.title(), overhead::cpus_and_lwps(cpus));
    let peers = outcomes.iter().filter(|outcome| outcome.job.contender.role() == Role::Peer);
    let fastest = peers.filter_map(|peer| Some(samples(peer)?.median())).min_by(f64::total_cmp);
    let of = |wanted| outcomes.iter().find(|outcome| outcome.job.contender == wanted);
    let migrating = of(Contender::Fut).and_then(samples);
    let mut table = Table::new(&["", "ns", "min", "max", "× fastest peer", "target", ""]);
    for outcome in outcomes {
        let contender = outcome.job.contender;
        let label = label(outcome, work);
        let Some(samples) = samples(outcome) else {
            table.remark(&label, outcome.failed.as_deref().unwrap_or("no samples"));
            continue;
        };
        let ns = [samples.median(), samples.least(), samples.most()].map(|ns| format!("{ns:.1}"));
        let mut row = vec![label];
        row.extend(ns);
        if let Some(fastest) = fastest {
            let ratio = samples.median() / fastest;
            row.push(format!("{ratio:.2}"));
            if let (Contender::FutPinned, Some(migrating)) = (contender, &migrating) {
                let met = samples.median() <= PINNED * migrating.median();
                row.push(format!("≤ {PINNED} × fut"));
                row.push(verdict(met));
            }
            let recorded = contender == Contender::FutScheduling && target.recorded;
            if contender == Contender::Fut || recorded {
                // The same time as the fastest peer does not count as faster.
                let met = if target.times < 1.0 { ratio <= target.times } else { ratio < target.times };
                let sign = if target.times < 1.0 { '≤' } else { '<' };
                row.push(format!("{sign} {:.1}", target.times));
                row.push(verdict(met));
            }
        }
        table.row(row);
    }
    print!("{table}");
}

fn label(outcome: &Outcome, asked: Work) -> String {
    let Job { contender, work, .. } = outcome.job;
    let mut label = contender.label();
    if let (Work::Sumtime { height, .. }, true) = (work, work != asked) {
        label += &format!(" (height {height})");
    }
    if let Some(lost) = outcome.samples.iter().filter_map(|sample| sample.recorded).map(|r| r.lost).max()
        && lost > 0
    {
        label += &format!(" (up to {lost} events LOST)");
    }
    label
}

/// Nanoseconds for one operation; `None` if a sample failed.
fn samples(outcome: &Outcome) -> Option<Samples> {
    let whole = outcome.failed.is_none();
    Samples::new(outcome.samples.iter().map(|sample| sample.ns(outcome.job.work)).filter(|_| whole))
}
