//! Changes that wait until everything before them is known.

use std::io;

use sigmund_model::{Context, Cpu, Params, Ticks};

use super::lane::{LaneId, Value};
use crate::timeline::{Change, CpuId, EventKind, Happening, LwpId, Sink, Slice, SliceKind, ThreadId, Track};

/// A change that owns what it says.
#[derive(Debug)]
pub(super) enum Held {
    State(LaneId, Value),
    Enter(Track, SliceKind, Box<str>),
    /// One that has nothing to own.
    Plain(Change<'static>),
    Event(Box<Event>),
}

/// An event that owns its parameters.
#[derive(Debug)]
pub(super) struct Event {
    kind: EventKind,
    cpu: Option<CpuId>,
    lwp: Option<LwpId>,
    thread: Option<ThreadId>,
    context: Option<Context>,
    cpu_seen: Option<Cpu>,
    params: Params,
}

impl Held {
    pub(super) fn event(event: &Happening<'_>) -> Held {
        let Happening { kind, cpu, lwp, thread, context, cpu_seen, params } = *event;
        Held::Event(Box::new(Event { kind, cpu, lwp, thread, context, cpu_seen, params: params.clone() }))
    }

    fn tell(&self, tick: Ticks, sink: &mut impl Sink) -> io::Result<()> {
        match self {
            Held::State(lane, value) => sink.change(tick, &lane.change(*value)),
            Held::Enter(track, kind, name) => {
                sink.change(tick, &Change::Enter(*track, Slice { kind: *kind, name }))
            }
            Held::Plain(change) => sink.change(tick, change),
            Held::Event(event) => {
                let Event { kind, cpu, lwp, thread, context, cpu_seen, params } = &**event;
                let (kind, cpu, lwp, thread) = (*kind, *cpu, *lwp, *thread);
                let (context, cpu_seen) = (*context, *cpu_seen);
                sink.change(
                    tick,
                    &Change::Event(&Happening { kind, cpu, lwp, thread, context, cpu_seen, params }),
                )
            }
        }
    }
}

/// The changes that wait; not in order.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// With their instants, and the numbers of the changes that they come from: those of one instant keep their order.
    held: Vec<(Ticks, u64, Held)>,
}

impl Waiting {
    #[inline]
    pub(super) fn push(&mut self, tick: Ticks, number: u64, held: Held) {
        self.held.push((tick, number, held));
    }

    /// Tells all before this tick, in order.
    pub(super) fn tell_before(&mut self, end: u64, sink: &mut impl Sink) -> io::Result<()> {
        self.held.sort_unstable_by_key(|(tick, number, _)| (*tick, *number));
        let told = self.held.partition_point(|(tick, _, _)| tick.0 < end);
        for (tick, _, held) in self.held.drain(..told) {
            held.tell(tick, sink)?;
        }
        Ok(())
    }
}
