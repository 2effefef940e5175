//! Reads the actors and the clock: the tables `lwps`, `threads`, `processes`, `cpus` and `clocks`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::{
    array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch},
    datatypes::{Float64Type, Int32Type, Int64Type},
};
use datafusion::{
    error::Result as PlanResult,
    logical_expr::{Expr, ident, lit},
    prelude::DataFrame,
};
use sigmund_model::{
    Cpu, Level, Lwp, Pid, Thread, Ticks,
    tables::{CLOCKS, CPUS, LWPS, PROCESSES, THREAD_STATES, THREADS, Table},
};
use sigmund_query::{Filter, Window, number_in};
use sigmund_sql::SuperTrace;

use super::teams::teams;
use crate::{
    Error,
    timeline::{Actors, Clock, LwpActor, Process, ProcessId, ThreadActor, ThreadId},
};

/// Reads the actors that a filter selects.
///
/// # Errors
/// When the filter gives a time and the rate of the clock is unknown; when the trace cannot be read.
pub async fn read_actors(trace: &SuperTrace, filter: &Filter) -> Result<Actors, Error> {
    let clock = clock(trace, filter).await?;
    let (mut lwps, mut threads) = (lwps(trace, filter).await?, threads(trace, filter).await?);
    let is_in_window =
        |born: Ticks, died: Option<Ticks>| born <= clock.last && died.is_none_or(|died| died >= clock.first);
    lwps.retain(|lwp| is_in_window(lwp.born, lwp.died));
    threads.retain(|thread| is_in_window(thread.born, thread.died));
    lwps.sort_by_key(|lwp| (lwp.lwp, lwp.born));
    threads.sort_by_key(|thread| (thread.thread, thread.born));

    let processes = processes(&lwps, &threads, process_names(trace).await?);
    let by_pid: BTreeMap<Option<Pid>, ProcessId> =
        processes.iter().enumerate().map(|(at, process)| (process.pid, ProcessId(at as u32))).collect();
    let process = |pid: Option<Pid>| by_pid.get(&pid).copied().unwrap_or(ProcessId(0));
    let ids: BTreeMap<Thread, ThreadId> =
        threads.iter().enumerate().map(|(at, thread)| (thread.thread, ThreadId(at as u32))).collect();
    let name = trace.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut actors = Actors {
        clock,
        name,
        cpus: cpus(trace, filter).await?,
        event_types: trace.event_types().iter().map(|event| event.ty.clone()).collect(),
        lwps: lwps
            .into_iter()
            .map(|LwpRow { lwp, name, pid, born, died, carries_threads }| LwpActor {
                lwp,
                name,
                process: process(pid),
                born,
                died,
                carries_threads,
            })
            .collect(),
        threads: threads
            .into_iter()
            .map(|row| ThreadActor {
                thread: row.thread,
                name: row.name,
                process: process(row.pid),
                born: row.born,
                died: row.died,
                created_by: row.created_by.and_then(|by| ids.get(&by).copied()),
            })
            .collect(),
        processes,
        teams: Vec::new(),
    };
    actors.teams = teams(trace, &actors).await?;
    Ok(actors)
}

/// The window of the filter, cut to the trace.
async fn clock(trace: &SuperTrace, filter: &Filter) -> Result<Clock, Error> {
    let (first, last) = (trace.first_tick().unwrap_or_default(), trace.last_tick().unwrap_or_default());
    let Window { from, to } = filter.window(trace)?;
    let tick = |tick: i64| Ticks(tick.max(0) as u64).clamp(first, last);
    let (first, last) = (from.map_or(first, tick), to.map_or(last, tick));
    let realtime_at_first = realtime(trace, first).await?;
    Ok(Clock { first, last: last.max(first), rate: trace.tick_hz(), realtime_at_first })
}

