//! A user trace for each process, packet by packet, with the format's own encoder.

use fut::trace::{
    CPU_UNKNOWN, Declaration, PacketFlags, PacketHead, PacketKind, RecordHead, encode_declarations, file_head,
};
use sigmund_model::{EventType, Field, FieldType, Level, Lwp, Pid, Thread, Ticks};

use super::world::{Event, What, pid};

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
    /// A bit of it is flipped.
    pub(crate) damaged: bool,
    /// It is the end of this life, and has no records.
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
    /// A packet with these events; `sees_cpu` says of each whether its probe saw its CPU.
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
            let cpu = if sees_cpu(event) { event.cpu as u16 } else { CPU_UNKNOWN };
            let code = 100 + kind(event.what) as u32;
            let head = RecordHead { code, words: words.len() as u8, flags: 0, cpu };
            let all = [event.tick, head.to_word()].into_iter().chain(words);
            payload.extend(all.flat_map(u64::to_le_bytes));
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

    /// What stands behind the last packet of a life.
    pub(super) fn end(&self, lost: u64) -> Packet {
        Packet { lost, payload: Vec::new(), damaged: false, is_end: true, ..self.clone() }
    }

    fn encode(&self) -> Vec<u8> {
        let head = PacketHead {
            kind: if self.is_end { PacketKind::LWP_END } else { PacketKind::EVENTS },
            flags: PacketFlags::default(),
            length: 0,
            pid: Pid(pid(self.process)),
            lwp: Lwp(self.lwp),
            sequence: self.sequence,
            first_tick: Ticks(self.first),
            thread: Thread::from_switch(self.thread),
            lost: self.lost,
            last_tick: Ticks(self.last),
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
    let field = |name: &str, ty| Field { name: name.into(), ty };
    let declared = |(index, name): (usize, &&str)| {
        let fields = match index {
            0 => vec![
                field("next", FieldType::Thread),
                field("reason", FieldType::U8),
                field("on", FieldType::Pointer),
                field("blocked_for", FieldType::U8),
            ],
            1 | 2 => vec![field("thread", FieldType::Thread)],
            5 => vec![field("len", FieldType::U64)],
            6 | 7 => vec![field("code", FieldType::Pointer)],
            8 | 9 => vec![field("lock", FieldType::Pointer), field("kind", FieldType::U8)],
            _ => vec![],
        };
        let event = EventType {
            level: Level::User,
            code: Some(100 + index as u32),
            name: (*name).into(),
            key: 1,
            fields,
            format: String::new(),
        };
        Declaration { event, file: String::new(), line: 0 }
    };
    let all: Vec<Declaration> = NAMES.iter().enumerate().map(declared).collect();
    encode_declarations(all.iter())
}

/// The file of one process.
pub(super) fn write(process: usize, packets: &[Packet]) -> Vec<u8> {
    let head = PacketHead::about(PacketKind::DECLARATIONS, Pid(pid(process)), Ticks(0));
    let mut file = [&file_head()[..], &head.encode(&declarations())].concat();
    packets.iter().filter(|packet| packet.process == process).for_each(|packet| file.extend(packet.encode()));
    file
}
