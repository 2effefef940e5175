//! From a hundred user threads to a million: the cost of an operation, which should not grow. Many sockets, many LWPs, and
//! how long a thread waits beside one that never yields.

use super::{Plan, overhead, verdict};
use crate::{
    contenders::Contender,
    sample::{Job, Sample},
    scale,
    statistics::Samples,
    table::Table,
    work::Work,
};

const THREADS: [u64; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
const SOCKETS: [u64; 4] = [100, 1_000, 10_000, 100_000];
const CONTENDERS: [Contender; 3] = [Contender::Fut, Contender::FutPinned, Contender::TokioCurrentThread];
/// Tokio's timers have a granularity of a millisecond: the last one sleeps as precisely.
const OF_THREADS: [Contender; 4] =
    [Contender::Fut, Contender::FutPinned, Contender::TokioCurrentThread, Contender::FutSlack];
const QUANTA_US: [u64; 2] = [10_000, 50_000];
/// LWPs on few CPUs, and the user threads that they carry.
const MANY_LWPS: usize = 64;
const THREADS_OF_MANY_LWPS: u64 = 10_000;
/// The longest wait, in quanta: the reactor looks twice a quantum, and may be late, since others have the CPUs.
const MOST_QUANTA: f64 = 2.5;

pub(crate) fn run(plan: Plan<'_>) {
    let operations = scale::OPERATIONS / plan.hurry;
    for contender in OF_THREADS {
        println!(
            "\n{}, on 1 LWP and CPU: CPU ns an operation, by the number of user threads",
            contender.label()
        );
        let sizes = THREADS.map(|threads| (threads / plan.hurry).max(10));
        let cost = |threads, sample: &Sample, step| {
            of_step(sample, step, threads * scale::rounds(threads, operations, step))
        };
        table(
            plan,
            contender,
            &scale::STEPS,
            &sizes,
            |threads| Work::Scale { threads, lwps: 1, operations },
            cost,
        );
    }
    for contender in CONTENDERS {
        println!(
            "\n{}, on 1 LWP and CPU: CPU ns an operation, by the number of sockets in the process",
            contender.label()
        );
        let sizes = SOCKETS.map(|sockets| (sockets / plan.hurry).max(10));
        let cost = |sockets, sample: &Sample, step| {
            // A message and its echo are of a pair.
            let sockets_each = if step == 1 { sockets / 2 } else { sockets };
            of_step(sample, step, sockets_each * scale::socket_rounds(sockets, step))
        };
        table(plan, contender, &scale::SOCKET_STEPS, &sizes, |sockets| Work::Sockets { sockets }, cost);
    }
    if plan.cpus > 1 {
        many_lwps(plan);
        fairness(plan);
    }
}

fn of_step(sample: &Sample, step: usize, operations: u64) -> Option<f64> {
    Some(sample.steps?.cpu_ns[step] as f64 / operations as f64)
}

/// A row for each step, a column for each size.
fn table(
    plan: Plan<'_>,
    contender: Contender,
    steps: &[&str],
    sizes: &[u64],
    work: impl Fn(u64) -> Work,
    cost: impl Fn(u64, &Sample, usize) -> Option<f64>,
) {
    let mut heading = vec![String::new()];
    heading.extend(sizes.iter().map(u64::to_string));
    heading.push("last / first".into());
    let mut table = Table::new(&heading.iter().map(String::as_str).collect::<Vec<_>>());
    let columns: Vec<Result<Vec<Sample>, String>> =
        sizes.iter().map(|size| samples(plan, Job { contender, work: work(*size), cpus: 1 })).collect();
    let median = |size: u64, samples: &[Sample], step| {
        Some(Samples::new(samples.iter().filter_map(|sample| cost(size, sample, step)))?.median())
    };
    for (step, name) in steps.iter().enumerate() {
        let of_size = |(size, samples): (&u64, &Result<Vec<Sample>, String>)| {
            median(*size, samples.as_ref().ok()?, step)
        };
        let costs: Vec<Option<f64>> = sizes.iter().zip(&columns).map(of_size).collect();
        let mut row = vec![(*name).to_string()];
        row.extend(costs.iter().map(|cost| cost.map_or("-".into(), |ns| format!("{ns:.0}"))));
        if let (Some(Some(first)), Some(Some(last))) = (costs.first(), costs.last()) {
            row.push(format!("{:.2}", last / first));
        }
        table.row(row);
    }
    let of_first = |samples: &Result<Vec<Sample>, String>| samples.as_ref().ok()?.first()?.steps;
    let figures = columns.iter().map(of_first);
    let mut row = vec!["MiB resident".to_string()];
    row.extend(figures.clone().map(|of| of.map_or("-".into(), |of| (of.resident >> 20).to_string())));
    table.row(row);
    if figures.clone().flatten().any(|of| of.idle_ns > 0) {
        let mut row = vec!["idle, CPU us a second".to_string()];
        row.extend(figures.map(|of| of.map_or("-".into(), |of| (of.idle_ns / 1000).to_string())));
        table.row(row);
    }
    for (size, failed) in
        sizes.iter().zip(&columns).filter_map(|(size, samples)| Some((size, samples.as_ref().err()?)))
    {
        table.remark(&size.to_string(), failed);
    }
    print!("{table}");
}

fn samples(plan: Plan<'_>, job: Job) -> Result<Vec<Sample>, String> {
    (0..plan.rounds).map(|_| job.sample(plan.scratch)).collect()
}

fn many_lwps(plan: Plan<'_>) {
    let operations = scale::OPERATIONS / plan.hurry;
    let threads = (THREADS_OF_MANY_LWPS / plan.hurry).max(10);
    println!("\n{threads} user threads on 2 CPUs: CPU ns an operation, by the number of LWPs");
    let mut table = Table::new(&["", "", "2", "64", "64 / 2"]);
    for contender in [Contender::Fut, Contender::FutPinned, Contender::TokioMultiThread] {
        let of =
            |lwps| samples(plan, Job { contender, work: Work::Scale { threads, lwps, operations }, cpus: 2 });
        let (few, many) = match (of(2), of(MANY_LWPS)) {
            (Ok(few), Ok(many)) => (few, many),
            (Err(why), _) | (_, Err(why)) => {
                table.remark(&contender.label(), &why);
                continue;
            }
        };
        for (step, name) in scale::STEPS.iter().enumerate() {
            let done = threads * scale::rounds(threads, operations, step);
            let cost = |samples: &[Sample]| {
                Samples::new(samples.iter().filter_map(|sample| of_step(sample, step, done)))
            };
            if let (Some(few), Some(many)) = (cost(&few), cost(&many)) {
                let (few, many) = (few.median(), many.median());
                let cells = [format!("{few:.0}"), format!("{many:.0}"), format!("{:.2}", many / few)];
                table.row([contender.label(), (*name).to_string()].into_iter().chain(cells));
            }
        }
    }
    print!("{table}");
}

fn fairness(plan: Plan<'_>) {
    println!("\nWaits beside a thread that never yields, on {}, wall-clock", overhead::cpus_and_lwps(2));
    let columns = ["", "it has", "quantum ms", "waits", "mean ms", "longest ms", "in quanta", "target", ""];
    let mut table = Table::new(&columns);
    for (contender, safe_points) in
        [(Contender::FutPinned, true), (Contender::FutPinned, false), (Contender::Fut, false)]
    {
        for quantum_us in QUANTA_US {
            let work = Work::Fair { quantum_us, safe_points };
            let waits = (Job { contender, work, cpus: 2 }).sample(plan.scratch).map(|sample| sample.waits);
            let has = if safe_points { "safe points" } else { "none" };
            let ms = |ns: u64| ns as f64 / 1e6;
            let (label, quantum) = (contender.label(), quantum_us as f64 / 1e3);
            match waits {
                Ok(Some(waits)) => {
                    let quanta = ms(waits.longest_ns) / quantum;
                    let mut row = vec![label, has.into(), format!("{quantum:.0}"), waits.count.to_string()];
                    row.extend([ms(waits.mean_ns), ms(waits.longest_ns)].map(|ms| format!("{ms:.2}")));
                    row.extend([
                        format!("{quanta:.2}"),
                        format!("≤ {MOST_QUANTA}"),
                        verdict(quanta <= MOST_QUANTA),
                    ]);
                    table.row(row);
                }
                Ok(None) => table.remark(&label, "no waits"),
                Err(why) => table.remark(&format!("{label}, {has}, {quantum} ms"), &why),
            }
        }
    }
    print!("{table}");
}
