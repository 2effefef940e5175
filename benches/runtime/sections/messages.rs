//! What threads wait for each other by: fut beside tokio.

use super::{Plan, overhead};
use crate::{
    contenders::{Contender, Role},
    messages::Means,
    sample::{Job, Outcome, rounds},
    statistics::Samples,
    table::Table,
    work::Work,
};

pub(crate) fn run(plan: Plan<'_>) {
    for cpus in [1, 2].into_iter().filter(|cpus| *cpus <= plan.cpus) {
        let contenders = contenders(cpus);
        let mut heading = vec![String::new()];
        heading.extend(contenders.iter().map(|contender| contender.label()));
        heading.push("fut × fastest peer".into());
        let mut table = Table::new(&heading.iter().map(String::as_str).collect::<Vec<_>>());
        for means in Means::ALL {
            let work = Work::Messages { means, times: (means.times() / plan.hurry).max(1) };
            let jobs: Vec<Job> =
                contenders.iter().map(|contender| Job { contender: *contender, work, cpus }).collect();
            let outcomes = rounds(&jobs, plan.rounds, plan.scratch);
            row(&mut table, means, &outcomes);
        }
        println!("\nThreads that wait for each other, ns, on {}", overhead::cpus_and_lwps(cpus));
        print!("{table}");
    }
}

fn contenders(cpus: usize) -> Vec<Contender> {
    let all =
        [Contender::Fut, Contender::FutPinned, Contender::TokioCurrentThread, Contender::TokioMultiThread];
    all.into_iter().filter(|contender| cpus == 1 || *contender != Contender::TokioCurrentThread).collect()
}

fn row(table: &mut Table, means: Means, outcomes: &[Outcome]) {
    let mut medians = Vec::new();
    for outcome in outcomes {
        let ns = outcome.samples.iter().map(|sample| sample.ns(outcome.job.work));
        match Samples::new(ns).filter(|_| outcome.failed.is_none()) {
            Some(samples) => medians.push((outcome.job.contender, samples.median())),
            None => {
                let why = outcome.failed.as_deref().unwrap_or("no samples");
                table.remark(means.title(), &format!("{}: {why}", outcome.job.contender.label()));
                return;
            }
        }
    }
    let of = |is: &dyn Fn(Contender) -> bool| {
        let some = medians.iter().filter(|(contender, _)| is(*contender)).map(|(_, ns)| *ns);
        some.min_by(f64::total_cmp).unwrap_or(f64::NAN)
    };
    let ratio =
        of(&|contender| contender == Contender::Fut) / of(&|contender| contender.role() == Role::Peer);
    let mut cells = vec![means.title().to_string()];
    cells.extend(medians.iter().map(|(_, ns)| format!("{ns:.0}")));
    cells.push(format!("{ratio:.2}"));
    table.row(cells);
}
