//! The kernel's scheduling events, one bundle per CPU and batch (`FtraceEventBundle`).
//!
//! Switches and most wakings are written as columns (`CompactSched`). These contain neither the previous LWP of a
//! switch nor the waker of a waking; the reader takes both from the previous switch. So every CPU begins with a
//! complete event, from the idle task to the idle task, and a waking by an LWP that is not on a CPU is also a complete
//! event.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{
    batch::Batch,
    schema::{bundle, ftrace, packet},
    wire::Wire,
};
use crate::timeline::{Actors, CpuId, LwpId};

/// Bundles use a separate sequence: their packets are not sorted by time, and have no interned strings.
pub(super) const SEQUENCE: u64 = 2;

/// The reader rejects a trace with a CPU of this number or above (`kMaxCpuCount`, ftrace_tokenizer.cc).
const CPUS: u32 = 1024;

/// Nice 0. The timeline has no priorities, and the reader requires one.
pub(super) const PRIORITY: i64 = 120;

/// The idle task's name.
const IDLE: &str = "swapper";

/// Events that are not yet written.
pub(super) struct Bundles {
    cpus: Vec<Bundle>,
    bytes: usize,
}

#[derive(Default)]
struct Bundle {
    switches: Switches,
    wakings: Wakings,
    comms: Comms,
    /// Complete events, as fields of the bundle.
    events: Vec<u8>,
}

/// A column of time stamps: each is the difference to the previous one in the same bundle.
#[derive(Default)]
struct Times {
    bytes: Vec<u8>,
    /// The previous one in this bundle, or 0.
    base: u64,
    newest: u64,
}

#[derive(Default)]
struct Switches {
    times: Times,
    prev_state: Vec<u8>,
    next_pid: Vec<u8>,
    next_prio: Vec<u8>,
    next_comm: Vec<u8>,
}

#[derive(Default)]
struct Wakings {
    times: Times,
    pid: Vec<u8>,
    target_cpu: Vec<u8>,
    prio: Vec<u8>,
    comm: Vec<u8>,
    flags: Vec<u8>,
}

/// Names of LWPs, each once per bundle.
#[derive(Default)]
struct Comms {
    indexes: HashMap<Option<LwpId>, u64, RandomState>,
    table: Vec<u8>,
}

/// One switch.
pub(super) struct Switch {
    pub(super) at: u64,
    pub(super) prev_state: i64,
    pub(super) next: Option<LwpId>,
}

/// The common fields of ftrace's events: time, LWP and flags.
#[derive(Default)]
struct EventHeader {
    at: u64,
    pid: u64,
    flags: u64,
}

/// An LWP becomes runnable.
pub(super) struct Waking {
    pub(super) at: u64,
    pub(super) of: LwpId,
    pub(super) target_cpu: CpuId,
    /// `common_flags`: 0x08 in an interrupt.
    pub(super) flags: u64,
}

impl Bundles {
    pub(super) fn new(actors: &Actors) -> Bundles {
        Bundles { cpus: actors.cpus.iter().map(|_| Bundle::default()).collect(), bytes: 0 }
    }

    /// Writes the first bundle of every CPU: the idle task, from the beginning.
    pub(super) fn begin(&mut self, actors: &Actors, batch: &mut Batch) {
        for cpu in actors.cpu_ids() {
            self.event(actors, cpu, EventHeader::default(), ftrace::SCHED_SWITCH, |out| {
                out.text(ftrace::SWITCH_PREV_COMM, IDLE);
                out.number(ftrace::SWITCH_PREV_PID, 0);
                out.signed(ftrace::SWITCH_PREV_PRIO, PRIORITY);
                out.signed(ftrace::SWITCH_PREV_STATE, 0);
                out.text(ftrace::SWITCH_NEXT_COMM, IDLE);
                out.number(ftrace::SWITCH_NEXT_PID, 0);
                out.signed(ftrace::SWITCH_NEXT_PRIO, PRIORITY);
            });
        }
        self.send(actors, batch);
    }

