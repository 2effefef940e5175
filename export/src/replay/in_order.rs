//! Replays the rows of all tables in the order of time.

use std::{ops::Range, sync::Arc};

use sigmund_query::{EventBatch, EventRows};
use tokio::{runtime::Handle, sync::mpsc::Sender};

use super::{by_begin::RowSource, handed_over::Changes, replayer::Replayer};
use crate::Error;

/// The rows of all tables. At the same tick, states precede events, and other intervals follow the events.
pub(super) struct InOrder {
    sources: Vec<Box<dyn RowSource>>,
    /// The number of sources of states. They are the first sources.
    states: usize,
    events: EventCursor,
}

impl InOrder {
    pub(super) fn new(events: EventRows) -> InOrder {
        let events = EventCursor { rows: events, batch: None, row: 0, ended: false };
        InOrder { sources: Vec::new(), states: 0, events }
    }

    /// Adds sources of states, before all others.
    pub(super) fn states(&mut self, sources: Vec<Box<dyn RowSource>>) {
        self.states += sources.len();
        self.sources.splice(0..0, sources);
    }

    /// Adds sources of other intervals.
    pub(super) fn intervals(&mut self, sources: Vec<Box<dyn RowSource>>) {
        self.sources.extend(sources);
    }

    /// Replays all rows on this thread, and passes the changes to the receiver. Ends early if there is no receiver any more.
    pub(super) fn replay_on(
        self,
        runtime: &Handle,
        replayer: Replayer<'_>,
        hand_over: Sender<Changes>,
    ) -> Result<(), Error> {
        runtime.block_on(self.replay(replayer, hand_over))
    }

    async fn replay(mut self, mut replayer: Replayer<'_>, hand_over: Sender<Changes>) -> Result<(), Error> {
        loop {
            for source in &mut self.sources {
                while source.needs_more() {
                    source.more().await?;
                }
            }
            if self.events.needs_more() {
                self.events.more().await?;
            }
            self.replay_known(&mut replayer);
            let are_done =
                self.sources.iter().all(|source| !source.needs_more() && source.next_begin().is_none());
            let ended = self.events.ended && self.events.next_tick().is_none() && are_done;
            if ended {
                replayer.finish();
            }
            if (ended || replayer.changes().are_many()) && hand_over.send(replayer.take()).await.is_err() {
                return Ok(());
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// Replays rows until a source must read more, or there are enough changes to pass on.
    fn replay_known(&mut self, replayer: &mut Replayer<'_>) {
        let InOrder { sources, states, events } = self;
        let mut begins: Vec<Option<i64>> = sources.iter().map(|source| source.next_begin()).collect();
        while !replayer.changes().are_many() {
            let next = next_source(&begins);
            // Events before this tick precede the next row of the other sources.
            let until = next.map_or(i64::MAX, |(source, begin)| match source < *states {
                true => begin,
                false => begin.saturating_add(1),
            });
            match (events.next_tick(), next) {
                (Some(event), _) if event < until || next.is_none() => {
                    replayer.advance(event);
                    let until = until.min(replayer.next_end());
                    let room = replayer.changes().room();
                    if let Some((batch, rows)) = events.take_until(until, room) {
                        replayer.changes().events(batch, rows);
                    }
                    if events.next_tick().is_none() {
                        return;
                    }
                }
                (_, Some((source, _))) => {
                    sources[source].replay_next(replayer);
                    begins[source] = sources[source].next_begin();
                    if begins[source].is_none() {
                        return;
                    }
                }
                (_, None) => return,
            }
        }
    }
}

/// The source with the earliest begin. If several have it, the first of them.
fn next_source(begins: &[Option<i64>]) -> Option<(usize, i64)> {
    let known = begins.iter().enumerate().filter_map(|(source, begin)| Some((source, (*begin)?)));
    known.min_by_key(|(_, begin)| *begin)
}

/// Reads the rows of events.
struct EventCursor {
    rows: EventRows,
    batch: Option<Arc<EventBatch>>,
    row: usize,
    ended: bool,
}

impl EventCursor {
    fn needs_more(&self) -> bool {
        !self.ended && self.next_tick().is_none()
    }

    async fn more(&mut self) -> Result<(), Error> {
        self.batch = self.rows.next().await?.map(Arc::new);
        self.row = 0;
        self.ended = self.batch.is_none();
        Ok(())
    }

    fn next_tick(&self) -> Option<i64> {
        let ticks = self.batch.as_ref()?.ticks();
        ticks.get(self.row).copied()
    }

    /// Takes the next row, and those of the rows after it that are before `tick`; at most `room` rows.
    fn take_until(&mut self, tick: i64, room: usize) -> Option<(&Arc<EventBatch>, Range<usize>)> {
        let batch = self.batch.as_ref()?;
        let rest = batch.ticks().get(self.row + 1..)?;
        let more = rest.iter().take(room.saturating_sub(1)).take_while(|next| **next < tick).count();
        let rows = self.row..self.row + 1 + more;
        self.row = rows.end;
        Some((batch, rows))
    }
}
