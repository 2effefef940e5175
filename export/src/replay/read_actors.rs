//! Reads the actors and the clock: the tables `lwps`, `threads`, `processes`, `cpus` and `clocks`.

use std::collections::{BTreeSet, HashMap};

use arrow::{
    array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch},
    datatypes::{Float64Type, Int32Type, Int64Type},
};
use datafusion::{
    error::Result as PlanResult,
    logical_expr::{Expr, ident, lit},
    prelude::DataFrame,
};
use futures::future::BoxFuture;
use sigmund_model::{
    Cpu, Level, Lwp, Pid, Thread, Ticks,
    tables::{CLOCKS, CPUS, LWPS, PROCESSES, THREAD_STATES, THREADS, Table},
};
use sigmund_query::{Filter, Window, number_in};
use sigmund_sql::SuperTrace;

use super::teams::teams;
use crate::{
    Error,
    timeline::{Actors, Clock, LwpActor, Names, Process, ProcessId, ThreadActor},
};

/// Reads the actors that a filter selects.
///
/// # Errors
/// If the filter gives a time and the rate of the clock is unknown; if the trace cannot be read.
pub fn read_actors<'a>(trace: &'a SuperTrace, filter: &'a Filter) -> BoxFuture<'a, Result<Actors, Error>> {
    Box::pin(async move {
        let clock = clock(trace, filter).await?;
        let mut lwps = lwps(trace, filter, &clock).await?;
        lwps.sort_by_key(|lwp| (lwp.lwp, lwp.born));
        let ThreadRows { mut threads, mut names, pids } = threads(trace, filter, &clock).await?;
        threads.sort_by_key(|thread| (thread.thread, thread.born));
        threads.shrink_to_fit();
        names.shrink_to_fit();

        let all_pids: BTreeSet<Option<Pid>> =
            pids.iter().copied().chain(lwps.iter().map(|lwp| lwp.pid)).collect();
        let processes = processes(&all_pids, &lwps, process_names(trace).await?);
        let by_pid: HashMap<Option<Pid>, ProcessId> =
            processes.iter().enumerate().map(|(at, process)| (process.pid, ProcessId(at as u32))).collect();
        let process = |pid: Option<Pid>| by_pid.get(&pid).copied().unwrap_or(ProcessId(0));
        for thread in &mut threads {
            thread.process = process(pids[thread.process.index()]);
        }
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
            threads,
            thread_names: names,
            processes,
            teams: Vec::new(),
        };
        actors.teams = teams(trace, &actors).await?;
        Ok(actors)
    })
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

/// The selected LWPs that live in the window; if user threads are selected, the LWPs on which one of them was mounted.
async fn lwps(trace: &SuperTrace, filter: &Filter, window: &Clock) -> Result<Vec<LwpRow>, Error> {
    let mut conditions = Vec::new();
    let of_lwps =
        Filter { lwps: filter.lwps.clone(), processes: filter.processes.clone(), ..Filter::default() };
    conditions.extend(of_lwps.place(trace)?);
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
    each_row(trace, &LWPS, conditions, &columns, |rows, row| {
        let (born, died) = lifetime(rows, 3, row);
        if !overlaps((born, died), window) {
            return;
        }
        lwps.push(LwpRow {
            lwp: Lwp(get::<Int32Type>(rows, 0, row).unwrap_or_default() as u32),
            name: text(rows, 1, row).map(Into::into),
            pid: get::<Int32Type>(rows, 2, row).map(|pid| Pid(pid as u32)),
            born,
            died,
            carries_threads: rows.column(5).as_boolean().value(row),
        });
    })
    .await?;
    Ok(lwps)
}

/// User threads, whose processes are indices in `pids`.
#[derive(Default)]
struct ThreadRows {
    threads: Vec<ThreadActor>,
    names: Names,
    pids: Vec<Option<Pid>>,
}

/// The largest number of names for which there is room before they are read: the number of threads is what a file says.
const MOST_RESERVED: usize = 1 << 22;

