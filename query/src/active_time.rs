//! How long each user thread executed: the sum of its active intervals. Time in which the thread was mounted but not on
//! a CPU does not count. What a thread waited for is in the table `thread_states`.
//!
//! The sum over the whole trace is in the table `threads` (`sigmund check` compares them), so no interval is read for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow::{
    array::{AsArray, RecordBatch},
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    common::runtime::SpawnedTask,
    error::Result as PlanResult,
    functions::core::expr_fn::{greatest, least},
    functions_aggregate::expr_fn::sum,
    logical_expr::{Expr, cast, ident, lit},
    prelude::DataFrame,
};
use futures::future::BoxFuture;
use rayon::prelude::*;
use sigmund_model::{
    Thread, Ticks,
    tables::{ACTIVE, THREADS},
};
use sigmund_sql::{
    SuperTrace, Useful,
    columns::{Texts, Wide},
};

use crate::{
    Error, Filter,
    filter::{Window, number_in},
};

/// The active time of one user thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveTime {
    /// The thread.
    pub thread: Thread,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its active time, within the filter's window and on its LWPs and CPUs.
    pub active: Ticks,
}

/// The active time of the threads that the filter names, sorted by thread number. If the filter names no thread: of all
/// threads.
///
/// Of an interval that is partly outside the window, the part inside counts. A thread that exists but did not execute
/// in the window has 0. A thread that does not exist is left out.
///
/// # Errors
/// When the filter selects events or a level, which do not apply to active time; when the trace cannot be read.
pub fn active_time<'a>(
    trace: &'a SuperTrace,
    filter: &'a Filter,
) -> BoxFuture<'a, Result<Vec<ActiveTime>, Error>> {
    Box::pin(async move {
        if !filter.events.is_empty() || filter.level.is_some() {
            return Err(Error::argument(
                "active time is of threads, not of events: expected no event and no level filter",
            ));
        }
        let on_table = Error::on(trace, ACTIVE.name);
        let (threads, window) = (filter.thread_numbers(trace)?, filter.window(trace)?);
        if filter.lwps.is_empty() && filter.processes.is_empty() && filter.cpus.is_empty() {
            if window == Window::default() {
                return totals(trace, threads).await;
            }
            if let Some(threads) = threads.as_ref().filter(|threads| threads.len() <= MOST_OWN) {
                return own(trace, threads, window).await;
            }
        }
        let mut conditions = filter.place(trace)?;
        if let Some(threads) = &threads {
            conditions.push(number_in("thread", threads.iter().map(|t| t.0 as i64)));
        }
        let sums = plan(trace.raw(&ACTIVE).await?, conditions, window).map_err(&on_table)?;

        let named;
        let names = match &threads {
            Some(threads) => {
                named = trace.threads_among(threads).await?;
                &named
            }
            None => trace.threads()?,
        };
        let mut active: BTreeMap<Thread, Ticks> =
            names.iter().map(|(thread, _)| (thread, Ticks(0))).collect();
        for batch in sums.collect().await.map_err(&on_table)? {
            let (threads, ticks) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1));
            let ticks = ticks.as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                active.insert(Thread(threads.value(row) as u64), Ticks(ticks.value(row) as u64));
            }
        }
        let row = |(thread, active)| {
            let name = names.name(thread).map(String::from);
            ActiveTime { thread, name, active }
        };
        Ok(active.into_iter().map(row).collect())
    })
}

/// Up to so many threads, only their rows are read, without a plan.
const MOST_OWN: usize = 1000;

/// The active time of a few threads, on any LWP and CPU.
async fn own(trace: &SuperTrace, threads: &[Thread], window: Window) -> Result<Vec<ActiveTime>, Error> {
    let numbers: Arc<BTreeSet<i64>> = Arc::new(threads.iter().map(|thread| thread.0 as i64).collect());
    let lives = trace.row_groups(&THREADS, &["thread", "name", "ts_tick", "dur_tick"])?;
    let active = trace.row_groups(&ACTIVE, &["thread", "ts_tick", "dur_tick"])?;
    let (first, last) = (window.from.unwrap_or(i64::MIN), window.to.unwrap_or(i64::MAX));
    let read = move || {
        let lives = lives.rows_with("thread", &numbers)?;
        let time = lives.iter().filter_map(life).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let times = [time.unwrap_or((i64::MIN, i64::MAX))];
        let useful = Useful { times: &times, unended: true };
        // Only the sums of a row group are kept.
        let sums = (0..active.len())
            .into_par_iter()
            .map(|group| Ok(sums(&active.read_where(group, useful, ("thread", &numbers))?, (first, last))))
            .collect::<Result<Vec<_>, sigmund_sql::Error>>()?;
        Ok::<_, sigmund_sql::Error>((lives, sums))
    };
    let (lives, sums) = SpawnedTask::spawn_blocking(read).join().await.map_err(Error::of_task)??;
    let sums = sums.into_iter().flatten().map(|(thread, active)| ActiveTime { thread, name: None, active });
    let lives = lives.iter().flat_map(|batch| times_of(batch, |_| Ticks(0)));
    Ok(added_up(sums.chain(lives).collect()))
}

