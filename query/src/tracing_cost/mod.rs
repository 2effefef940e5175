//! What recording a program's own events cost it, estimated: each event at the price that the program measured when it
//! began to record, by recorder.
//!
//! It is not what a run without tracing would save: kernel tracepoints, caches that the records displaced, the change
//! of packets and the drain are not in it, nor are events that were lost or overwritten.

mod paid;
mod prices;

use std::cmp::Ordering;

use arrow::{
    array::{Array, AsArray, Int32Array, Int64Array, RecordBatch},
    datatypes::{Int32Type, Int64Type},
};
use datafusion::logical_expr::{ident, lit};
use futures::StreamExt;
use sigmund_model::{
    FieldType, Level, Lwp, Thread, Ticks,
    tables::{EVENTS, info_keys},
};
use sigmund_sql::SuperTrace;

use crate::Error;
use paid::{Paid, Recorded};
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
/// LWPs of a process that does not say, or that are of no known process, are taken to pay what the others pay.
///
/// # Errors
/// When the trace cannot be read.
pub async fn tracing_cost(trace: &SuperTrace, top: usize) -> Result<Option<TracingCost>, Error> {
    if !trace.info().iter().any(|(key, _)| key.starts_with(info_keys::PROBE_TICKS)) {
        return Ok(None);
    }
    let mut prices = Prices::read(trace).await?;
    let mut recorded = Recorded::default();
    count_records(trace, &mut prices, &mut recorded).await?;
    count_texts(trace, &mut prices, &mut recorded).await?;
    let mut cost = TracingCost {
        events: 0,
        words: 0,
        ticks: 0.0,
        threads_ticks: 0.0,
        active: active_time(trace).await?,
        top: Vec::new(),
    };
    let mut most: Vec<(Recorder, Paid)> = Vec::new();
    for (recorder, paid) in recorded.iter() {
        cost.events += paid.events;
        cost.words += paid.words;
        cost.ticks += paid.ticks;
        if let Recorder::Thread(_) = recorder {
            cost.threads_ticks += paid.ticks;
        }
        most.push((recorder, paid));
        if most.len() >= 2 * top.max(512) {
            keep_most(&mut most, top);
        }
    }
    keep_most(&mut most, top);
    for (recorder, paid) in most {
        let (name, executed) = about(trace, recorder).await?;
        cost.top.push(RecorderCost { recorder, name, events: paid.events, ticks: paid.ticks, executed });
    }
    Ok(Some(cost))
}