/// Nanoseconds since 1970 at a tick, from the snapshot with the smallest error bound.
async fn realtime(trace: &SuperTrace, at: Ticks) -> Result<Option<i64>, Error> {
    let Some(rate) = trace.tick_hz() else { return Ok(None) };
    let is_realtime = ident("domain").eq(lit("realtime")).and(ident("against").eq(lit("tsc")));
    let rows =
        read(trace, &CLOCKS, vec![is_realtime], &["before_tick", "after_tick", "ns", "bound_ns"]).await?;
    let snapshots = rows.iter().flat_map(|rows| {
        (0..rows.num_rows()).filter_map(|row| {
            let (before, after) = (get::<Int64Type>(rows, 0, row)?, get::<Int64Type>(rows, 1, row)?);
            let bound = get::<Float64Type>(rows, 3, row).unwrap_or(f64::INFINITY);
            Some((bound, before + (after - before) / 2, get::<Int64Type>(rows, 2, row)?))
        })
    });
    let best = snapshots.min_by(|a, b| a.0.total_cmp(&b.0));
    Ok(best.map(|(_, tick, ns)| {
        let since_snapshot = (at.0 as i64).saturating_sub(tick) as f64 * 1e9 / rate.per_second();
        ns.saturating_add(since_snapshot.round() as i64)
    }))
}

async fn cpus(trace: &SuperTrace, filter: &Filter) -> Result<Vec<Cpu>, Error> {
    let rows = read(trace, &CPUS, Vec::new(), &["cpu"]).await?;
    // A CPU that occurs only in user events has no row in `cpus`.
    let states = read(trace, &THREAD_STATES, vec![ident("cpu").is_not_null()], &["cpu"]).await?;
    let numbers = rows.iter().chain(&states).flat_map(|rows| {
        rows.column(0)
            .as_primitive::<Int32Type>()
            .iter()
            .flatten()
            .map(|cpu| Cpu(cpu as u32))
            .collect::<Vec<_>>()
    });
    let mut cpus: BTreeSet<Cpu> = numbers.collect();
    if !filter.cpus.is_empty() {
        cpus.retain(|cpu| filter.cpus.contains(cpu));
    }
    Ok(cpus.into_iter().collect())
}

struct LwpRow {
    lwp: Lwp,
    name: Option<String>,
    pid: Option<Pid>,
    born: Ticks,
    died: Option<Ticks>,
    carries_threads: bool,
}

/// The selected LWPs; if user threads are selected, the LWPs on which one of them was mounted.
async fn lwps(trace: &SuperTrace, filter: &Filter) -> Result<Vec<LwpRow>, Error> {
    let mut conditions = Vec::new();
    if !filter.lwps.is_empty() {
        conditions.push(number_in("lwp", filter.lwps.iter().map(|lwp| lwp.0.into())));
    }
    if let Some(threads) = filter.thread_numbers(trace)? {
        let of_them = number_in("thread", threads.iter().map(|thread| thread.0 as i64));
        let rows = read(trace, &THREAD_STATES, vec![of_them, ident("lwp").is_not_null()], &["lwp"]).await?;
        let carried =
            rows.iter().flat_map(|rows| rows.column(0).as_primitive::<Int32Type>().iter().flatten());
        let carried: BTreeSet<i32> = carried.collect();
        conditions.push(number_in("lwp", carried.into_iter().map(i64::from)));
    }
    let columns = ["lwp", "name", "pid", "ts_tick", "dur_tick", "carries_threads"];
    let mut lwps = Vec::new();
    for rows in read(trace, &LWPS, conditions, &columns).await? {
        let carries_threads = rows.column(5).as_boolean();
        for row in 0..rows.num_rows() {
            let (born, died) = lifetime(&rows, 3, row);
            lwps.push(LwpRow {
                lwp: Lwp(get::<Int32Type>(&rows, 0, row).unwrap_or_default() as u32),
                name: text(&rows, 1, row),
                pid: get::<Int32Type>(&rows, 2, row).map(|pid| Pid(pid as u32)),
                born,
                died,
                carries_threads: carries_threads.value(row),
            });
        }
    }
    Ok(lwps)
}

struct ThreadRow {
    thread: Thread,
    name: Option<String>,
    pid: Option<Pid>,
    born: Ticks,
    died: Option<Ticks>,
    created_by: Option<Thread>,
}

