//! Prints summaries of traces: tables for people, or one JSON object.

use std::io;

use anyhow::Result;
use serde_json::{Map, Value};
use sigmund_merge::{Manifest, Removed, Rotation};
use sigmund_model::{ClockDomain, Snapshot, Ticks};

use crate::{
    Found,
    cli::{FormatArg, InfoArgs},
    inputs::{Inputs, TraceSummary},
    output::{self, Cell, Table, print_json},
    record::rotation::describe_packed,
    terminal::line,
};

/// Counts the events where requested, and prints the summaries.
pub(super) fn run(inputs: Inputs, args: &InfoArgs) -> Result<Found> {
    let (path, manifest, is_run) = (inputs.path.clone(), inputs.manifest.clone(), inputs.is_run);
    let all: Vec<TraceSummary> = match args.quick {
        true => inputs.traces.into_iter().map(|(trace, _)| trace).collect(),
        false => inputs.counted(),
    };
    let snapshots: Vec<_> =
        manifest.iter().flat_map(|m| &m.snapshots).filter_map(|snapshot| snapshot.snapshot()).collect();
    let facts = manifest.as_ref().map(facts_of_run).unwrap_or_default();
    match args.format {
        FormatArg::Human => {
            if is_run {
                print_run(&path.display().to_string(), &facts)?;
            }
            all.iter().try_for_each(|held| print(held, &snapshots, args))?;
        }
        FormatArg::Json => {
            let traces = all.iter().map(|held| object(held, &snapshots)).collect();
            let kind = if is_run { "run" } else { "trace" };
            let mut whole = Map::new();
            whole.insert("path".into(), path.display().to_string().into());
            whole.insert("kind".into(), kind.into());
            whole.insert("facts".into(), object_of(&facts));
            whole.insert("traces".into(), Value::Array(traces));
            print_json(&Value::Object(whole))?;
        }
        FormatArg::Tsv | FormatArg::Csv | FormatArg::Ndjson => {
            let rows = all.iter().flat_map(|held| events(held).rows).collect();
            Table { rows, ..events(&TraceSummary::new(&path, String::new(), Vec::new())) }
                .print(args.format)?;
        }
    }
    Ok(Found::Something)
}

fn facts_of_run(manifest: &Manifest) -> Vec<(String, String)> {
    let lost = |(cpu, lost): &(u32, u64)| format!("{lost} on CPU {cpu}");
    let unfinished =
        "its recorder is running, was killed, or had no room on the disk; `sigmund merge` completes it then";
    let facts = [
        ("unfinished", if manifest.unfinished { unfinished.to_string() } else { String::new() }),
        ("command", manifest.command.join(" ")),
        ("ended", manifest.ended.clone()),
        ("host", manifest.host.clone()),
        ("kernel", manifest.kernel.clone()),
        ("cpus", manifest.cpus.to_string()),
        ("recorder", manifest.recorder.clone()),
        ("kernel side", manifest.kernel_side.means.clone()),
        ("why not better", manifest.kernel_side.why.clone().unwrap_or_default()),
        ("lost in the kernel", manifest.kernel_side.lost.iter().map(lost).collect::<Vec<_>>().join(", ")),
        ("clock snapshots", manifest.snapshots.len().to_string()),
        ("parts", manifest.rotation.as_ref().map_or_else(String::new, parts)),
        ("kept from", manifest.rotation.as_ref().map_or_else(String::new, kept_from)),
        ("compressed", manifest.rotation.as_ref().map_or_else(String::new, compressed)),
    ];
    let given = facts.into_iter().filter(|(_, value)| !value.is_empty());
    given.map(|(key, value)| (key.to_string(), value)).collect()
}