/// Keeps the recorders with the highest costs, the highest first.
fn keep_most(recorders: &mut Vec<(Recorder, Paid)>, top: usize) {
    let order = |(a, of_a): &(Recorder, Paid), (b, of_b): &(Recorder, Paid)| -> Ordering {
        of_b.ticks.total_cmp(&of_a.ticks).then_with(|| place(*a).cmp(&place(*b)))
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

/// Each event at the price of a record, and of the words that its declaration shows.
async fn count_records(
    trace: &SuperTrace,
    prices: &mut Prices,
    recorded: &mut Recorded,
) -> Result<(), Error> {
    let on_events = Error::on(trace, EVENTS.name);
    let frame = trace.raw(&EVENTS).await?.filter(ident("level").eq(lit(Level::User.name())));
    let frame = frame.and_then(|frame| frame.select(["lwp", "thread", "name"].map(ident).to_vec()));
    let frame = trace.in_file_order(frame.map_err(&on_events)?);
    let mut batches = frame.execute_stream().await.map_err(&on_events)?;
    while let Some(batch) = batches.next().await.transpose().map_err(&on_events)? {
        let (lwps, threads) = recorders(&batch);
        let names = batch.column(2).as_dictionary::<Int32Type>();
        let words: Vec<u64> =
            names.values().as_string::<i32>().iter().map(|name| prices.declared_words(name)).collect();
        for row in 0..batch.num_rows() {
            let words = names.key(row).map_or(0, |key| words[key]);
            let lwp = number(lwps, row);
            if let Some(paid) = recorded.of(lwp, number(threads, row)) {
                let (record, word) = prices.of(lwp);
                paid.add(1, words, record + words as f64 * word);
            }
        }
    }
    Ok(())
}

/// The words that texts take, which no declaration shows.
async fn count_texts(trace: &SuperTrace, prices: &mut Prices, recorded: &mut Recorded) -> Result<(), Error> {
    let Some(words) = text_words(trace) else { return Ok(()) };
    let query = format!(
        "SELECT lwp, thread, CAST({words} AS BIGINT) AS words FROM raw_events
         WHERE level = 'USER' AND name IN (
           SELECT name FROM event_types WHERE level = 'USER' AND array_has(field_types, '{}'))",
        FieldType::Text.name()
    );
    let on_events = Error::on(trace, EVENTS.name);
    let mut batches = trace.sql(&query).await?.into_frame().execute_stream().await.map_err(&on_events)?;
    while let Some(batch) = batches.next().await.transpose().map_err(&on_events)? {
        let (lwps, threads) = recorders(&batch);
        let words = batch.column(2).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let (lwp, words) = (number(lwps, row), number(words, row).unwrap_or_default() as u64);
            if let Some(paid) = recorded.of(lwp, number(threads, row)) {
                paid.add(0, words, words as f64 * prices.of(lwp).1);
            }
        }
    }
    Ok(())
}

fn recorders(batch: &RecordBatch) -> (&Int32Array, &Int64Array) {
    (batch.column(0).as_primitive::<Int32Type>(), batch.column(1).as_primitive::<Int64Type>())
}

fn number<T: arrow::array::ArrowPrimitiveType>(
    numbers: &arrow::array::PrimitiveArray<T>,
    row: usize,
) -> Option<T::Native> {
    numbers.is_valid(row).then(|| numbers.value(row))
}

/// Active time of all user threads.
async fn active_time(trace: &SuperTrace) -> Result<Ticks, Error> {
    let batches =
        trace.sql("SELECT CAST(sum(active_tick) AS BIGINT) FROM raw_threads").await?.collect().await?;
    Ok(batches.first().map_or(Ticks(0), |batch| Ticks(count(batch, 0))))
}

/// The name of a recorder, and how long it executed.
async fn about(trace: &SuperTrace, recorder: Recorder) -> Result<(Option<String>, Ticks), Error> {
    let query = match recorder {
        Recorder::Thread(thread) => {
            format!("SELECT active_tick, name FROM raw_threads WHERE thread = {}", thread.0 as i64)
        }
        Recorder::Lwp(lwp) => format!("SELECT unmounted_tick, name FROM raw_lwps WHERE lwp = {}", lwp.0),
    };
    let batches = trace.sql(&query).await?.collect().await?;
    let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else { return Ok((None, Ticks(0))) };
    let names = batch.column(1).as_string::<i32>();
    Ok((names.is_valid(0).then(|| names.value(0).to_string()), Ticks(count(batch, 0))))
}

/// The first number of a column of `Int64`; 0 if it is NULL.
fn count(batch: &RecordBatch, column: usize) -> u64 {
    number(batch.column(column).as_primitive::<Int64Type>(), 0).map_or(0, |number| number as u64)
}

/// The words that texts take after the one with their length, by the places where texts are declared; `None` if none is. A field
/// that has a number has no text of its own, but the name of the number.
fn text_words(trace: &SuperTrace) -> Option<String> {
    let user = trace.event_types().iter().filter(|event| event.ty.level == Level::User);
    let fields = user.flat_map(|event| (1..).zip(&event.ty.fields));
    let mut places: Vec<usize> =
        fields.filter(|(_, field)| field.ty == FieldType::Text).map(|(place, _)| place).collect();
    places.sort_unstable();
    places.dedup();
    let words = |place: &usize| {
        format!(
            "CASE WHEN args[{place}] IS NULL THEN coalesce((octet_length(texts[{place}]) + 7) / 8, 0) ELSE 0 END"
        )
    };
    let words: Vec<String> = places.iter().map(words).collect();
    (!words.is_empty()).then(|| words.join(" + "))
}
