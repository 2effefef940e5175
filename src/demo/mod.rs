//! `sigmund demo`: records the bundled Sumtime program on more LWPs than there are CPUs, and runs example queries.

mod story;
#[path = "../../examples/sumtime/tree.rs"]
mod tree;

use std::{ffi::OsString, io, path::Path};

use anyhow::{Context, Result};
use sigmund_query::{Listed, check};
use sigmund_sql::SuperTrace;

use crate::{
    Found,
    cli::{DemoArgs, RecordArgs, SumtimeArgs},
    record,
    terminal::{block, line},
    wait_for,
};

/// The number of steps that each thread computes: about 0.1 ms.
const WORK: u32 = 60_000;

const STATES: &str = "SELECT state, count(*) AS times, sum(dur_ns) / 1e6 AS total_ms, max(dur_ns) / 1e3 AS longest_us \
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

    match story::choose(&trace).await? {
        Some(story) => story::show(&trace, &story).await?,
        None => {
            line("")?;
            line("No user thread was recorded.")?;
        }
    }

    heading("Can the trace be trusted?", &format!("sigmund check {name}"))?;
    let report = check(&trace, Listed::first(0)).await?;
    crate::check::print_excerpt(&trace, &report)?;

    heading("How long threads were in each state", &format!("sigmund sql {name} \"{STATES}\""))?;
    block(&trace.sql(STATES).await?.to_text().await?)?;
    Ok(Found::Something)
}

fn heading(what: &str, command: &str) -> io::Result<()> {
    line("")?;
    line(what)?;
    line(format_args!("$ {command}"))
}