/// The active time of these threads, or of all, in the whole trace, on any LWP and CPU.
async fn totals(trace: &SuperTrace, threads: Option<Vec<Thread>>) -> Result<Vec<ActiveTime>, Error> {
    let rows = trace.row_groups(&THREADS, &["thread", "name", "active_tick"])?;
    let times = |batch: &RecordBatch| {
        let active = Wide::of(batch, 2);
        times_of(batch, |row| Ticks(active.or_zero(row).max(0) as u64)).collect::<Vec<_>>()
    };
    let read = move || match threads {
        Some(threads) => {
            let numbers = Arc::new(threads.iter().map(|thread| thread.0 as i64).collect());
            Ok(rows.rows_with("thread", &numbers)?.iter().map(times).collect())
        }
        None => (0..rows.len()).into_par_iter().map(|group| Ok(times(&rows.read(group)?))).collect(),
    };
    let times: Result<Vec<Vec<ActiveTime>>, sigmund_sql::Error> =
        SpawnedTask::spawn_blocking(read).join().await.map_err(Error::of_task)?;
    Ok(added_up(times?.into_iter().flatten().collect()))
}

/// The threads of some rows of `threads`. Columns: thread, name.
fn times_of(batch: &RecordBatch, active: impl Fn(usize) -> Ticks) -> impl Iterator<Item = ActiveTime> {
    let (threads, names) = (Wide::of(batch, 0), Texts::of(batch, 1));
    (0..batch.num_rows()).map(move |row| ActiveTime {
        thread: Thread(threads.or_zero(row) as u64),
        name: names.get(row).map(String::from),
        active: active(row),
    })
}

/// One row for each thread, in the order of their numbers. A number that occurs several times has the last name, and all of
/// the time.
fn added_up(mut times: Vec<ActiveTime>) -> Vec<ActiveTime> {
    times.sort_by_key(|of| of.thread);
    times.dedup_by(|next, first| {
        let is_same = next.thread == first.thread;
        if is_same {
            first.name = next.name.take();
            first.active.0 = first.active.0.saturating_add(next.active.0);
        }
        is_same
    });
    times
}

/// The ticks of each thread in rows of `active`, clipped to a window. Columns: thread, ts_tick, dur_tick.
fn sums(active: &RecordBatch, (first, last): (i64, i64)) -> BTreeMap<Thread, Ticks> {
    let (thread, from, length) = (Wide::of(active, 0), Wide::of(active, 1), Wide::of(active, 2));
    let mut sums: BTreeMap<Thread, Ticks> = BTreeMap::new();
    for row in 0..active.num_rows() {
        let (from, length) = (from.or_zero(row), length.or_zero(row));
        let inside = from.saturating_add(length).min(last).saturating_sub(from.max(first)).max(0);
        let sum = sums.entry(Thread(thread.or_zero(row) as u64)).or_default();
        sum.0 = sum.0.saturating_add(inside as u64);
    }
    sums
}

/// From the first beginning of these threads to their last end; without an end, to the end of time.
fn life(threads: &RecordBatch) -> Option<(i64, i64)> {
    let (from, length) = (Wide::of(threads, 2), Wide::of(threads, 3));
    let of = |row: usize| {
        let from = from.or_zero(row);
        (from, length.get(row).map_or(i64::MAX, |length| from.saturating_add(length)))
    };
    (0..threads.num_rows()).map(of).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// `SELECT thread, sum(end - start) FROM active WHERE … GROUP BY thread`; start and end are clipped to the window.
fn plan(active: DataFrame, conditions: Vec<Expr>, window: Window) -> PlanResult<DataFrame> {
    let (mut start, mut end) = (ident("ts_tick"), ident("ts_tick") + ident("dur_tick"));
    let mut active = active;
    for condition in conditions {
        active = active.filter(condition)?;
    }
    if let Some(from) = window.from {
        active = active.filter(end.clone().gt(lit(from)))?;
        start = greatest(vec![start, lit(from)]);
    }
    if let Some(to) = window.to {
        active = active.filter(ident("ts_tick").lt(lit(to)))?;
        end = least(vec![end, lit(to)]);
    }
    active.aggregate(vec![ident("thread")], vec![cast(sum(end - start), DataType::Int64)])
}
