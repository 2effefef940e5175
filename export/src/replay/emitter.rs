//! Emits changes to a sink, on the sink's thread. Here, rows of events become changes.

use std::{ops::Range, sync::Arc};

use sigmund_model::{Params, Ticks};
use sigmund_query::{EventBatch, EventRow};

use super::{
    Replayed,
    actor_ids::ActorIds,
    declarations::Declarations,
    handed_over::{Changes, Received},
};
use crate::{
    Error,
    timeline::{Actors, Change, EventTypeId, RecordedEvent, Sink},
};

/// Emits changes to a sink.
pub(super) struct Emitter<'a> {
    actors: &'a Actors,
    ids: Arc<ActorIds>,
    declarations: Declarations<'a>,
    params: Params,
    replayed: Replayed,
    /// The numbers of events, of events without a declaration, and of all emitted changes.
    events: u64,
    undeclared: u64,
    changes: u64,
    /// The tick of the last change.
    reached: i64,
    sink: &'a mut dyn Sink,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(actors: &'a Actors, ids: Arc<ActorIds>, sink: &'a mut dyn Sink) -> Emitter<'a> {
        Emitter {
            actors,
            ids,
            declarations: Declarations::of(actors),
            params: Params::default(),
            replayed: Replayed::default(),
            events: 0,
            undeclared: 0,
            changes: 0,
            reached: actors.clock.first.0 as i64,
            sink,
        }
    }

    /// Counts of the emitted changes, and of the replay's corrections up to them.
    pub(super) fn replayed(&self) -> Replayed {
        Replayed {
            events: self.events,
            changes: self.changes,
            unknown_actors: self.replayed.unknown_actors + self.undeclared,
            ..self.replayed
        }
    }

    pub(super) fn reached(&self) -> Ticks {
        Ticks(self.reached as u64)
    }

    pub(super) fn emit(&mut self, changes: &Changes) -> Result<(), Error> {
        for received in changes.iter() {
            match received {
                Received::Change(tick, change) => self.change(tick, &change)?,
                Received::Events(batch, rows) => self.events(batch, rows)?,
            }
        }
        self.replayed = changes.replayed;
        Ok(())
    }

    /// Must be called after the last change.
    pub(super) fn finish(self) -> Result<Replayed, Error> {
        self.sink.finish()?;
        Ok(self.replayed())
    }

    fn events(&mut self, batch: &EventBatch, rows: Range<usize>) -> Result<(), Error> {
        rows.map(|row| batch.row(row)).try_for_each(|row| self.event(&row))
    }

    fn event(&mut self, row: &EventRow<'_>) -> Result<(), Error> {
        let Some(kind) = self.declarations.of_row(row) else {
            self.undeclared += 1;
            return Ok(());
        };
        self.events += 1;
        self.params.clear();
        if let Some(numbers) = row.plain_numbers() {
            self.params.push_numbers(numbers.iter().copied());
        } else {
            for param in row.params() {
                match (param.number, param.text) {
                    (Some(number), Some(name)) => self.params.push_named(number, name),
                    (Some(number), None) => self.params.push_number(number),
                    (None, Some(text)) => self.params.push_text(text),
                    (None, None) => self.params.push_unknown(),
                }
            }
        }
        // `change` borrows `self` mutably, so the parameters are moved out.
        let params = std::mem::take(&mut self.params);
        let (actors, ids) = (self.actors, &self.ids);
        let recorded = RecordedEvent {
            kind: EventTypeId(kind as u32),
            cpu: row.cpu.and_then(|cpu| ids.cpu(actors, cpu)),
            lwp: row.lwp.and_then(|lwp| ids.lwp(actors, lwp, row.tick)),
            thread: row.thread.and_then(|thread| ids.thread(actors, thread, row.tick)),
            context: row.context,
            cpu_seen: row.cpu_seen,
            params: &params,
        };
        let result = self.change(row.tick.0 as i64, &Change::Event(&recorded));
        self.params = params;
        result
    }

    fn change(&mut self, tick: i64, change: &Change<'_>) -> Result<(), Error> {
        self.reached = tick.max(self.reached).min(self.actors.clock.last.0 as i64);
        self.changes += 1;
        Ok(self.sink.change(Ticks(self.reached as u64), change)?)
    }
}
