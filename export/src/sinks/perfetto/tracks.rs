//! The tracks of track events: their uuids, and their descriptors, which are written at the first use.

use super::{
    batch::Batch,
    schema::{descriptor, packet},
    wire::Wire,
};
use crate::timeline::{Actors, CpuId, LwpId, ProcessId, ThreadId, Track};

/// The sequence of track events and descriptors; ftrace's packets have a separate one.
pub(super) const SEQUENCE: u64 = 1;

/// A track, by its contents.
#[derive(Clone, Copy, Debug)]
pub(super) enum Row {
    /// A process; a group for LWPs of an unknown process.
    Process(ProcessId),
    /// The group of a process's user threads.
    Threads(ProcessId),
    /// States of a user thread.
    Thread(ThreadId),
    /// Spans, functions and events of a user thread.
    ThreadSpans(ThreadId),
    /// System calls, spans and events of an LWP.
    Lwp(LwpId),
    /// User threads mounted on an LWP.
    Mounted(LwpId),
    /// The group of [`Row::CpuThread`].
    Executing,
    /// User threads that a CPU executes.
    CpuThread(CpuId),
    /// The group of [`Row::CpuInterrupts`].
    Interrupts,
    /// Interrupts of a CPU, and events in them.
    CpuInterrupts(CpuId),
    /// Ready user threads of a process.
    ReadyQueue(ProcessId),
    /// The group of [`Row::RunQueue`].
    RunQueues,
    /// Runnable LWPs that wait for a CPU.
    RunQueue(CpuId),
    /// Events without a known CPU, LWP and user thread.
    Unplaced,
}

/// Number of kinds of rows, which take four bits of the uuid.
const KINDS: usize = 16;

impl Row {
    /// The row of an event, or of the end of a flow.
    pub(super) fn events(track: Track) -> Row {
        match track {
            Track::Cpu(cpu) => Row::CpuInterrupts(cpu),
            Track::Lwp(lwp) => Row::Lwp(lwp),
            Track::Thread(thread) => Row::ThreadSpans(thread),
        }
    }

    fn kind_and_index(self) -> (u64, u32) {
        match self {
            Row::Process(process) => (1, process.0),
            Row::Threads(process) => (2, process.0),
            Row::Thread(thread) => (3, thread.0),
            Row::ThreadSpans(thread) => (4, thread.0),
            Row::Lwp(lwp) => (5, lwp.0),
            Row::Mounted(lwp) => (6, lwp.0),
            Row::Executing => (7, 0),
            Row::CpuThread(cpu) => (8, cpu.0),
            Row::Interrupts => (9, 0),
            Row::CpuInterrupts(cpu) => (10, cpu.0),
            Row::ReadyQueue(process) => (11, process.0),
            Row::RunQueues => (12, 0),
            Row::RunQueue(cpu) => (13, cpu.0),
            Row::Unplaced => (14, 0),
        }
    }

    fn parent(self, actors: &Actors) -> Option<Row> {
        match self {
            Row::Process(_) | Row::Executing | Row::Interrupts | Row::RunQueues | Row::Unplaced => None,
            Row::Threads(process) | Row::ReadyQueue(process) => Some(Row::Process(process)),
            Row::Thread(thread) | Row::ThreadSpans(thread) => Some(Row::Threads(actors[thread].process)),
            Row::Lwp(lwp) => Some(Row::Process(actors[lwp].process)),
            Row::Mounted(lwp) => Some(Row::Lwp(lwp)),
            Row::CpuThread(_) => Some(Row::Executing),
            Row::CpuInterrupts(_) => Some(Row::Interrupts),
            Row::RunQueue(_) => Some(Row::RunQueues),
        }
    }

    /// Order among its siblings.
    fn rank(self) -> u32 {
        match self {
            Row::Thread(thread) => thread.0.saturating_mul(2),
            Row::ThreadSpans(thread) => thread.0.saturating_mul(2).saturating_add(1),
            _ => self.kind_and_index().1,
        }
    }
}

/// Records which tracks have been described.
pub(super) struct Tracks {
    described: [Vec<bool>; KINDS],
}

impl Tracks {
    pub(super) fn new() -> Tracks {
        Tracks { described: [const { Vec::new() }; KINDS] }
    }