    /// Approximate size, in bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    pub(super) fn switch(&mut self, actors: &Actors, cpu: CpuId, switch: &Switch) {
        self.on(actors, cpu, |bundle| {
            let comm = bundle.comms.index(actors, switch.next);
            bundle.switches.push(actors, switch, comm);
        });
    }

    /// Adds a waking by the LWP on this CPU.
    pub(super) fn waking(&mut self, actors: &Actors, cpu: CpuId, waking: &Waking) {
        self.on(actors, cpu, |bundle| {
            let comm = bundle.comms.index(actors, Some(waking.of));
            bundle.wakings.push(actors, waking, comm);
        });
    }

    /// Adds a waking by this LWP, which is not on a CPU.
    pub(super) fn waking_by(&mut self, actors: &Actors, cpu: CpuId, by: LwpId, waking: &Waking) {
        let head = EventHeader { at: waking.at, pid: tid(actors, Some(by)), flags: waking.flags };
        self.event(actors, cpu, head, ftrace::SCHED_WAKING, |out| {
            task(out, actors, waking.of);
            out.number(ftrace::WAKING_TARGET_CPU, u64::from(actors[waking.target_cpu].0));
        });
    }

    /// Adds the migration of an LWP to the run queue of another CPU.
    pub(super) fn migration(&mut self, actors: &Actors, at: u64, of: LwpId, from: CpuId, to: CpuId) {
        self.event(
            actors,
            to,
            EventHeader { at, ..EventHeader::default() },
            ftrace::SCHED_MIGRATE_TASK,
            |out| {
                task(out, actors, of);
                out.number(ftrace::MIGRATE_ORIG_CPU, u64::from(actors[from].0));
                out.number(ftrace::MIGRATE_DEST_CPU, u64::from(actors[to].0));
            },
        );
    }

    /// Adds the end of an LWP, after which its tid may be reused.
    pub(super) fn free(&mut self, actors: &Actors, cpu: CpuId, at: u64, of: LwpId) {
        let head = EventHeader { at, ..EventHeader::default() };
        self.event(actors, cpu, head, ftrace::SCHED_PROCESS_FREE, |out| task(out, actors, of));
    }

    /// Writes the events as bundles.
    pub(super) fn send(&mut self, actors: &Actors, batch: &mut Batch) {
        if std::mem::take(&mut self.bytes) == 0 {
            return;
        }
        for (bundle, cpu) in self.cpus.iter_mut().zip(&actors.cpus) {
            bundle.send(u64::from(cpu.0), batch);
        }
    }

    fn event(
        &mut self,
        actors: &Actors,
        cpu: CpuId,
        head: EventHeader,
        kind: u32,
        fill: impl FnOnce(&mut Vec<u8>),
    ) {
        self.on(actors, cpu, |bundle| bundle.event(head, kind, fill));
    }

    fn on(&mut self, actors: &Actors, cpu: CpuId, change: impl FnOnce(&mut Bundle)) {
        if actors[cpu].0 >= CPUS {
            return;
        }
        let bundle = &mut self.cpus[cpu.index()];
        let before = bundle.len();
        change(bundle);
        self.bytes += bundle.len() - before;
    }
}

impl Bundle {
    /// Approximate size, in bytes: columns other than time stamps are estimated.
    fn len(&self) -> usize {
        let columns = self.switches.times.bytes.len() + self.wakings.times.bytes.len();
        self.events.len() + self.comms.table.len() + 4 * columns
    }

    fn event(&mut self, head: EventHeader, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        self.events.message(bundle::EVENT, |out| {
            out.number(ftrace::TIMESTAMP, head.at);
            out.number(ftrace::PID, head.pid);
            out.message(kind, fill);
            out.number(ftrace::COMMON_FLAGS, head.flags);
        });
    }

