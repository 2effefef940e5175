//! The summary of a super-trace.

use std::{fmt::Display, io};

use anyhow::Result;
use arrow::{array::AsArray, datatypes::Int64Type};
use serde_json::{Map, Value, json};
use sigmund_model::{Hertz, Ticks, tables};
use sigmund_query::{Recorder, RecorderCost, TracingCost, share, tracing_cost};
use sigmund_sql::SuperTrace;

use crate::{
    Found, answer,
    cli::{FormatArg, InfoArgs},
    output::{self, Cell, Table, print_json, print_table},
    terminal::{block, line},
};

/// The number of threads and LWPs shown, by highest cost of recording.
const RECORDERS_SHOWN: usize = 10;

pub(super) async fn run(args: &InfoArgs) -> Result<Found> {
    let trace = answer::open(args.file.as_deref(), args.damage.into()).await?;
    match args.format {
        FormatArg::Human => print(&trace, args.top).await?,
        FormatArg::Json => print_json(&object(&trace).await?)?,
        format => events(&trace).await?.print(format)?,
    }
    Ok(Found::Something)
}

async fn print(trace: &SuperTrace, top: usize) -> Result<()> {
    line(trace.path().display())?;
    if let (Some(first), Some(last)) = (trace.first_tick(), trace.last_tick()) {
        let span = output::length(Ticks(last.0 - first.0), trace.tick_hz());
        fact("time", format_args!("{span}, ticks {} to {}", first.0, last.0))?;
    }
    for (key, value) in trace.info().iter() {
        if key.starts_with(tables::info_keys::RECORDED_SCHEMA) {
            fact(key, format_args!("{} lines; `sigmund report` asks its questions", value.lines().count()))?;
            continue;
        }
        fact(key, value)?;
    }
    line("")?;
    tables_of(trace).await?.print(FormatArg::Human)?;
    line("")?;
    let query = format!("{EVENTS} LIMIT {top}");
    block(&trace.sql(&query).await?.to_text().await?)?;
    print_tracing(trace).await
}

const EVENTS: &str = "SELECT level, name, sum(events) AS events FROM event_types WHERE events > 0 \
    GROUP BY level, name ORDER BY events DESC, name";

async fn tables_of(trace: &SuperTrace) -> Result<Table> {
    let mut rows = Vec::new();
    for table in tables::ALL {
        if trace.info().left_out_tables().any(|name| name == table.name) {
            rows.push(vec![Cell::from(table.name), Cell::Nothing, Cell::from(table.doc)]);
            continue;
        }
        let count = trace.raw(table).await?.count().await.map_err(|e| trace.error(table.name, e))?;
        rows.push(vec![Cell::from(table.name), Cell::Count(count as i64), Cell::from(table.doc)]);
    }
    Ok(Table { heading: "Tables", columns: vec!["table", "rows", "a row"], rows })
}

async fn events(trace: &SuperTrace) -> Result<Table> {
    let query =
        format!("SELECT CAST(level AS VARCHAR), name, events FROM ({EVENTS}) ORDER BY events DESC, name");
    let mut rows = Vec::new();
    for batch in trace.sql(&query).await?.collect().await? {
        let (levels, names) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        let counts = batch.column(2).as_primitive::<Int64Type>();
        let row =
            |row| vec![levels.value(row).into(), names.value(row).into(), Cell::Count(counts.value(row))];
        rows.extend((0..batch.num_rows()).map(row));
    }
    Ok(Table { heading: "Events", columns: vec!["level", "name", "events"], rows })
}

async fn object(trace: &SuperTrace) -> Result<Value> {
    let mut object = Map::new();
    object.insert("path".into(), trace.path().display().to_string().into());
    object.insert("kind".into(), "super-trace".into());
    object
        .insert("facts".into(), trace.info().iter().map(|(k, v)| (k.to_string(), Value::from(v))).collect());
    object.insert("tables".into(), tables_of(trace).await?.objects().into());
    object.insert("event_types".into(), events(trace).await?.objects().into());
    let cost = tracing_cost(trace, RECORDERS_SHOWN).await?;
    let cost = cost.map(|cost| json!({"events": cost.events, "words": cost.words, "ticks": cost.ticks}));
    object.insert("tracing".into(), cost.unwrap_or_default());
    Ok(Value::Object(object))
}

async fn print_tracing(trace: &SuperTrace) -> Result<()> {
    line("")?;
    line("tracing")?;
    let Some(cost) = tracing_cost(trace, RECORDERS_SHOWN).await? else {
        return Ok(fact("cost of recording", "unknown: no user trace contains it")?);
    };
    print_sums(trace, &cost)?;
    if cost.top.is_empty() {
        return Ok(());
    }
    line("")?;
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
        None if cost.threads_ticks > 0.0 => sum += "; the active time of user threads is unknown",
        None => {}
    }
    let each = if cost.events == 0 { 0.0 } else { cost.ticks / cost.events as f64 };
    let lines = [
        ("events of the program", format!("{}, with {} words of parameters", cost.events, cost.words)),
        ("estimated cost of each", short(each, hz)),
        ("in total", sum),
        ("estimated from", "what a record cost in the cache when the program began to record".into()),
        ("not in it", "kernel tracepoints, caches that records displaced, the drain, lost events".into()),
        ("percent", "of a thread's active time; of an LWP's time on CPUs without a user thread".into()),
    ];
    Ok(lines.into_iter().try_for_each(|(what, value)| fact(what, value))?)
}

fn fact(key: &str, value: impl Display) -> io::Result<()> {
    line(format_args!("  {key:<24} {value}"))
}

fn recorder_row(one: &RecorderCost, hz: Option<Hertz>) -> Vec<Cell<'static>> {
    let (thread, lwp) = match one.recorder {
        Recorder::Thread(thread) => (Cell::Count(thread.0 as i64), Cell::Nothing),
        Recorder::Lwp(lwp) => (Cell::Nothing, Cell::Count(lwp.0.into())),
    };
    let cost = hz.map_or(one.ticks, |hz| one.ticks * 1e6 / hz.per_second());
    let percent = share(one.ticks, one.executed).map_or(Cell::Nothing, |share| Cell::Fraction(100.0 * share));
    let name = one.name.as_deref().map_or(Cell::Nothing, Cell::from);
    vec![thread, lwp, name, Cell::Count(one.events as i64), Cell::Fraction(cost), percent]
}

/// A cost for people: `10.2 ns`, or cycles if the tick rate is unknown.
fn short(ticks: f64, hz: Option<Hertz>) -> String {
    match hz {
        None => format!("{ticks:.1} cycles"),
        Some(hz) if ticks * 1e9 < 1e3 * hz.per_second() => format!("{:.1} ns", ticks * 1e9 / hz.per_second()),
        Some(_) => output::length(Ticks(ticks.round() as u64), hz),
    }
}
