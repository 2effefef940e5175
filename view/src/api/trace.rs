//! The properties of a super-trace that the page needs before it draws anything.

use serde_json::{Map, Value, json};
use sigmund_measures::{ALL, Subject};
use sigmund_model::{
    LwpState, ThreadState,
    tables::{self, CLOCKS, LOSSES},
};
use sigmund_query::measure_arguments;
use sigmund_sql::{Error, SuperTrace};

use super::cells::cell;
use crate::View;

/// Describes a super-trace. `is_compared` if there is a second super-trace, which `/api/b/trace` describes.
pub(crate) fn trace(view: &View, is_compared: bool) -> Value {
    let trace = &view.trace;
    let path = trace.path().canonicalize().unwrap_or_else(|_| trace.path().to_path_buf());
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let left_out: Vec<&str> = trace.info().left_out_tables().collect();
    let has_it = |name: &&str| !left_out.contains(name);
    let events: u64 = trace.event_types().iter().map(|event| event.events).sum();
    let processes = view.actors.processes.iter().map(|process| {
        json!({
            "pid": process.pid,
            "name": process.name,
            "lwps": process.lwps,
            "threads": process.threads,
        })
    });
    json!({
        "name": name,
        "path": path.to_string_lossy(),
        "first_tick": view.extent.0.to_string(),
        // Windows are half-open: the one of everything ends after the last tick.
        "ticks": view.offset(view.extent.1.saturating_add(1)),
        "tick_hz": trace.tick_hz().map(|hz| hz.per_second()),
        "thread_states": ThreadState::ALL.iter().map(|state| state.name()).collect::<Vec<_>>(),
        "lwp_states": LwpState::ALL.iter().map(|state| state.name()).collect::<Vec<_>>(),
        "counts": {
            "cpus": view.actors.cpus.len(),
            "lwps": view.actors.lwps.len(),
            "threads": view.actors.threads.numbers.len(),
            "events": events,
            "processes": view.actors.processes.len(),
        },
        "processes": processes.take(MOST_PROCESSES).collect::<Vec<_>>(),
        "is_compared": is_compared,
        "losses": view.losses,
        "clock_bound": view.clock_bound,
        "tables": tables::ALL.iter().map(|table| table.name).filter(has_it).collect::<Vec<_>>(),
        "measures": ALL.iter().map(|measure| {
            json!({
                "name": measure.name,
                "about": measure.question,
                "definition": measure.definition_in_lines(),
                "required": required(measure.subject),
                "arguments": measure_arguments(measure),
            })
        }).collect::<Vec<_>>(),
    })
}

/// The objects that a question must name. Without them the measure would be refused, so the page does not ask. An actor
/// is one thread or LWP.
fn required(subject: Subject) -> Option<&'static str> {
    match subject {
        Subject::None | Subject::Optional(_) => None,
        Subject::OptionalOrPair(_) => Some("subject, pair or actor"),
        Subject::Required(_) => Some("subject"),
        Subject::RequiredOrPair(_) => Some("subject or pair"),
        Subject::Pair => Some("pair"),
    }
}

/// The largest number of processes in the list.
const MOST_PROCESSES: usize = 10_000;

/// The largest number of losses in the list.
const MOST_LOSSES: usize = 1000;

/// The largest error of an instant that was converted from another clock, in ticks; `None` if no error is known.
///
/// Some clocks, like the wall clock, only name instants: the times of events do not depend on them, so they are
/// ignored.
pub(crate) async fn clock_bound(trace: &SuperTrace) -> Result<Option<f64>, Error> {
    let Some(hz) = trace.tick_hz() else { return Ok(None) };
    let query = format!(
        "SELECT max(coalesce(bound_tick, bound_ns * {} / 1e9)) AS bound FROM raw_{} WHERE used AND domain <> 'realtime'",
        hz.per_second(),
        CLOCKS.name
    );
    let batches = trace.sql(&query).await?.collect().await?;
    let bound = batches.iter().find(|batch| batch.num_rows() > 0).map(|batch| cell(batch.column(0), 0));
    Ok(bound.and_then(|bound| bound.as_f64()).filter(|bound| *bound > 0.0))
}

/// The losses: kind, level, severity, place, count, and the window of each.
pub(crate) async fn losses(trace: &SuperTrace, first: i64) -> Result<Vec<Value>, Error> {
    let query = format!(
        "SELECT from_tick - {first} AS \"from\", to_tick - {first} AS \"to\", kind, level, severity, cpu, lwp, count, \
         detail, advice FROM raw_{} LIMIT {MOST_LOSSES}",
        LOSSES.name
    );
    let mut losses = Vec::new();
    for batch in trace.sql(&query).await?.collect().await? {
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let cells = schema.fields().iter().zip(batch.columns());
            let loss: Map<_, _> =
                cells.map(|(field, column)| (field.name().clone(), cell(column, row))).collect();
            losses.push(Value::Object(loss));
        }
    }
    Ok(losses)
}
