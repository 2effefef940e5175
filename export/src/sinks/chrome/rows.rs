//! Rows. The format has no tracks other than threads of processes, so CPUs, states and spans are rows with pids and
//! tids that no real process or thread has.
//!
//! | row | pid | tid |
//! |---|---|---|
//! | states of an LWP | its process's | its own |
//! | system calls, spans and events of an LWP; the user threads mounted on it | its process's | 2 B + 2 i, 2 B + 2 i + 1 |
//! | states of a user thread; its spans, functions and events | its process's | B + 2 i, B + 2 i + 1 |
//! | LWPs on a CPU, user threads on it, its interrupts | B + 1 | 3 B + 3 i, 3 B + 3 i + 1, 3 B + 3 i + 2 |
//! | events of unknown origin | B + 1 | 4 B - 1 |
//!
//! i is the index of the actor, so two user threads with the same number have two rows. LWPs of an unknown process are
//! in process B. B is 1,000,000,000, and Linux has no tid above 4,194,304 (`PID_MAX_LIMIT`, include/linux/threads.h);
//! if a trace has one that is larger than B, B is the next multiple.

use super::json::Json;
use crate::timeline::{Actors, CpuId, LwpId, ProcessId, ThreadId, Track};

const BASE: u64 = 1_000_000_000;

/// A row, by its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Lwp(LwpId),
    LwpCalls(LwpId),
    Mounted(LwpId),
    Thread(ThreadId),
    ThreadSpans(ThreadId),
    CpuLwp(CpuId),
    CpuThread(CpuId),
    CpuInterrupts(CpuId),
    Unplaced,
}

impl Row {
    /// The row of slices and events.
    pub(super) fn events(track: Track) -> Row {
        match track {
            Track::Cpu(cpu) => Row::CpuInterrupts(cpu),
            Track::Lwp(lwp) => Row::LwpCalls(lwp),
            Track::Thread(thread) => Row::ThreadSpans(thread),
        }
    }

    /// The row of states; flows begin and end at its slices.
    pub(super) fn states(track: Track) -> Row {
        match track {
            Track::Cpu(cpu) => Row::CpuInterrupts(cpu),
            Track::Lwp(lwp) => Row::Lwp(lwp),
            Track::Thread(thread) => Row::Thread(thread),
        }
    }
}

/// Assigns pids and tids to rows, and records which rows have been named.
pub(super) struct Rows {
    base: u64,
    lwps: u64,
    /// Whether a row has been named, by its kind and index.
    named: [Vec<bool>; 9],
    processes: Vec<bool>,
}

/// The pid and tid of a row.
#[derive(Clone, Copy)]
pub(super) struct RowIds {
    pub(super) pid: u64,
    pub(super) tid: u64,
}

impl Rows {
    pub(super) fn new(actors: &Actors) -> Rows {
        let tids = actors.lwps.iter().map(|lwp| u64::from(lwp.lwp.0));
        let pids = actors.processes.iter().filter_map(|process| Some(u64::from(process.pid?.0)));
        let largest = tids.chain(pids).max().unwrap_or(0);
        Rows {
            base: (largest + 1).next_multiple_of(BASE),
            lwps: actors.lwps.len() as u64,
            named: [const { Vec::new() }; 9],
            processes: vec![false; actors.processes.len()],
        }
    }

    /// The pid and tid of a row. The first call for a row writes its name to `out`, as separate events.
    #[inline]
    pub(super) fn ids(&mut self, row: Row, actors: &Actors, out: &mut Vec<u8>) -> RowIds {
        let (kind, index) = kind_and_index(row);
        let ids = RowIds { pid: self.pid(row, actors), tid: self.tid(row, actors) };
        if self.named[kind].get(index as usize) != Some(&true) {
            self.name(row, ids, actors, out);
        }
        ids
    }

    /// The pid of a process.
    pub(super) fn process(&mut self, process: ProcessId, actors: &Actors, out: &mut Vec<u8>) -> u64 {
        let pid = self.process_pid(process, actors);
        self.name_process(process, actors, out);
        pid
    }

    /// The pid of the process for CPUs.
    pub(super) fn machine(&self) -> u64 {
        self.base + 1
    }

    /// Appends the first event: the name of the process for CPUs. All other events begin with a comma.
    pub(super) fn head(&self, out: &mut Vec<u8>) {
        out.put("{\"ph\":\"M\",\"pid\":");
        out.number(self.machine());
        out.put(",\"name\":\"process_name\",\"args\":{\"name\":\"CPUs\"}}");
    }

    fn process_pid(&self, process: ProcessId, actors: &Actors) -> u64 {
        actors[process].pid.map_or(self.base, |pid| u64::from(pid.0))
    }

    fn pid(&self, row: Row, actors: &Actors) -> u64 {
        process_of(row, actors).map_or(self.machine(), |process| self.process_pid(process, actors))
    }

