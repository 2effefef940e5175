//! Replays a super-trace as a [`timeline`](crate::timeline): rows of tables become changes.
//!
//! ```text
//!   lwp_states, thread_states ──────────────▶ sorted by begin ─┐
//!   events ────────────────────────────────────────────────────┼─▶ in the order of time ─▶ Replayer ─▶ Sink
//!   syscalls, interrupts, spans, locks,                        │
//!   wakeups, counters ──────────────────────▶ sorted by begin ─┘
//! ```
//!
//! No events are paired here: an interval is a row of a table, so a viewer shows the same intervals as SQL. Order at
//! one tick: intervals end, states begin, events occur, other intervals begin. The tables are described in
//! [`sigmund_model::tables`]. Intervals whose table was left out of the super-trace are missing in the export, see
//! [`left_out_tables`].
//!
//! What a filter selects:
//!
//! | filter | user threads | LWPs | CPUs | events | slices, holds, wakeups, counters |
//! |---|---|---|---|---|---|
//! | none | all | all | all | all | all |
//! | threads | these | the LWPs on which they were mounted, without LWP states | only these threads on them | of these threads | of these; interrupts of these; all counters |
//! | LWPs | while mounted on them | these | only these LWPs on them | of these LWPs | of these; interrupts of these; all counters |
//! | CPUs | while on them | while on them, or waiting for them | these | on them | interrupts, wakeups and run queues of these; all others |
//! | level `USER` | all | all, without LWP states | only user threads on them, and the LWPs these are mounted on | of that level | spans, holds, unparks, ready queues |
//! | level `KERN` | none | all | without user threads | of that level | system calls, interrupts, wakeups of LWPs, run queues |
//! | events | all | all | all | these | all |
//! | from, to | everything is cut to the window | | | | |
//!
//! The replay streams: memory grows by some words for each actor, lock and team, and not with the length of the trace.

mod actor_ids;
mod by_begin;
mod current_values;
mod declarations;
mod interval_readers;
mod interval_tables;
mod late_rows;
mod merged_rows;
mod open_intervals;
mod read_actors;
mod replayer;
mod rows;
mod state_rows;
mod teams;

use std::{collections::BTreeMap, io};

use datafusion::logical_expr::Expr;
use sigmund_model::{
    Level, Ticks,
    tables::{OPTIONAL, Table, info_keys},
};
use sigmund_query::{EventBatch, Filter, Window, list_events, number_in};
use sigmund_sql::SuperTrace;

use self::{by_begin::RowSource, replayer::Replayer, rows::CounterRow};
use crate::{
    Error,
    timeline::{Actors, Sink},
};

pub use read_actors::read_actors;

/// Counts of what was replayed and corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// States of LWPs and of user threads.
    pub states: u64,
    /// Events.
    pub events: u64,
    /// Changes that the sink received.
    pub changes: u64,
    /// Slices: system calls, interrupts, spans and functions.
    pub slices: u64,
    /// Slices among them whose end was not recorded: they end where the evidence for them ends, see `end_reason` in the
    /// tables.
    pub slices_without_end: u64,
    /// Slices among them that end after the enclosing slice of their track: cut to its end.
    pub cut_slices: u64,
    /// Holds of locks.
    pub holds: u64,
    /// Holds among them whose end was not recorded.
    pub holds_without_end: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// States and events that were left out, because their LWP, user thread or event type is unknown.
    pub unknown_actors: u64,
}

