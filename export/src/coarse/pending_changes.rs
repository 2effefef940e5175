//! Changes that are buffered until all changes before them are final.

use std::io;

use sigmund_model::{Context, Cpu, Params, Ticks};

use super::lane::{LaneId, LaneValue};
use crate::timeline::{
    Change, CpuId, EventTypeId, LwpId, RecordedEvent, Sink, Slice, SliceKind, ThreadId, Track,
};

/// A change that owns its data.
#[derive(Debug)]
pub(super) enum PendingChange {
    State(LaneId, LaneValue),
    Enter(Track, SliceKind, Box<str>),
    /// A change without data to own.
    Plain(Change<'static>),
    Event(Box<OwnedEvent>),
}

/// An event that owns its parameters.
#[derive(Debug)]
pub(super) struct OwnedEvent {
    kind: EventTypeId,
    cpu: Option<CpuId>,
    lwp: Option<LwpId>,
    thread: Option<ThreadId>,
    context: Option<Context>,
    cpu_seen: Option<Cpu>,
    params: Params,
}

impl PendingChange {
    pub(super) fn event(event: &RecordedEvent<'_>) -> PendingChange {
        let RecordedEvent { kind, cpu, lwp, thread, context, cpu_seen, params } = *event;
        PendingChange::Event(Box::new(OwnedEvent {
            kind,
            cpu,
            lwp,
            thread,
            context,
            cpu_seen,
            params: params.clone(),
        }))
    }

    fn emit(&self, tick: Ticks, sink: &mut impl Sink) -> io::Result<()> {
        match self {
            PendingChange::State(lane, value) => sink.change(tick, &lane.change(*value)),
            PendingChange::Enter(track, kind, name) => {
                sink.change(tick, &Change::Enter(*track, Slice { kind: *kind, name }))
            }
            PendingChange::Plain(change) => sink.change(tick, change),
            PendingChange::Event(event) => {
                let OwnedEvent { kind, cpu, lwp, thread, context, cpu_seen, params } = &**event;
                let (kind, cpu, lwp, thread) = (*kind, *cpu, *lwp, *thread);
                let (context, cpu_seen) = (*context, *cpu_seen);
                sink.change(
                    tick,
                    &Change::Event(&RecordedEvent { kind, cpu, lwp, thread, context, cpu_seen, params }),
                )
            }
        }
    }
}

/// The buffered changes, unsorted.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    /// Each with its instant, and the number of the original change, by which changes of one instant are ordered.
    changes: Vec<(Ticks, u64, PendingChange)>,
}

impl PendingChanges {
    #[inline]
    pub(super) fn push(&mut self, tick: Ticks, number: u64, change: PendingChange) {
        self.changes.push((tick, number, change));
    }

    /// Emits all changes before this tick, in order.
    pub(super) fn emit_before(&mut self, end: u64, sink: &mut impl Sink) -> io::Result<()> {
        self.changes.sort_unstable_by_key(|(tick, number, _)| (*tick, *number));
        let emitted = self.changes.partition_point(|(tick, _, _)| tick.0 < end);
        for (tick, _, change) in self.changes.drain(..emitted) {
            change.emit(tick, sink)?;
        }
        Ok(())
    }
}