/// The selected user threads that live in the window; none if only the kernel level is selected.
async fn threads(trace: &SuperTrace, filter: &Filter, window: &Clock) -> Result<ThreadRows, Error> {
    let mut read = ThreadRows::default();
    if filter.level == Some(Level::Kern) {
        return Ok(read);
    }
    let conditions = filter
        .threads_of_processes(trace)
        .await?
        .map(|threads| number_in("thread", threads.iter().map(|thread| thread.0 as i64)));
    let columns = ["thread", "name", "pid", "ts_tick", "dur_tick", "created_by"];
    let mut known_pids: HashMap<Option<Pid>, u32> = HashMap::new();
    read.names.reserve(
        usize::try_from(trace.thread_count()).map_or(MOST_RESERVED, |count| count.min(MOST_RESERVED)),
    );
    each_row(trace, &THREADS, conditions.into_iter().collect(), &columns, |rows, row| {
        let (born, died) = lifetime(rows, 3, row);
        if !overlaps((born, died), window) {
            return;
        }
        let pid = get::<Int32Type>(rows, 2, row).map(|pid| Pid(pid as u32));
        let process = *known_pids.entry(pid).or_insert_with(|| {
            read.pids.push(pid);
            read.pids.len() as u32 - 1
        });
        read.threads.push(ThreadActor {
            thread: Thread(get::<Int64Type>(rows, 0, row).unwrap_or_default() as u64),
            name: text(rows, 1, row).map(|name| read.names.add(name)),
            process: ProcessId(process),
            born,
            died,
            created_by: get::<Int64Type>(rows, 5, row).map(|by| Thread(by as u64)),
        });
    })
    .await?;
    Ok(read)
}

/// Names of processes, by pid.
async fn process_names(trace: &SuperTrace) -> Result<HashMap<u32, String>, Error> {
    if trace.info().left_out_tables().any(|name| name == PROCESSES.name) {
        return Ok(HashMap::new());
    }
    let mut names = HashMap::new();
    each_row(trace, &PROCESSES, Vec::new(), &["pid", "name"], |rows, row| {
        if let (Some(pid), Some(name)) = (get::<Int32Type>(rows, 0, row), text(rows, 1, row)) {
            names.insert(pid as u32, name.to_string());
        }
    })
    .await?;
    Ok(names)
}

/// The processes of these actors, sorted by pid; then one without a pid, if the process of some actors is unknown.
fn processes(pids: &BTreeSet<Option<Pid>>, lwps: &[LwpRow], mut names: HashMap<u32, String>) -> Vec<Process> {
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

/// Calls `each` with each selected row of these columns, batch by batch.
async fn each_row(
    trace: &SuperTrace,
    table: &'static Table,
    conditions: Vec<Expr>,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch, usize),
) -> Result<(), Error> {
    let frame =
        select(trace.raw(table).await?, conditions, columns).map_err(|e| trace.error(table.name, e))?;
    let each_batch = |rows: &RecordBatch| (0..rows.num_rows()).for_each(|row| each(rows, row));
    Ok(trace.each_batch(table.name, frame, each_batch).await?)
}

/// The selected rows of a table with few of them.
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

fn text(rows: &RecordBatch, column: usize, row: usize) -> Option<&str> {
    let texts: &ArrayRef = rows.column(column);
    texts.is_valid(row).then(|| texts.as_string::<i32>().value(row))
}

/// Creation and end, from a begin and the length in the next column.
type Lifetime = (Ticks, Option<Ticks>);

fn lifetime(rows: &RecordBatch, column: usize, row: usize) -> Lifetime {
    let born = get::<Int64Type>(rows, column, row).unwrap_or_default();
    let died = get::<Int64Type>(rows, column + 1, row)
        .map(|length| Ticks(born.saturating_add(length).max(0) as u64));
    (Ticks(born.max(0) as u64), died)
}

fn overlaps((born, died): Lifetime, window: &Clock) -> bool {
    born <= window.last && died.is_none_or(|died| died >= window.first)
}