/// The selected user threads; none if only the kernel level is selected.
async fn threads(trace: &SuperTrace, filter: &Filter) -> Result<Vec<ThreadRow>, Error> {
    if filter.level == Some(Level::Kern) {
        return Ok(Vec::new());
    }
    let conditions = filter
        .thread_numbers(trace)?
        .map(|threads| number_in("thread", threads.iter().map(|thread| thread.0 as i64)));
    let columns = ["thread", "name", "pid", "ts_tick", "dur_tick", "created_by"];
    let mut threads = Vec::new();
    for rows in read(trace, &THREADS, conditions.into_iter().collect(), &columns).await? {
        for row in 0..rows.num_rows() {
            let (born, died) = lifetime(&rows, 3, row);
            threads.push(ThreadRow {
                thread: Thread(get::<Int64Type>(&rows, 0, row).unwrap_or_default() as u64),
                name: text(&rows, 1, row),
                pid: get::<Int32Type>(&rows, 2, row).map(|pid| Pid(pid as u32)),
                born,
                died,
                created_by: get::<Int64Type>(&rows, 5, row).map(|by| Thread(by as u64)),
            });
        }
    }
    Ok(threads)
}

/// Names of processes, by pid.
async fn process_names(trace: &SuperTrace) -> Result<HashMap<u32, String>, Error> {
    if trace.info().left_out_tables().any(|name| name == PROCESSES.name) {
        return Ok(HashMap::new());
    }
    let rows = read(trace, &PROCESSES, Vec::new(), &["pid", "name"]).await?;
    let names = rows.iter().flat_map(|rows| {
        (0..rows.num_rows()).filter_map(|row| {
            let pid = get::<Int32Type>(rows, 0, row)?;
            Some((pid as u32, text(rows, 1, row)?))
        })
    });
    Ok(names.collect())
}

/// The processes of these actors, sorted by pid; then one without a pid, if the process of some actors is unknown.
fn processes(lwps: &[LwpRow], threads: &[ThreadRow], mut names: HashMap<u32, String>) -> Vec<Process> {
    let pids: BTreeSet<Option<Pid>> =
        lwps.iter().map(|lwp| lwp.pid).chain(threads.iter().map(|thread| thread.pid)).collect();
    // If the table of processes was left out, a process has the name of its main LWP.
    for lwp in lwps {
        if let Some(name) = &lwp.name {
            names.entry(lwp.lwp.0).or_insert_with(|| name.clone());
        }
    }
    let known =
        pids.iter().flatten().map(|pid| Process { pid: Some(*pid), name: names.get(&pid.0).cloned() });
    let unknown = pids.contains(&None).then_some(Process { pid: None, name: None });
    known.chain(unknown).collect()
}

async fn read(
    trace: &SuperTrace,
    table: &'static Table,
    conditions: Vec<Expr>,
    columns: &[&str],
) -> Result<Vec<RecordBatch>, Error> {
    let frame =
        select(trace.raw(table).await?, conditions, columns).map_err(|e| trace.error(table.name, e))?;
    Ok(frame.collect().await.map_err(|e| trace.error(table.name, e))?)
}

fn select(frame: DataFrame, conditions: Vec<Expr>, columns: &[&str]) -> PlanResult<DataFrame> {
    let frame = conditions.into_iter().try_fold(frame, |frame, condition| frame.filter(condition))?;
    let frame = frame.select(columns.iter().map(|column| ident(*column)).collect::<Vec<_>>())?;
    // A single column is read for its distinct values.
    if columns.len() == 1 { frame.distinct() } else { Ok(frame) }
}

fn get<T: ArrowPrimitiveType>(rows: &RecordBatch, column: usize, row: usize) -> Option<T::Native> {
    let values: &PrimitiveArray<T> = rows.column(column).as_primitive();
    values.is_valid(row).then(|| values.value(row))
}

fn text(rows: &RecordBatch, column: usize, row: usize) -> Option<String> {
    let texts: &ArrayRef = rows.column(column);
    texts.is_valid(row).then(|| texts.as_string::<i32>().value(row).to_string())
}

/// Creation and end, from a begin and the length in the next column.
fn lifetime(rows: &RecordBatch, column: usize, row: usize) -> (Ticks, Option<Ticks>) {
    let born = get::<Int64Type>(rows, column, row).unwrap_or_default();
    let died = get::<Int64Type>(rows, column + 1, row)
        .map(|length| Ticks(born.saturating_add(length).max(0) as u64));
    (Ticks(born.max(0) as u64), died)
}
