//! Estimates what recording a program's own events cost the program. When a program begins to record, it measures the
//! cost of a record. Each event is counted with this cost, per recorder.
//!
//! A run without tracing would save a different amount. The estimate does not include kernel tracepoints, the effect of
//! records on caches, the change of packets, and the drain. It does not include events that were lost or overwritten
//! either.

mod prices;

use std::cmp::Ordering;

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{DataType, Int32Type, Int64Type},
};
use datafusion::logical_expr::{cast, ident};
use futures::{StreamExt, future::BoxFuture};
use sigmund_model::{
    Lwp, Thread, Ticks,
    tables::{LWPS, THREADS, Table, info_keys},
};
use sigmund_sql::SuperTrace;

use crate::Error;
use prices::Prices;

/// An estimate for a whole super-trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TracingCost {
    /// User events.
    pub events: u64,
    /// Words of parameters in them.
    pub words: u64,
    /// What recording them cost, in ticks.
    pub ticks: f64,
    /// The part of `ticks` that user threads spent.
    pub threads_ticks: f64,
    /// Active time of all user threads; 0 without a kernel side.
    pub active: Ticks,
    /// The recorders with the highest costs, the highest first.
    pub top: Vec<RecorderCost>,
}

/// What recording cost a user thread, or an LWP while it had none.
#[derive(Clone, Debug, PartialEq)]
pub struct RecorderCost {
    /// The user thread or LWP.
    pub recorder: Recorder,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// User events that it recorded.
    pub events: u64,
    /// The cost of recording them, in ticks.
    pub ticks: f64,
    /// How long it executed: the thread's active time, or the LWP's time on CPUs without a user thread; 0 without a
    /// kernel side.
    pub executed: Ticks,
}

/// The user thread or LWP that records events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorder {
    /// A user thread, on whatever LWP.
    Thread(Thread),
    /// An LWP on which no user thread was mounted.
    Lwp(Lwp),
}

/// A cost as a share of the execution time; `None` where that is unknown.
pub fn share(ticks: f64, executed: Ticks) -> Option<f64> {
    (executed.0 > 0).then(|| ticks / executed.0 as f64)
}

/// Estimates what recording cost, with the `top` recorders by cost. `None` if no user trace has the price of a record.
///
/// For a recorder whose process gives no cost, or is unknown, the mean of the other processes is used.
///
/// # Errors
/// When the trace cannot be read.
pub fn tracing_cost(trace: &SuperTrace, top: usize) -> BoxFuture<'_, Result<Option<TracingCost>, Error>> {
    Box::pin(async move {
        if !trace.info().iter().any(|(key, _)| key.starts_with(info_keys::PROBE_TICKS)) {
            return Ok(None);
        }
        let prices = Prices::of(trace);
        let mut cost = TracingCost {
            events: 0,
            words: 0,
            ticks: 0.0,
            threads_ticks: 0.0,
            active: Ticks(0),
            top: Vec::new(),
        };
        for (table, executed) in [(&THREADS, "active_tick"), (&LWPS, "unmounted_tick")] {
            add_recorders(trace, (table, executed), &prices, (&mut cost, top)).await?;
        }
        cost.ticks += cost.threads_ticks;
        keep_most(&mut cost.top, top);
        Ok(Some(cost))
    })
}

/// Adds the user threads or LWPs of a table. The column `executed` has how long each executed.
async fn add_recorders(
    trace: &SuperTrace,
    (table, executed): (&Table, &str),
    prices: &Prices,
    (cost, top): (&mut TracingCost, usize),
) -> Result<(), Error> {
    let are_threads = table.name == THREADS.name;
    let on_table = Error::on(trace, table.name);
    let number = cast(ident(if are_threads { "thread" } else { "lwp" }), DataType::Int64);
    let name = cast(ident("name"), DataType::Utf8);
    let columns = ["pid", "recorded_events", "recorded_words", executed].map(ident);
    let rows = trace.raw(table).await?.select([vec![number, name], columns.to_vec()].concat());
    let mut batches = rows.map_err(&on_table)?.execute_stream().await.map_err(&on_table)?;
    while let Some(batch) = batches.next().await.transpose().map_err(&on_table)? {
        let names = batch.column(1).as_string::<i32>();
        let pids = batch.column(2).as_primitive::<Int32Type>();
        for row in 0..batch.num_rows() {
            let [number, events, words, executed] = [0, 3, 4, 5].map(|column| count(&batch, column, row));
            if are_threads {
                cost.active.0 += executed;
            }
            if events == 0 {
                continue;
            }
            let (record, word) = prices.of_process(pids.is_valid(row).then(|| pids.value(row)));
            let ticks = events as f64 * record + words as f64 * word;
            cost.events += events;
            cost.words += words;
            *(if are_threads { &mut cost.threads_ticks } else { &mut cost.ticks }) += ticks;
            let recorder = match are_threads {
                true => Recorder::Thread(Thread(number)),
                false => Recorder::Lwp(Lwp(number as u32)),
            };
            let name = names.is_valid(row).then(|| names.value(row).to_string());
            cost.top.push(RecorderCost { recorder, name, events, ticks, executed: Ticks(executed) });
            if cost.top.len() >= 2 * top.max(512) {
                keep_most(&mut cost.top, top);
            }
        }
    }
    Ok(())
}

/// Keeps the recorders with the highest costs, the highest first.
fn keep_most(recorders: &mut Vec<RecorderCost>, top: usize) {
    let order = |a: &RecorderCost, b: &RecorderCost| -> Ordering {
        b.ticks.total_cmp(&a.ticks).then_with(|| place(a.recorder).cmp(&place(b.recorder)))
    };
    recorders.sort_unstable_by(order);
    recorders.truncate(top);
}

/// Threads by their numbers, then LWPs.
fn place(recorder: Recorder) -> (bool, u64) {
    match recorder {
        Recorder::Thread(thread) => (false, thread.0),
        Recorder::Lwp(lwp) => (true, lwp.0.into()),
    }
}

/// A number of a column of `Int64`; 0 if it is NULL.
fn count(batch: &RecordBatch, column: usize, row: usize) -> u64 {
    let numbers = batch.column(column).as_primitive::<Int64Type>();
    if numbers.is_valid(row) { numbers.value(row) as u64 } else { 0 }
}