    fn tid(&self, row: Row, actors: &Actors) -> u64 {
        let index = u64::from(kind_and_index(row).1);
        match row {
            Row::Lwp(lwp) => u64::from(actors[lwp].lwp.0),
            Row::Thread(_) => self.base + 2 * index,
            Row::ThreadSpans(_) => self.base + 2 * index + 1,
            Row::LwpCalls(_) => 2 * self.base + 2 * index,
            Row::Mounted(_) => 2 * self.base + 2 * index + 1,
            Row::CpuLwp(_) => 3 * self.base + 3 * index,
            Row::CpuThread(_) => 3 * self.base + 3 * index + 1,
            Row::CpuInterrupts(_) => 3 * self.base + 3 * index + 2,
            Row::Unplaced => 4 * self.base - 1,
        }
    }

    #[cold]
    fn name(&mut self, row: Row, ids: RowIds, actors: &Actors, out: &mut Vec<u8>) {
        let (kind, index) = kind_and_index(row);
        let named = &mut self.named[kind];
        named.resize(named.len().max(index as usize + 1), false);
        named[index as usize] = true;
        if let Some(process) = process_of(row, actors) {
            self.name_process(process, actors, out);
        }
        metadata(out, "thread_name", ids, |out| out.text(&name(row, actors)));
        let order = match row {
            Row::Lwp(_) | Row::LwpCalls(_) | Row::Mounted(_) => 3 * u64::from(index) + kind as u64,
            Row::Thread(_) | Row::ThreadSpans(_) => 3 * self.lwps + 2 * u64::from(index) + kind as u64,
            _ => ids.tid - 3 * self.base,
        };
        metadata(out, "thread_sort_index", ids, |out| out.number(order));
    }

    fn name_process(&mut self, process: ProcessId, actors: &Actors, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.processes[process.index()], true) {
            return;
        }
        let ids = RowIds { pid: self.process_pid(process, actors), tid: 0 };
        let actor = &actors[process];
        let name = actor.name.clone().unwrap_or_else(|| actor.label());
        metadata(out, "process_name", ids, |out| out.text(&name));
        metadata(out, "process_sort_index", ids, |out| out.number(u64::from(process.0) + 1));
    }
}

fn process_of(row: Row, actors: &Actors) -> Option<ProcessId> {
    match row {
        Row::Lwp(lwp) | Row::LwpCalls(lwp) | Row::Mounted(lwp) => Some(actors[lwp].process),
        Row::Thread(thread) | Row::ThreadSpans(thread) => Some(actors[thread].process),
        Row::CpuLwp(_) | Row::CpuThread(_) | Row::CpuInterrupts(_) | Row::Unplaced => None,
    }
}

fn kind_and_index(row: Row) -> (usize, u32) {
    match row {
        Row::Lwp(lwp) => (0, lwp.0),
        Row::LwpCalls(lwp) => (1, lwp.0),
        Row::Mounted(lwp) => (2, lwp.0),
        Row::Thread(thread) => (3, thread.0),
        Row::ThreadSpans(thread) => (4, thread.0),
        Row::CpuLwp(cpu) => (5, cpu.0),
        Row::CpuThread(cpu) => (6, cpu.0),
        Row::CpuInterrupts(cpu) => (7, cpu.0),
        Row::Unplaced => (8, 0),
    }
}

fn name(row: Row, actors: &Actors) -> String {
    match row {
        Row::Lwp(lwp) => actors[lwp].label(),
        Row::LwpCalls(lwp) => format!("{}: calls, events", actors[lwp].label()),
        Row::Mounted(lwp) => format!("{}: user threads", actors[lwp].label()),
        Row::Thread(thread) => actors.thread_label(thread),
        Row::ThreadSpans(thread) => format!("{}: spans, events", actors.thread_label(thread)),
        Row::CpuLwp(cpu) => format!("CPU {}", actors[cpu]),
        Row::CpuThread(cpu) => format!("CPU {}: user threads", actors[cpu]),
        Row::CpuInterrupts(cpu) => format!("CPU {}: interrupts", actors[cpu]),
        Row::Unplaced => "events of unknown origin".into(),
    }
}

fn metadata(out: &mut Vec<u8>, what: &str, ids: RowIds, value: impl FnOnce(&mut Vec<u8>)) {
    let field = if what.ends_with("sort_index") { "sort_index" } else { "name" };
    out.put(",\n{\"ph\":\"M\",\"pid\":");
    out.number(ids.pid);
    out.put(",\"tid\":");
    out.number(ids.tid);
    out.put(",\"name\":\"");
    out.put(what);
    out.put("\",\"args\":{\"");
    out.put(field);
    out.put("\":");
    value(out);
    out.put("}}");
}
