//! Changes that are passed from the thread of the replay to the thread of the sink, many at a time. Events are passed
//! as rows.

use std::{ops::Range, sync::Arc};

use sigmund_query::EventBatch;

use super::Replayed;
use crate::timeline::{Change, Slice, SliceKind, Track};

/// The number of changes that are passed together. They are few enough to stay in the caches.
const CHANGES: usize = 1 << 12;

/// Changes in the order of time.
#[derive(Default)]
pub(super) struct Changes {
    list: Vec<HandedOver>,
    /// The names of slices, concatenated.
    names: String,
    /// The counts up to here, without events.
    pub(super) replayed: Replayed,
    /// The number of changes; each event counts as one.
    len: usize,
}

enum HandedOver {
    /// Any change except the beginning of a slice and an event.
    Change(i64, Change<'static>),
    Enter {
        tick: i64,
        track: Track,
        kind: SliceKind,
        name: Range<u32>,
    },
    /// Consecutive rows of one batch.
    Events(Arc<EventBatch>, Range<usize>),
}

/// A change that is received.
pub(super) enum Received<'c> {
    Change(i64, Change<'c>),
    Events(&'c EventBatch, Range<usize>),
}

impl Changes {
    /// Whether there are enough changes to pass them on.
    pub(super) fn are_many(&self) -> bool {
        self.len >= CHANGES
    }

    /// The number of rows of events that may still be added; at least one.
    pub(super) fn room(&self) -> usize {
        CHANGES.saturating_sub(self.len).max(1)
    }

    /// Adds any change except the beginning of a slice and an event.
    #[inline]
    pub(super) fn push(&mut self, tick: i64, change: Change<'static>) {
        self.list.push(HandedOver::Change(tick, change));
        self.len += 1;
    }

    /// Adds the beginning of a slice.
    pub(super) fn enter(&mut self, tick: i64, track: Track, slice: Slice<'_>) {
        let from = self.names.len() as u32;
        self.names.push_str(slice.name);
        let name = from..self.names.len() as u32;
        self.list.push(HandedOver::Enter { tick, track, kind: slice.kind, name });
        self.len += 1;
    }

    /// Adds events.
    pub(super) fn events(&mut self, batch: &Arc<EventBatch>, rows: Range<usize>) {
        self.len += rows.len();
        self.list.push(HandedOver::Events(Arc::clone(batch), rows));
    }

    /// The changes, in the order in which they were added.
    pub(super) fn iter(&self) -> impl Iterator<Item = Received<'_>> {
        self.list.iter().map(|change| match change {
            HandedOver::Change(tick, change) => Received::Change(*tick, *change),
            HandedOver::Enter { tick, track, kind, name } => {
                let name = &self.names[name.start as usize..name.end as usize];
                Received::Change(*tick, Change::Enter(*track, Slice { kind: *kind, name }))
            }
            HandedOver::Events(batch, rows) => Received::Events(batch, rows.clone()),
        })
    }
}
