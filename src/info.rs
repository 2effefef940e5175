//! `sigmund info`: what a super-trace is, and what it holds.

use std::io::{self, Write};

use anyhow::Result;
use sigmund_model::{Hertz, Ticks, tables};
use sigmund_query::{Recorder, RecorderCost, TracingCost, share, tracing_cost};
use sigmund_sql::SuperTrace;

use crate::{
    Found, answer,
    cli::{FormatArg, TraceArg},
    output::{self, Cell, print_table},
};

/// The most frequent events that are shown.
const EVENTS_SHOWN: &str = "20";
/// Those who spent most on recording that are shown.
const RECORDERS_SHOWN: usize = 10;

pub(crate) async fn run(args: TraceArg) -> Result<Found> {
    let trace = answer::open(args.trace.as_deref()).await?;
    let out = &mut io::stdout();
    writeln!(out, "{}", trace.path().display())?;
    if let (Some(first), Some(last)) = (trace.first_tick(), trace.last_tick()) {
        let span = output::length(Ticks(last.0 - first.0), trace.tick_hz());
        writeln!(out, "  {:<24} {span}, ticks {first} to {last}", "time", first = first.0, last = last.0)?;
    }
    for (key, value) in trace.info().iter() {
        writeln!(out, "  {key:<24} {value}")?;
    }
    writeln!(out)?;
    print_tables(&trace).await?;
    writeln!(out)?;
    let query = format!(
        "SELECT level, name, sum(events) AS events FROM event_types WHERE events > 0 \
         GROUP BY level, name ORDER BY events DESC, name LIMIT {EVENTS_SHOWN}"
    );
    writeln!(out, "{}", trace.sql(&query).await?.to_text().await?)?;
    print_tracing(&trace).await?;
    Ok(Found::Something)
}

async fn print_tables(trace: &SuperTrace) -> Result<()> {
    let mut rows = Vec::new();
    for table in tables::ALL {
        let count = trace.raw(table).await?.count().await.map_err(|e| trace.error(table.name, e))?;
        rows.push(vec![Cell::from(table.name), Cell::Count(count as i64), Cell::from(table.doc)]);
    }
    print_table(&["table", "rows", "a row"], &rows, FormatArg::Human)
}

async fn print_tracing(trace: &SuperTrace) -> Result<()> {
    let out = &mut io::stdout();
    writeln!(out, "\ntracing")?;
    let Some(cost) = tracing_cost(trace, RECORDERS_SHOWN).await? else {
        let line = "is not known: no user trace in it says";
        writeln!(out, "  {:<24} {line}", "cost of recording")?;
        return Ok(());
    };
    print_sums(trace, &cost)?;
    if cost.top.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let in_time = trace.tick_hz().map_or("cost_cycles", |_| "cost_us");
    let columns = ["thr", "lwp", "name", "events", in_time, "percent"];
    let rows: Vec<_> = cost.top.iter().map(|one| recorder_row(one, trace.tick_hz())).collect();
    print_table(&columns, &rows, FormatArg::Human)
}

fn print_sums(trace: &SuperTrace, cost: &TracingCost) -> Result<()> {
    let hz = trace.tick_hz();
    let mut sum = short(cost.ticks, hz);
    match share(cost.threads_ticks, cost.active) {
        Some(share) => {
            let threads = short(cost.threads_ticks, hz);
            sum += &format!("; {threads} by user threads, {:.3} % of their active time", 100.0 * share);
        }
        None if cost.threads_ticks > 0.0 => sum += "; how long the user threads executed is not known",
        None => {}
    }
    let each = if cost.events == 0 { 0.0 } else { cost.ticks / cost.events as f64 };
    let lines = [
        ("events of the program", format!("{}, with {} words of parameters", cost.events, cost.words)),
        ("estimated cost of each", short(each, hz)),
        ("in sum", sum),
        ("estimated from", "what a record cost in the cache when the program began to record".into()),
        ("not in it", "kernel tracepoints, caches that records displaced, the drain, lost events".into()),
        ("percent", "of a thread's active time; of an LWP's time on CPUs without a user thread".into()),
    ];
    let out = &mut io::stdout();
    for (what, value) in lines {
        writeln!(out, "  {what:<24} {value}")?;
    }
    Ok(())
}

fn recorder_row(one: &RecorderCost, hz: Option<Hertz>) -> Vec<Cell> {
    let (thread, lwp) = match one.recorder {
        Recorder::Thread(thread) => (Cell::Count(thread.0 as i64), Cell::Nothing),
        Recorder::Lwp(lwp) => (Cell::Nothing, Cell::Count(lwp.0.into())),
    };
    let cost = hz.map_or(one.ticks, |hz| one.ticks * 1e6 / hz.per_second());
    let percent = share(one.ticks, one.executed).map_or(Cell::Nothing, |share| Cell::Fraction(100.0 * share));
    let name = one.name.as_deref().map_or(Cell::Nothing, Cell::from);
    vec![thread, lwp, name, Cell::Count(one.events as i64), Cell::Fraction(cost), percent]
}

/// A cost for people: `10.2 ns`, or cycles if nobody knows how long a tick is.
fn short(ticks: f64, hz: Option<Hertz>) -> String {
    match hz {
        None => format!("{ticks:.1} cycles"),
        Some(hz) if ticks * 1e9 < 1e3 * hz.per_second() => format!("{:.1} ns", ticks * 1e9 / hz.per_second()),
        Some(_) => output::length(Ticks(ticks.round() as u64), hz),
    }
}
