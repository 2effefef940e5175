//! An echo server: the CPU time of a request, and the latency that its client sees, beside the peers.

use super::{Plan, overhead, verdict};
use crate::{
    contenders::{Contender, Role},
    sample::{Job, Outcome, rounds},
    statistics::Samples,
    table::Table,
    work::Work,
};

/// The largest allowed ratio of the CPU time of a request to that of the cheapest peer.
const CHEAPER: f64 = 0.9;
/// The largest allowed cost of recording scheduling events, relative to none.
const RECORDED: f64 = 1.03;
/// Connections, and how many requests are measured.
const SERVERS: [(u64, u64); 3] = [(1, 100_000), (100, 400_000), (10_000, 400_000)];

const ALL: [Contender; 7] = [
    Contender::Fut,
    Contender::FutPinned,
    Contender::FutScheduling,
    Contender::TokioCurrentThread,
    Contender::TokioMultiThread,
    Contender::Go,
    Contender::Epoll,
];

pub(crate) fn run(plan: Plan<'_>) {
    for cpus in [1, 2].into_iter().filter(|cpus| *cpus <= plan.cpus) {
        for (connections, requests) in SERVERS {
            let connections = (connections / plan.hurry).max(1);
            let work = Work::Echo { connections, requests: requests / plan.hurry };
            let job =
                |contender: Contender| Some(Job { contender, work: contender.instead_of(work, cpus)?, cpus });
            let jobs: Vec<Job> = ALL.into_iter().filter_map(job).collect();
            table(work, cpus, &rounds(&jobs, plan.rounds, plan.scratch));
        }
    }
}

fn median(outcome: &Outcome, of_sample: impl Fn(&crate::sample::Sample) -> Option<f64>) -> Option<f64> {
    Samples::new(outcome.samples.iter().filter_map(of_sample)).map(|samples| samples.median())
}

fn table(work: Work, cpus: usize, outcomes: &[Outcome]) {
    println!("\n{}, on {}", work.title(), overhead::cpus_and_lwps(cpus));
    let operations = work.operations() as f64;
    let cpu_ns = |outcome: &Outcome| median(outcome, |s| Some(s.echo?.cpu_ns as f64 / operations));
    let peers = outcomes.iter().filter(|outcome| outcome.job.contender.role() == Role::Peer);
    let cheapest = peers.filter_map(cpu_ns).min_by(f64::total_cmp);
    let unrecorded = outcomes.iter().find(|o| o.job.contender == Contender::Fut).and_then(cpu_ns);
    let columns = ["", "CPU ns a request", "requests/s", "p50 us", "p99 us", "× cheapest peer", "target", ""];
    let mut table = Table::new(&columns);
    for outcome in outcomes {
        let contender = outcome.job.contender;
        let Some(ns) = cpu_ns(outcome) else {
            table.remark(&contender.label(), outcome.failed.as_deref().unwrap_or("no sample"));
            continue;
        };
        let microseconds = |of: fn(crate::echo::Echo) -> u64| {
            let us = median(outcome, |s| Some(of(s.echo?) as f64 / 1e3));
            us.map_or_else(String::new, |us| format!("{us:.1}"))
        };
        let rate = median(outcome, |s| Some(operations / s.elapsed.as_secs_f64())).unwrap_or(0.0);
        let mut row = vec![contender.label(), format!("{ns:.0}"), format!("{rate:.0}")];
        row.extend([microseconds(|echo| echo.p50_ns), microseconds(|echo| echo.p99_ns)]);
        row.push(cheapest.map_or_else(String::new, |cheapest| format!("{:.2}", ns / cheapest)));
        let target = match contender {
            Contender::FutScheduling => unrecorded.map(|bare| (RECORDED * bare, format!("{RECORDED} × fut"))),
            Contender::Fut | Contender::FutPinned => cheapest.map(|ns| (CHEAPER * ns, format!("{CHEAPER}"))),
            _ => None,
        };
        if let Some((most, target)) = target {
            row.extend([target, verdict(ns <= most)]);
        }
        table.row(row);
    }
    print!("{table}");
}
