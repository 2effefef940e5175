//! Replays a super-trace as a [`timeline`](crate::timeline): rows of tables become changes.
//!
//! ```text
//!   lwp_states ───▶ by their begins ─┐
//!   thread_states ▶ by their begins ─┼─▶ in the order of time ─▶ Replayer ─▶ Sink
//!   events ──────────────────────────┘        (states before events of the same tick)
//! ```
//!
//! What a filter selects:
//!
//! | filter | user threads | LWPs | CPUs | events, and slices and wakeups made of them |
//! |---|---|---|---|---|
//! | none | all | all | all | all |
//! | threads | these | those on which they were mounted, without states of their own | only these on them | that concern them |
//! | LWPs | while on them | these | only these on them | of theirs |
//! | CPUs | while on them | while on them, or waiting for them | these | on them |
//! | level `USER` | all | all, without states of their own | only user threads on them, and the LWPs these are mounted on | of that side |
//! | level `KERN` | none | all | without user threads | of that side |
//! | events | all | all | all | these |
//! | from, to | all are cut to the window | | | |
//!
//! It streams: memory grows with the number of tracks, locks and teams, not with the length of the trace.

mod actor_ids;
mod current_values;
mod declarations;
mod event_roles;
mod open_holds;
mod open_slices;
mod queue_lengths;
mod read_actors;
mod replayer;
mod state_intervals;
mod teams;

use std::io;

use datafusion::logical_expr::Expr;
use sigmund_model::{
    Level, LwpState, ThreadState, Ticks,
    tables::{LWP_STATES, THREAD_STATES},
};
use sigmund_query::{EventBatch, Filter, Window, list_events, number_in};
use sigmund_sql::SuperTrace;

use self::{
    replayer::Replayer,
    state_intervals::{StateIntervals, Wanted},
};
use crate::{
    Error,
    timeline::{Actors, Sink},
};

pub use read_actors::read_actors;

/// What was replayed, and what had to be corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// States of LWPs and of user threads.
    pub states: u64,
    /// Events.
    pub events: u64,
    /// Changes that the sink received.
    pub changes: u64,
    /// Ends of slices without a begin in the trace: left out.
    pub ends_without_begin: u64,
    /// Slices without an end in the trace: ended with the slice around them.
    pub begins_without_end: u64,
    /// Holds of locks without a begin: left out; and without an end: ended at the next acquisition, or with the trace.
    pub broken_holds: u64,
    /// States and events of unknown LWPs, user threads or event types: left out.
    pub unknown_actors: u64,
}

/// Emits what the filter selects to a sink. `progress` is called periodically, with the tick that was reached; an error of it
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
    let mut lwps = lwp_states(trace, filter, &window, actors.lwps.len()).await?;
    let mut threads = thread_states(trace, filter, &window, actors.threads.len()).await?;
    let mut events = Events { rows: list_events(trace, filter).await?, batch: None, row: 0, ended: false };
    let mut replayer = Replayer::new(trace, filter, actors, sink);

    loop {
        while lwps.as_ref().is_some_and(StateIntervals::needs_more) {
            lwps.as_mut().expect("checked above").more(trace).await?;
        }
        while threads.as_ref().is_some_and(StateIntervals::needs_more) {
            threads.as_mut().expect("checked above").more(trace).await?;
        }
        if events.needs_more() {
            events.more().await?;
            progress(replayer.replayed(), replayer.reached())?;
        }
        // As long as nothing more has to be read.
        let (mut next_lwp, mut next_thread) = (next_of(&lwps), next_of(&threads));
        let mut next_event = events.next_tick();
        while let Some(next) = [next_lwp, next_thread, next_event].into_iter().flatten().min() {
            if next_lwp == Some(next) {
                replayer
                    .lwp_state(&lwps.as_mut().and_then(StateIntervals::take).expect("there is a next"))?;
                next_lwp = next_of(&lwps);
                if next_lwp.is_none() {
                    break;
                }
            } else if next_thread == Some(next) {
                replayer.thread_state(
                    &threads.as_mut().and_then(StateIntervals::take).expect("there is a next"),
                )?;
                next_thread = next_of(&threads);
                if next_thread.is_none() {
                    break;
                }
            } else if let Some((batch, row)) = events.take() {
                replayer.event(&batch.row(row))?;
                next_event = events.next_tick();
                if next_event.is_none() {
                    break;
                }
            }
        }
        let all_replayed = |rows: &Option<StateIntervals>| {
            rows.as_ref().is_none_or(|rows| !rows.needs_more() && rows.next_from().is_none())
        };
        if events.ended && events.next_tick().is_none() && all_replayed(&lwps) && all_replayed(&threads) {
            return replayer.finish();
        }
    }
}

fn next_of(rows: &Option<StateIntervals>) -> Option<i64> {
    rows.as_ref().and_then(StateIntervals::next_from)
}

/// States of LWPs; none if only user threads, or the user side, are selected.
async fn lwp_states(
    trace: &SuperTrace,
    filter: &Filter,
    window: &Window,
    tracks: usize,
) -> Result<Option<StateIntervals>, Error> {
    if !filter.threads.is_empty() || filter.level == Some(Level::User) {
        return Ok(None);
    }
    let states = LwpState::ALL.iter().map(|state| state.name()).collect();
    let wanted =
        Wanted { table: &LWP_STATES, actor: "lwp", states, conditions: filter.place(), window, tracks };
    StateIntervals::read(trace, wanted).await.map(Some)
}

/// States of user threads; none if only the kernel side is selected.
async fn thread_states(
    trace: &SuperTrace,
    filter: &Filter,
    window: &Window,
    tracks: usize,
) -> Result<Option<StateIntervals>, Error> {
    if filter.level == Some(Level::Kern) {
        return Ok(None);
    }
    let mut conditions: Vec<Expr> = filter.place();
    if let Some(threads) = filter.thread_numbers(trace) {
        conditions.push(number_in("thread", threads.iter().map(|thread| thread.0 as i64)));
    }
    let states = ThreadState::ALL.iter().map(|state| state.name()).collect();
    let wanted = Wanted { table: &THREAD_STATES, actor: "thread", states, conditions, window, tracks };
    StateIntervals::read(trace, wanted).await.map(Some)
}

/// The rows of events.
struct Events {
    rows: sigmund_query::EventRows,
    batch: Option<EventBatch>,
    row: usize,
    ended: bool,
}

impl Events {
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
