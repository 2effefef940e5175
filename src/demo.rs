//! `sigmund demo`: records the bundled Sumtime program on more LWPs than there are CPUs, and shows what can be asked.

#[path = "../examples/sumtime/tree.rs"]
mod tree;

use std::{ffi::OsString, io, path::Path};

use anyhow::{Context, Result};
use arrow::{array::AsArray, datatypes::Int64Type};
use sigmund_model::{Thread, Ticks};
use sigmund_query::{Filter, Format, Listed, ThreadRef, check, list};
use sigmund_sql::SuperTrace;

use crate::{
    Found, answer,
    cli::{DemoArgs, RecordArgs, SumtimeArgs},
    output, record,
    terminal::{block, line},
    wait_for,
};

/// Steps that each leaf computes: about 0.1 ms.
const WORK: u32 = 60_000;

/// Events of one thread that are shown.
const LINES_SHOWN: usize = 40;

/// A thread that shows what only both sides together can: taken off its CPU while mounted, and moved between LWPs.
const INTERESTING: &str = "SELECT thread FROM threads WHERE stalls > 0 OR migrations > 0 \
    ORDER BY (stalls > 0 AND migrations > 0) DESC, stalls > 0 DESC, stalls, dispatches, thread LIMIT 1";

const TRY_NEXT: &str = "SELECT state, count(*) AS times, sum(dur_ns) / 1e6 AS total_ms, max(dur_ns) / 1e3 AS longest_us \
    FROM thread_states WHERE dur_tick IS NOT NULL GROUP BY state ORDER BY total_ms DESC";

/// The bundled program.
pub(crate) fn sumtime(args: &SumtimeArgs) -> Result<Found> {
    let sum = tree::run(args.height, args.lwps, args.work).context("running Sumtime")?;
    line(format_args!("sumtime: {sum} leaves"))?;
    Ok(Found::Something)
}

pub(crate) fn run(args: &DemoArgs) -> Result<Found> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let program = std::env::current_exe().context("finding the sigmund program")?;
    let numbers = [args.height.to_string(), (cpus + 2).to_string(), WORK.to_string()];
    let words = ["sumtime".to_string()].into_iter().chain(numbers).map(OsString::from);
    let record_args = RecordArgs {
        output: Some(args.output.join("sumtime.run")),
        force: true,
        ..RecordArgs::of(std::iter::once(program.into_os_string()).chain(words).collect())
    };
    let (target, _) = record::record_and_merge(&record_args)?;
    wait_for(show(&target.supertrace))
}

async fn show(path: &Path) -> Result<Found> {
    let trace = SuperTrace::open(path).await?;
    let name = path.display();

    heading("The run in numbers", &format!("sigmund info {name}"))?;
    let numbers = "SELECT (SELECT count(*) FROM events WHERE level = 'KERN') AS kernel_events, \
        (SELECT count(*) FROM events WHERE level = 'USER') AS user_events, \
        (SELECT count(*) FROM threads) AS user_threads, \
        (SELECT count(*) FROM lwps WHERE carries_threads) AS lwps, \
        (SELECT count(*) FROM cpus) AS cpus, \
        (SELECT sum(migrations) FROM threads) AS migrations, \
        (SELECT sum(stalls) FROM threads) AS stalls";
    block(&trace.sql(numbers).await?.to_text().await?)?;

    match interesting(&trace).await? {
        Some(thread) => show_thread(&trace, thread, path).await?,
        None => {
            line("")?;
            line("No thread was stalled or moved this time.")?;
        }
    }

    heading("Do the two witnesses agree?", &format!("sigmund check {name}"))?;
    let report = check(&trace, Listed::first(0)).await?;
    crate::check::print_excerpt(&trace, &report)?;

    heading("To try next", &format!("sigmund sql {name} \"{TRY_NEXT}\""))?;
    block(&trace.sql(TRY_NEXT).await?.to_text().await?)?;
    Ok(Found::Something)
}

async fn interesting(trace: &SuperTrace) -> Result<Option<Thread>> {
    let batches = trace.sql(INTERESTING).await?.collect().await?;
    let first = batches.iter().find(|batch| batch.num_rows() > 0);
    Ok(first.map(|batch| Thread(batch.column(0).as_primitive::<Int64Type>().value(0) as u64)))
}

async fn show_thread(trace: &SuperTrace, thread: Thread, path: &Path) -> Result<()> {
    let label = answer::thread_label(trace, thread);
    let question = format!("sigmund --trace-file {} --thread {thread}", path.display());
    heading(&format!("What thread {label} lived through"), &format!("{question} --list-events"))?;
    let filter = Filter { threads: vec![ThreadRef::Number(thread)], ..Filter::default() };
    let mut listing = Vec::new();
    let rows = list(trace, &filter, Format::Human, &mut listing).await?;
    let listing = String::from_utf8_lossy(&listing);
    for event in listing.lines().take(LINES_SHOWN) {
        line(event.trim_end())?;
    }
    if rows as usize >= LINES_SHOWN {
        line(format_args!("… {} more", rows as usize + 1 - LINES_SHOWN))?;
    }

    heading("Its active time against its life", &format!("{question} --active-time"))?;
    let life = format!("SELECT active_tick, dur_tick FROM threads WHERE thread = {thread}");
    let batches = trace.sql(&life).await?.collect().await?;
    if let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) {
        let number = |column: usize| Ticks(batch.column(column).as_primitive::<Int64Type>().value(0) as u64);
        let (active, life) = (number(0), number(1));
        let percent = 100.0 * active.0 as f64 / life.0.max(1) as f64;
        let hz = trace.tick_hz();
        line(format_args!("{} cycles", active.0))?;
        let (active, life) = (output::length(active, hz), output::length(life, hz));
        line(format_args!("{active} of a life of {life}: {percent:.3} %"))?;
    }
    Ok(())
}

fn heading(what: &str, command: &str) -> io::Result<()> {
    line("")?;
    line(what)?;
    line(format_args!("$ {command}"))
}
