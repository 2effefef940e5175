//! A user trace for each process, packet by packet, with the format's own encoder.

use fut::trace::{CPU_UNKNOWN, PacketHead, PacketKind, file_head};
use sigmund_model::{FieldType, Lwp, Pid, Thread, Ticks};

use super::world::{Event, What, pid};
use crate::supertrace::user_file::{Declared, declared, record};

/// Records of one life of an LWP.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) process: usize,
    pub(crate) lwp: u32,
    pub(crate) life: usize,
    pub(crate) sequence: u64,
    pub(crate) thread: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Records lost before it.
    pub(crate) lost: u64,
    payload: Vec<u8>,
    /// Whether one of its bits is flipped.
    pub(crate) damaged: bool,
    /// Whether it is the end of this life; it then has no records.
    pub(crate) is_end: bool,
}

const NAMES: [&str; 10] = [
    "USER_CONTEXT_SWITCH",
    "USER_THREAD_NEW",
    "USER_THREAD_READY",
    "LWP_ATTACH",
    "LWP_DETACH",
    "received_msg",
    "SPAN_BEGIN",
    "SPAN_END",
    "LOCK_ACQUIRE",
    "LOCK_RELEASE",
];

/// The name of a user event.
pub(super) fn name(what: What) -> &'static str {
    NAMES[kind(what)]
}

fn kind(what: What) -> usize {
    match what {
        What::UserSwitch { .. } => 0,
        What::ThreadNew(_) => 1,
        What::ThreadReady(_) => 2,
        What::Attach => 3,
        What::Detach => 4,
        What::SpanBegin(_) => 6,
        What::SpanEnd(_) => 7,
        What::LockAcquire(_) => 8,
        What::LockRelease(_) => 9,
        _ => 5,
    }
}

impl Packet {
    /// A packet with these events; `sees_cpu`: whether the probe of an event read its CPU.
    pub(super) fn of(events: &[&Event], sequence: u64, mut sees_cpu: impl FnMut(&Event) -> bool) -> Packet {
        let mut payload = Vec::new();
        for event in events {
            let words = match event.what {
                What::UserSwitch { next, reason, waits } => vec![next, reason, waits.on, waits.kind],
                What::ThreadNew(thread) | What::ThreadReady(thread) => vec![thread],
                What::SpanBegin(code) | What::SpanEnd(code) => vec![code],
                What::LockAcquire(lock) | What::LockRelease(lock) => vec![lock.on, lock.kind],
                What::Message => vec![8],
                _ => vec![],
            };
            let cpu = if sees_cpu(event) { event.cpu } else { CPU_UNKNOWN.into() };
            payload.extend(record(event.tick, cpu, 100 + kind(event.what) as u32, &words));
        }
        let (first, last) = (events[0], events[events.len() - 1]);
        Packet {
            process: first.process.expect("a user event has a process"),
            lwp: first.lwp,
            life: first.life,
            sequence,
            thread: first.thread.map_or(0, |(_, thread)| thread),
            first: first.tick,
            last: last.tick,
            lost: 0,
            payload,
            damaged: false,
            is_end: false,
        }
    }

    /// The packet after the last one of this life.
    pub(super) fn end(&self, lost: u64) -> Packet {
        Packet { lost, payload: Vec::new(), damaged: false, is_end: true, ..self.clone() }
    }

    fn encode(&self) -> Vec<u8> {
        let head = PacketHead {
            kind: if self.is_end { PacketKind::LWP_END } else { PacketKind::EVENTS },
            lwp: Lwp(self.lwp),
            sequence: self.sequence,
            first_tick: Ticks(self.first),
            thread: Thread::from_switch(self.thread),
            lost: self.lost,
            last_tick: Ticks(self.last),
            ..PacketHead::about(PacketKind::EVENTS, Pid(pid(self.process)), Ticks(0))
        };
        let mut bytes = head.encode(&self.payload);
        if self.damaged {
            let middle = bytes.len() - self.payload.len() / 2 - 1;
            bytes[middle] ^= 4;
        }
        bytes
    }
}

fn declarations() -> Vec<u8> {
    let fields: [&[(&str, FieldType)]; NAMES.len()] = [
        &[
            ("next", FieldType::Thread),
            ("reason", FieldType::U8),
            ("on", FieldType::Pointer),
            ("blocked_for", FieldType::U8),
        ],
        &[("thread", FieldType::Thread)],
        &[("thread", FieldType::Thread)],
        &[],
        &[],
        &[("len", FieldType::U64)],
        &[("code", FieldType::Pointer)],
        &[("code", FieldType::Pointer)],
        &[("lock", FieldType::Pointer), ("kind", FieldType::U8)],
        &[("lock", FieldType::Pointer), ("kind", FieldType::U8)],
    ];
    let events: Vec<Declared<'_>> =
        (100..).zip(NAMES).zip(fields).map(|((code, name), fields)| (code, name, fields)).collect();
    declared(&events)
}

/// The file of one process.
pub(super) fn write(process: usize, packets: &[Packet]) -> Vec<u8> {
    let head = PacketHead::about(PacketKind::DECLARATIONS, Pid(pid(process)), Ticks(0));
    let mut file = [&file_head()[..], &head.encode(&declarations())].concat();
    packets.iter().filter(|packet| packet.process == process).for_each(|packet| file.extend(packet.encode()));
    file
}
