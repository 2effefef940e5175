//! What recording a program's own events cost it, estimated: each event at the price that the program measured when it
//! began to record, by who recorded it.
//!
//! It is not what a run without tracing would save: kernel tracepoints, caches that the records displaced, the change
//! of packets and the drain are not in it, nor are events that were lost or overwritten.

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{Float64Type, Int64Type},
};
use sigmund_model::{FieldType, Level, Lwp, Thread, Ticks, tables::info_keys};
use sigmund_sql::SuperTrace;

use crate::Error;

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
    /// How long it executed: the thread's active time, or the LWP's time on CPUs without a user thread; 0 where no kernel
    /// side says it.
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

/// Estimates what recording cost, and who spent most of it, `top` of them. `None` when no user trace says what it costs.
///
/// LWPs of a process that does not say, or that are of no known process, are taken to pay what the others pay.
///
/// # Errors
/// When the trace cannot be read.
pub async fn tracing_cost(trace: &SuperTrace, top: usize) -> Result<Option<TracingCost>, Error> {
    if !trace.info().iter().any(|(key, _)| key.starts_with(info_keys::PROBE_TICKS)) {
        return Ok(None);
    }
    let mut cost = TracingCost {
        events: 0,
        words: 0,
        ticks: 0.0,
        threads_ticks: 0.0,
        active: Ticks(0),
        top: Vec::new(),
    };
    for batch in trace.sql(&query(trace, top)).await?.collect().await? {
        for row in 0..batch.num_rows() {
            cost.top.push(recorder_cost(&batch, row));
            cost.events = count(&batch, 6, row);
            cost.words = count(&batch, 7, row);
            cost.ticks = batch.column(8).as_primitive::<Float64Type>().value(row);
            cost.threads_ticks = batch.column(9).as_primitive::<Float64Type>().value(row);
            cost.active = Ticks(count(&batch, 10, row));
        }
    }
    Ok(Some(cost))
}

fn recorder_cost(batch: &RecordBatch, row: usize) -> RecorderCost {
    let names = batch.column(2).as_string::<i32>();
    let recorder = if batch.column(0).is_valid(row) {
        Recorder::Thread(Thread(count(batch, 0, row)))
    } else {
        Recorder::Lwp(Lwp(count(batch, 1, row) as u32))
    };
    RecorderCost {
        recorder,
        name: names.is_valid(row).then(|| names.value(row).to_string()),
        events: count(batch, 3, row),
        ticks: batch.column(4).as_primitive::<Float64Type>().value(row),
        executed: Ticks(count(batch, 5, row)),
    }
}

/// A count in a column of `Int64`; 0 if it is NULL.
fn count(batch: &RecordBatch, column: usize, row: usize) -> u64 {
    let numbers = batch.column(column).as_primitive::<Int64Type>();
    if numbers.is_valid(row) { numbers.value(row) as u64 } else { 0 }
}

/// A row for each of those who spent most, each with the sums over all behind it. Nothing in it comes from a trace but
/// places of fields.
fn query(trace: &SuperTrace, top: usize) -> String {
    let (record, word) = (prices(info_keys::PROBE_TICKS), prices(info_keys::PROBE_WORD_TICKS));
    let text_words = text_words(trace);
    format!(
        "WITH record AS ({record}), word AS ({word}),
         declared AS (
           SELECT name, max(coalesce(cardinality(field_types), 0)) AS words,
                  bool_or(array_has(field_types, '{text}')) AS has_texts
           FROM event_types WHERE level = 'USER' GROUP BY name),
         counted AS (
           SELECT lwp, thread, name, count(*) AS events FROM raw_events WHERE level = 'USER'
           GROUP BY lwp, thread, name),
         recorded AS (
           SELECT lwp, thread, events, events * coalesce(words, 0) AS words
           FROM counted LEFT JOIN declared ON declared.name = counted.name
           UNION ALL
           SELECT lwp, thread, 0 AS events, {text_words} AS words FROM raw_events
           WHERE level = 'USER' AND name IN (SELECT name FROM declared WHERE has_texts)),
         by_lwp AS (
           SELECT lwp, thread, sum(events) AS events, sum(words) AS words FROM recorded GROUP BY lwp, thread),
         paid AS (
           SELECT by_lwp.thread, CASE WHEN by_lwp.thread IS NULL THEN by_lwp.lwp END AS lwp, by_lwp.events, by_lwp.words,
                  by_lwp.events * coalesce(record.ticks, (SELECT avg(ticks) FROM record), 0)
                  + by_lwp.words * coalesce(word.ticks, (SELECT avg(ticks) FROM word), 0) AS ticks
           FROM by_lwp LEFT JOIN raw_lwps ON raw_lwps.lwp = by_lwp.lwp
           LEFT JOIN record ON record.pid = raw_lwps.pid LEFT JOIN word ON word.pid = raw_lwps.pid),
         recorder AS (
           SELECT thread, lwp, sum(events) AS events, sum(words) AS words, sum(ticks) AS ticks
           FROM paid GROUP BY thread, lwp)
         SELECT recorder.thread, CAST(recorder.lwp AS BIGINT) AS lwp,
                coalesce(raw_threads.name, raw_lwps.name) AS name,
                CAST(recorder.events AS BIGINT) AS events, recorder.ticks AS ticks,
                coalesce(raw_threads.active_tick, raw_lwps.unmounted_tick) AS executed_tick,
                CAST(sum(recorder.events) OVER () AS BIGINT) AS all_events,
                CAST(sum(recorder.words) OVER () AS BIGINT) AS all_words,
                sum(recorder.ticks) OVER () AS all_ticks,
                sum(CASE WHEN recorder.thread IS NULL THEN 0.0 ELSE recorder.ticks END) OVER () AS threads_ticks,
                (SELECT CAST(sum(active_tick) AS BIGINT) FROM raw_threads) AS active_tick
         FROM recorder LEFT JOIN raw_threads ON raw_threads.thread = recorder.thread
         LEFT JOIN raw_lwps ON raw_lwps.lwp = recorder.lwp
         ORDER BY 5 DESC, 1, 2 LIMIT {top}",
        text = FieldType::Text.name()
    )
}

/// What a key of `info` says for each process. One that became another program said it twice.
fn prices(key: &str) -> String {
    format!(
        "SELECT TRY_CAST(substr(key, {}) AS INT) AS pid, avg(TRY_CAST(value AS DOUBLE)) AS ticks
         FROM info WHERE starts_with(key, '{key}') GROUP BY TRY_CAST(substr(key, {0}) AS INT)",
        key.len() + 1
    )
}

/// The words that texts take behind the one with their length, by the places where texts are declared. A field that has a
/// number has no text of its own, but the name of the number.
fn text_words(trace: &SuperTrace) -> String {
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
    if words.is_empty() { "0".into() } else { words.join(" + ") }
}
