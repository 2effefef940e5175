//! Replays a super-trace as a [`timeline`](crate::timeline): rows of tables become changes.
//!
//! ```text
//!   lwp_states, thread_states ──────────────▶ sorted by begin ─┐
//!   syscalls, interrupts, spans, locks,                        ├─▶ in the order of time ─▶ Replayer ─▶ Emitter ─▶ Sink
//!   wakeups, counters ──────────────────────▶ sorted by begin ─┤
//!   events ────────────────────────────────────────────────────┘
//!         other threads                          a thread for the replay │ the thread that calls it
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
//! | processes | the processes' threads | the processes' LWPs | only these LWPs and threads on them | of the processes' LWPs | of the processes' LWPs; all counters |
//! | CPUs | while on them | while on them, or waiting for them | these | on them | interrupts, wakeups and run queues of these; all others |
//! | level `USER` | all | all, without LWP states | only user threads on them, and the LWPs on which these are mounted | of this level | spans, holds, unparks, ready queues |
//! | level `KERN` | none | all | without user threads | of this level | system calls, interrupts, wakeups of LWPs, run queues |
//! | events | all | all | all | these | all |
//! | from, to | everything is cut to the window | | | | |
//!
//! The replay streams: memory grows by some words for each actor, lock and team, and not with the length of the trace.

mod actor_ids;
mod by_begin;
mod columns;
mod current_values;
mod declarations;
mod emitter;
mod handed_over;
mod in_order;
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

use std::{collections::BTreeMap, io, sync::Arc};

use datafusion::logical_expr::Expr;
use futures::future::BoxFuture;
use sigmund_model::{
    Level, Ticks,
    tables::{OPTIONAL, Table, info_keys},
};
use sigmund_query::{Filter, Window, list_events, number_in};
use sigmund_sql::SuperTrace;
use tokio::{runtime::Handle, sync::mpsc};

use self::{
    actor_ids::ActorIds,
    by_begin::RowSource,
    emitter::Emitter,
    in_order::InOrder,
    replayer::{Replayer, has_only_threads},
    rows::{CounterRow, QueueNumber},
};
use crate::{
    Error,
    timeline::{Actors, Sink},
};

pub use read_actors::read_actors;

/// The number of times that changes may be passed on before they are received: enough for each thread to continue while
/// the other waits.
const HANDED_OVER: usize = 16;

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
    /// Slices among them whose end was not recorded. They end at the last evidence for them, see `end_reason` in the
    /// tables.
    pub slices_without_end: u64,
    /// Slices among them that would end after the enclosing slice of their track. They are cut to its end.
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

/// Emits the part of a super-trace that the filter selects to a sink; only the events, if the sink [needs no
/// more](Sink::needs_events_only). `progress` is called periodically with the tick reached. An error from it ends the
/// replay.
///
/// # Errors
/// If the filter gives a time and the rate of the clock is unknown; if the trace cannot be read; or if the sink or
/// `progress` fails.
pub async fn replay(
    trace: &SuperTrace,
    filter: &Filter,
    actors: &Arc<Actors>,
    sink: &mut dyn Sink,
    mut progress: impl FnMut(&Replayed, Ticks) -> io::Result<()>,
) -> Result<Replayed, Error> {
    let window = Window { from: Some(actors.clock.first.0 as i64), to: Some(actors.clock.last.0 as i64) };
    let Recorded { rows, before } = recorded(trace, filter, &window, sink.needs_events_only()).await?;
    let ids = Arc::new(ActorIds::of(actors));
    let (hand_over, mut handed_over) = mpsc::channel(HANDED_OVER);
    let (of_replayer, ids_of_replayer) = (Arc::clone(actors), Arc::clone(&ids));
    let only_threads = has_only_threads(filter);
    let runtime = Handle::current();
    // The replay has its own thread. As an asynchronous task, it would keep the tasks that it wakes waiting on its
    // worker.
    let replaying = tokio::task::spawn_blocking(move || {
        let mut replayer = Replayer::new(&of_replayer, ids_of_replayer, only_threads);
        for (queue, value) in before {
            replayer.counter(&CounterRow { at: of_replayer.clock.first.0 as i64, queue, value });
        }
        rows.replay_on(&runtime, replayer, hand_over)
    });
    let mut emitter = Emitter::new(actors, ids, sink);
    while let Some(changes) = handed_over.recv().await {
        emitter.emit(&changes)?;
        progress(&emitter.replayed(), emitter.reached())?;
    }
    match replaying.await {
        Ok(replayed) => replayed?,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
    emitter.finish()
}

/// The tables of intervals that the merge left out of this super-trace; an export lacks these intervals.
pub fn left_out_tables(trace: &SuperTrace) -> Vec<&'static Table> {
    let names = trace.info().get(info_keys::LEFT_OUT_TABLES).unwrap_or_default();
    OPTIONAL.iter().filter(|table| names.split(',').any(|name| name.trim() == table.name)).collect()
}

/// What a filter selects.
struct Recorded {
    rows: InOrder,
    /// The values of counters before its window.
    before: BTreeMap<QueueNumber, i64>,
}

/// Only the events, if no more is needed.
fn recorded<'a>(
    trace: &'a SuperTrace,
    filter: &'a Filter,
    window: &'a Window,
    events_only: bool,
) -> BoxFuture<'a, Result<Recorded, Error>> {
    Box::pin(async move {
        let mut rows = InOrder::new(list_events(trace, filter).await?);
        if events_only {
            return Ok(Recorded { rows, before: BTreeMap::new() });
        }
        rows.states(states(trace, filter, window).await?);
        rows.intervals(interval_tables::intervals(trace, filter, window).await?);
        let before = interval_tables::counters_before(trace, filter, window).await?;
        Ok(Recorded { rows, before })
    })
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
        let states = state_rows::lwp_states(trace, filter.place(trace)?, window).await?;
        sources.push(Box::new(states));
    }
    if filter.level != Some(Level::Kern) {
        let mut conditions: Vec<Expr> = filter.place_of_threads(trace)?;
        if let Some(threads) = filter.threads_of_processes(trace).await? {
            conditions.push(number_in("thread", threads.iter().map(|thread| thread.0 as i64)));
        }
        let states = state_rows::thread_states(trace, conditions, window).await?;
        sources.push(Box::new(states));
    }
    Ok(sources)
}