    fn send(&mut self, cpu: u64, batch: &mut Batch) {
        if self.events.is_empty() && self.comms.table.is_empty() {
            return;
        }
        batch.packet(|out| {
            out.number(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            out.message(packet::FTRACE_EVENTS, |out| {
                out.number(bundle::CPU, cpu);
                out.extend_from_slice(&self.events);
                out.message(bundle::COMPACT_SCHED, |out| {
                    out.extend_from_slice(&self.comms.table);
                    self.switches.send(out);
                    self.wakings.send(out);
                });
            });
        });
        self.events.clear();
        self.comms.indexes.clear();
        self.comms.table.clear();
    }
}

impl Times {
    fn push(&mut self, at: u64) {
        let at = at.max(self.newest);
        self.bytes.raw_varint(at - self.base);
        (self.base, self.newest) = (at, at);
    }
}

impl Switches {
    fn push(&mut self, actors: &Actors, switch: &Switch, comm: u64) {
        self.times.push(switch.at);
        self.prev_state.raw_varint(switch.prev_state as u64);
        self.next_pid.raw_varint(tid(actors, switch.next));
        self.next_prio.raw_varint(PRIORITY as u64);
        self.next_comm.raw_varint(comm);
    }

    fn send(&mut self, out: &mut Vec<u8>) {
        column(out, bundle::SWITCH_TIMESTAMP, &mut self.times.bytes);
        column(out, bundle::SWITCH_PREV_STATE, &mut self.prev_state);
        column(out, bundle::SWITCH_NEXT_PID, &mut self.next_pid);
        column(out, bundle::SWITCH_NEXT_PRIO, &mut self.next_prio);
        column(out, bundle::SWITCH_NEXT_COMM_INDEX, &mut self.next_comm);
        self.times.base = 0;
    }
}

impl Wakings {
    fn push(&mut self, actors: &Actors, waking: &Waking, comm: u64) {
        self.times.push(waking.at);
        self.pid.raw_varint(tid(actors, Some(waking.of)));
        self.target_cpu.raw_varint(u64::from(actors[waking.target_cpu].0));
        self.prio.raw_varint(PRIORITY as u64);
        self.comm.raw_varint(comm);
        self.flags.raw_varint(waking.flags);
    }

    fn send(&mut self, out: &mut Vec<u8>) {
        column(out, bundle::WAKING_TIMESTAMP, &mut self.times.bytes);
        column(out, bundle::WAKING_PID, &mut self.pid);
        column(out, bundle::WAKING_TARGET_CPU, &mut self.target_cpu);
        column(out, bundle::WAKING_PRIO, &mut self.prio);
        column(out, bundle::WAKING_COMM_INDEX, &mut self.comm);
        column(out, bundle::WAKING_COMMON_FLAGS, &mut self.flags);
        self.times.base = 0;
    }
}

impl Comms {
    fn index(&mut self, actors: &Actors, lwp: Option<LwpId>) -> u64 {
        let next = self.indexes.len() as u64;
        *self.indexes.entry(lwp).or_insert_with(|| {
            self.table.text(bundle::INTERN_TABLE, comm(actors, lwp));
            next
        })
    }
}

/// Packed numbers.
fn column(out: &mut Vec<u8>, field: u32, numbers: &mut Vec<u8>) {
    if !numbers.is_empty() {
        out.counted(field, numbers);
        numbers.clear();
    }
}

fn task(out: &mut Vec<u8>, actors: &Actors, lwp: LwpId) {
    out.text(ftrace::TASK_COMM, comm(actors, Some(lwp)));
    out.number(ftrace::TASK_PID, tid(actors, Some(lwp)));
    out.signed(ftrace::TASK_PRIO, PRIORITY);
}

pub(super) fn tid(actors: &Actors, lwp: Option<LwpId>) -> u64 {
    lwp.map_or(0, |lwp| u64::from(actors[lwp].lwp.0))
}

pub(super) fn comm(actors: &Actors, lwp: Option<LwpId>) -> &str {
    lwp.map_or(IDLE, |lwp| actors[lwp].name.as_deref().unwrap_or(""))
}