/// Emits what the filter selects to a sink; only the events, if it [needs no more](Sink::needs_events_only). `progress` is called periodically with the tick reached; an error from it
/// ends the replay.
///
/// # Errors
/// When the filter gives a time and the rate of the clock is unknown; when the trace cannot be read, or the sink or
/// `progress` fails.
pub async fn replay(
    trace: &SuperTrace,
    filter: &Filter,
    actors: &Actors,
    sink: &mut dyn Sink,
    mut progress: impl FnMut(&Replayed, Ticks) -> io::Result<()>,
) -> Result<Replayed, Error> {
    let window = Window { from: Some(actors.clock.first.0 as i64), to: Some(actors.clock.last.0 as i64) };
    let needs_intervals = !sink.needs_events_only();
    let mut sources = if needs_intervals { states(trace, filter, &window).await? } else { Vec::new() };
    let state_sources = sources.len();
    if needs_intervals {
        sources.extend(interval_tables::intervals(trace, filter, &window).await?);
    }
    let mut events =
        EventCursor { rows: list_events(trace, filter).await?, batch: None, row: 0, ended: false };
    let mut replayer = Replayer::new(filter, actors, sink);
    let before = match needs_intervals {
        true => interval_tables::counters_before(trace, filter, &window).await?,
        false => BTreeMap::new(),
    };
    for (queue, value) in before {
        replayer.counter(&CounterRow { at: actors.clock.first.0 as i64, queue, value })?;
    }

    loop {
        for source in &mut sources {
            while source.needs_more() {
                source.more(trace).await?;
            }
        }
        if events.needs_more() {
            events.more().await?;
            progress(replayer.replayed(), replayer.reached())?;
        }
        // Replay until one of the sources must read more.
        let mut begins: Vec<Option<i64>> = sources.iter().map(|source| source.next_begin()).collect();
        let mut next = next_source(&begins);
        loop {
            // States precede events of the same tick, other intervals follow them.
            let is_before = |event: i64| {
                next.is_some_and(
                    |(source, begin)| if source < state_sources { begin <= event } else { begin < event },
                )
            };
            match (next, events.next_tick()) {
                (_, Some(event)) if !is_before(event) => {
                    if let Some((batch, row)) = events.take() {
                        replayer.event(&batch.row(row))?;
                    }
                    if events.next_tick().is_none() {
                        break;
                    }
                }
                (Some((source, _)), _) => {
                    sources[source].replay_next(&mut replayer)?;
                    begins[source] = sources[source].next_begin();
                    next = next_source(&begins);
                    if begins[source].is_none() {
                        break;
                    }
                }
                (None, _) => break,
            }
        }
        let are_done = sources.iter().all(|source| !source.needs_more() && source.next_begin().is_none());
        if events.ended && events.next_tick().is_none() && are_done {
            return replayer.finish();
        }
    }
}

/// The source with the earliest begin; of several, the first.
fn next_source(begins: &[Option<i64>]) -> Option<(usize, i64)> {
    let known = begins.iter().enumerate().filter_map(|(source, begin)| Some((source, (*begin)?)));
    known.min_by_key(|(_, begin)| *begin)
}

/// The tables of intervals that the merge left out of this super-trace; an export lacks these intervals.
pub fn left_out_tables(trace: &SuperTrace) -> Vec<&'static Table> {
    let names = trace.info().get(info_keys::LEFT_OUT_TABLES).unwrap_or_default();
    OPTIONAL.iter().filter(|table| names.split(',').any(|name| name.trim() == table.name)).collect()
}

/// States of LWPs, unless user threads or the user level are selected; and states of user threads, unless only the
/// kernel level is selected.
async fn states(
    trace: &SuperTrace,
    filter: &Filter,
    window: &Window,
) -> Result<Vec<Box<dyn RowSource>>, Error> {
    let mut sources: Vec<Box<dyn RowSource>> = Vec::new();
    if filter.threads.is_empty() && filter.level != Some(Level::User) {
        let states = state_rows::lwp_states(trace, filter.place(), window).await?;
        sources.push(Box::new(states));
    }
    if filter.level != Some(Level::Kern) {
        let mut conditions: Vec<Expr> = filter.place();
        if let Some(threads) = filter.thread_numbers(trace)? {
            conditions.push(number_in("thread", threads.iter().map(|thread| thread.0 as i64)));
        }
        let states = state_rows::thread_states(trace, conditions, window).await?;
        sources.push(Box::new(states));
    }
    Ok(sources)
}

/// Reads the rows of events.
struct EventCursor {
    rows: sigmund_query::EventRows,
    batch: Option<EventBatch>,
    row: usize,
    ended: bool,
}

impl EventCursor {
    fn needs_more(&self) -> bool {
        !self.ended && self.next_tick().is_none()
    }

    async fn more(&mut self) -> Result<(), Error> {
        self.batch = self.rows.next().await?;
        self.row = 0;
        self.ended = self.batch.is_none();
        Ok(())
    }

    fn next_tick(&self) -> Option<i64> {
        let batch = self.batch.as_ref().filter(|batch| self.row < batch.len())?;
        Some(batch.tick(self.row).0 as i64)
    }

    fn take(&mut self) -> Option<(&EventBatch, usize)> {
        let row = self.row;
        self.row += 1;
        self.batch.as_ref().map(|batch| (batch, row))
    }
}