/// The parts that exist, and the limits because of which others were removed.
fn parts(rotation: &Rotation) -> String {
    let limits = [
        rotation.max_bytes.map(|bytes| format!("at most {bytes} bytes")),
        rotation.max_ns.map(|ns| format!("at least the last {} s", ns as f64 / 1e9)),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    format!("{} to {}; the recording is limited to {}", rotation.first, rotation.last, limits.join(", "))
}

fn kept_from(rotation: &Rotation) -> String {
    let Removed { parts, bytes, kernel_events, user_events } = rotation.removed;
    if parts == 0 {
        return "the start".into();
    }
    let parts = output::counted(parts.into(), "older part");
    format!(
        "part {}; {parts} removed: {bytes} bytes, {kernel_events} events of the kernel, {user_events} of programs",
        rotation.first
    )
}

fn compressed(rotation: &Rotation) -> String {
    if rotation.packed.parts == 0 { String::new() } else { describe_packed(&rotation.packed) }
}

fn print_run(path: &str, facts: &[(String, String)]) -> io::Result<()> {
    line(path)?;
    let none = facts.is_empty().then_some("run: there is no run.json, its recorder did not end properly");
    fact("format", none.unwrap_or("run"))?;
    facts.iter().try_for_each(|(key, value)| fact(key, value))?;
    line("")
}

fn fact(key: &str, value: &str) -> io::Result<()> {
    line(format_args!("  {key:<24} {value}"))
}

fn print(held: &TraceSummary, snapshots: &[(ClockDomain, Snapshot)], args: &InfoArgs) -> Result<()> {
    line(held.path.display())?;
    for (key, value) in summary(held, snapshots) {
        fact(&key, &value)?;
    }
    let top = |mut table: Table| {
        let more = table.rows.len().saturating_sub(args.top);
        table.rows.truncate(args.top);
        (table, more)
    };
    for (table, more) in [streams(held), events(held), lwps(held), losses(held)].map(top) {
        if table.rows.is_empty() {
            continue;
        }
        line("")?;
        line(table.heading)?;
        table.print(FormatArg::Human)?;
        if more > 0 {
            line(format_args!("and {more} more"))?;
        }
    }
    Ok(line("")?)
}

/// The facts, one per line.
fn summary(held: &TraceSummary, others: &[(ClockDomain, Snapshot)]) -> Vec<(String, String)> {
    let mut lines = vec![("format".to_string(), held.format.clone())];
    lines.extend(held.facts.iter().cloned());
    let streams = output::counted(held.streams.len() as u64, "stream");
    lines.push(match held.events() {
        Some(events) => ("events".into(), format!("{events} in {streams}, counted by reading them once")),
        None => ("events".into(), format!("not counted, in {streams} (--quick)")),
    });
    let mut clocks: Vec<ClockDomain> = held.streams.iter().map(|stream| stream.clock).collect();
    clocks.sort();
    clocks.dedup();
    let spans = held.spans();
    for clock in clocks {
        let rate = held.rate(clock, others);
        let hz = match (clock, rate) {
            (ClockDomain::Tsc | ClockDomain::Ticks, Some(hz)) => {
                format!(", {:.6} MHz", hz.per_second() / 1e6)
            }
            (ClockDomain::Tsc | ClockDomain::Ticks, None) => ", of unknown rate".into(),
            _ => ", nanoseconds".into(),
        };
        lines.push(("clock".into(), format!("{}{hz}", clock.name())));
        if let Some((first, last)) = spans.get(&clock) {
            let span = output::length(Ticks(last.0 - first.0), rate);
            lines.push(("time".into(), format!("{span}, ticks {} to {}", first.0, last.0)));
        }
    }
    if !held.snapshots.is_empty() {
        lines.push(("clock snapshots".into(), held.snapshots.len().to_string()));
    }
    lines
}

fn object(held: &TraceSummary, others: &[(ClockDomain, Snapshot)]) -> Value {
    let mut object = Map::new();
    object.insert("path".into(), held.path.display().to_string().into());
    object.insert("format".into(), held.format.clone().into());
    object.insert("facts".into(), object_of(&held.facts));
    object.insert("counted".into(), held.counted.into());
    object.insert("events".into(), held.events().into());
    let clock = |(clock, (first, last)): (ClockDomain, (Ticks, Ticks))| {
        let hz = held.rate(clock, others).map(|hz| hz.per_second());
        let seconds = hz.map(|hz| (last.0 - first.0) as f64 / hz);
        serde_json::json!({
            "clock": clock.name(), "tick_hz": hz, "first_tick": first.0, "last_tick": last.0, "seconds": seconds,
        })
    };
    object.insert("clocks".into(), held.spans().into_iter().map(clock).collect());
    object.insert("snapshots".into(), held.snapshots.len().into());
    for (name, table) in [
        ("streams", streams(held)),
        ("event_types", events(held)),
        ("lwps", lwps(held)),
        ("losses", losses(held)),
    ] {
        object.insert(name.into(), Value::Array(table.objects()));
    }
    Value::Object(object)
}

fn object_of(facts: &[(String, String)]) -> Value {
    Value::Object(facts.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect())
}

fn streams(held: &TraceSummary) -> Table {
    let columns = ["buffer", "cpu", "lwp", "clock", "events", "lost", "first_tick", "last_tick"];
    Table::new("Streams", &columns, &held.streams, |one| {
        vec![
            one.buffer.as_str().into(),
            one.cpu.map(|cpu| cpu.0).into(),
            one.lwp.map(|lwp| lwp.0).into(),
            one.clock.name().into(),
            one.events.into(),
            one.lost.into(),
            one.first.map(|tick| tick.0).into(),
            one.last.map(|tick| tick.0).into(),
        ]
    })
}

/// The declared events, the most frequent first. If they were counted, only those that occur.
fn events(held: &TraceSummary) -> Table {
    let columns = ["level", "name", "code", "events", "percent", "fields"];
    let mut types: Vec<_> = held.types.iter().zip(&held.events_of_type).collect();
    types.retain(|(_, events)| !held.counted || **events > 0);
    types.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.name.cmp(&b.0.name)));
    let all = held.events().filter(|events| *events > 0);
    Table::new("Events", &columns, types, |(ty, events)| {
        let fields: Vec<&str> = ty.fields.iter().map(|field| field.name.as_str()).collect();
        vec![
            ty.level.name().into(),
            ty.name.as_str().into(),
            ty.code.into(),
            held.counted.then_some(*events).into(),
            all.map_or(Cell::Nothing, |all| Cell::Fraction(*events as f64 * 100.0 / all as f64)),
            fields.join(" ").as_str().into(),
        ]
    })
}

/// The LWPs with the most events first. Kernels keep the names of LWPs that ended long ago, so only those with events
/// are shown.
fn lwps(held: &TraceSummary) -> Table {
    let mut lwps: Vec<_> = held.lwps.iter().filter(|(_, known)| !held.counted || known.events > 0).collect();
    lwps.sort_by_key(|(lwp, known)| (std::cmp::Reverse(known.events), **lwp));
    Table::new("LWPs", &["lwp", "name", "events"], lwps, |(lwp, known)| {
        vec![lwp.0.into(), known.name.as_deref().into(), held.counted.then_some(known.events).into()]
    })
}

fn losses(held: &TraceSummary) -> Table {
    let columns = ["kind", "level", "losses", "events", "example"];
    Table::new("What is missing", &columns, &held.losses, |((kind, level), losses)| {
        vec![
            (*kind).into(),
            (*level).into(),
            losses.losses.into(),
            losses.events.into(),
            losses.example.as_str().into(),
        ]
    })
}