    /// The uuid of a row; never 0, which the viewer uses itself. The first call for a row writes its descriptor to
    /// `batch`.
    #[inline]
    pub(super) fn uuid(&mut self, row: Row, actors: &Actors, batch: &mut Batch) -> u64 {
        let (kind, index) = row.kind_and_index();
        if self.described[kind as usize].get(index as usize) != Some(&true) {
            self.describe(row, actors, batch);
        }
        u64::from(index) << 4 | kind
    }

    #[cold]
    fn describe(&mut self, row: Row, actors: &Actors, batch: &mut Batch) {
        let (kind, index) = row.kind_and_index();
        let described = &mut self.described[kind as usize];
        described.resize(described.len().max(index as usize + 1), false);
        described[index as usize] = true;
        let parent = row.parent(actors).map(|parent| self.uuid(parent, actors, batch));
        batch.packet(|out| {
            out.number(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            out.message(packet::TRACK_DESCRIPTOR, |out| {
                out.number(descriptor::UUID, u64::from(index) << 4 | kind);
                if let Some(parent) = parent {
                    out.number(descriptor::PARENT_UUID, parent);
                    out.number(descriptor::SIBLING_ORDER_RANK, u64::from(row.rank().min(i32::MAX as u32)));
                }
                body(out, row, actors);
            });
        });
    }
}

fn body(out: &mut Vec<u8>, row: Row, actors: &Actors) {
    match row {
        Row::Process(process) => self::process(out, process, actors),
        Row::Lwp(lwp) => self::lwp(out, lwp, actors),
        Row::Threads(_) => group(out, "User threads"),
        Row::Executing => group(out, "User threads on CPUs"),
        Row::Interrupts => group(out, "Interrupts on CPUs"),
        Row::RunQueues => group(out, "Run queues"),
        Row::Thread(thread) => named(out, &actors.thread_label(thread)),
        Row::ThreadSpans(thread) => named(out, &format!("{}: spans, events", actors.thread_label(thread))),
        Row::Mounted(lwp) => named(out, &format!("{}: user threads", actors[lwp].label())),
        Row::CpuThread(cpu) | Row::CpuInterrupts(cpu) => named(out, &format!("CPU {}", actors[cpu])),
        Row::ReadyQueue(_) => counter(out, "Ready queue"),
        Row::RunQueue(cpu) => counter(out, &format!("CPU {}", actors[cpu])),
        Row::Unplaced => named(out, "Events of unknown origin"),
    }
}

fn process(out: &mut Vec<u8>, process: ProcessId, actors: &Actors) {
    let process = &actors[process];
    let Some(pid) = process.pid else { return named(out, &process.label()) };
    out.message(descriptor::PROCESS, |out| {
        out.number(descriptor::PROCESS_PID, u64::from(pid.0));
        if let Some(name) = &process.name {
            out.text(descriptor::PROCESS_NAME, name);
        }
    });
}

/// A thread descriptor contains the process, so an LWP of an unknown process has none.
fn lwp(out: &mut Vec<u8>, lwp: LwpId, actors: &Actors) {
    let lwp = &actors[lwp];
    let Some(pid) = actors[lwp.process].pid else { return named(out, &lwp.label()) };
    out.message(descriptor::THREAD, |out| {
        out.number(descriptor::THREAD_PID, u64::from(pid.0));
        out.number(descriptor::THREAD_TID, u64::from(lwp.lwp.0));
        if let Some(name) = &lwp.name {
            out.text(descriptor::THREAD_NAME, name);
        }
    });
}

/// Siblings with the same name are not merged: user threads may have the same name, and even the same number.
fn named(out: &mut Vec<u8>, name: &str) {
    out.text(descriptor::NAME, name);
    out.number(descriptor::SIBLING_MERGE_BEHAVIOR, descriptor::SIBLING_MERGE_BEHAVIOR_NONE);
}

fn group(out: &mut Vec<u8>, name: &str) {
    named(out, name);
    out.number(descriptor::CHILD_ORDERING, descriptor::ORDERING_EXPLICIT);
}

fn counter(out: &mut Vec<u8>, name: &str) {
    named(out, name);
    out.message(descriptor::COUNTER, |out| out.number(descriptor::COUNTER_UNIT, descriptor::UNIT_COUNT));
}
