//! Bytes of user traces, packet by packet, with the encoder of the format. All packets are of process 60.

use fut::trace::{Declaration, PacketHead, PacketKind, RecordHead, encode_declarations, file_head};
use sigmund_model::{EventType, Field, FieldType, Level, Lwp, Pid, Thread, Ticks};

/// The CPU that the records of a [`Packet`] contain.
pub(crate) const CPU: u32 = 3;

/// An event to declare: code, name, and fields with their types.
pub(crate) type Declared<'d> = (u32, &'d str, &'d [(&'d str, FieldType)]);

/// An event `received_msg`: tick, CPU, LWP.
pub(crate) type Message = (u64, u32, u32);

/// The code of [`Message`]s.
const MESSAGE: u32 = 7;

/// A packet of events of one LWP. An event is (tick, code, words).
pub(crate) struct Packet<'e> {
    pub(crate) lwp: u32,
    pub(crate) sequence: u64,
    /// Number of the user thread that is mounted at the begin of the packet; 0 for none.
    pub(crate) thread: u64,
    /// Number of records lost so far.
    pub(crate) lost: u64,
    pub(crate) events: &'e [(u64, u32, &'e [u64])],
}

impl Packet<'_> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let records = self.events.iter().flat_map(|(tick, code, words)| record(*tick, CPU, *code, words));
        let tick = |event: Option<&(u64, u32, &[u64])>| Ticks(event.map_or(0, |(tick, ..)| *tick));
        PacketHead {
            sequence: self.sequence,
            first_tick: tick(self.events.first()),
            thread: Thread::from_switch(self.thread),
            lost: self.lost,
            last_tick: tick(self.events.last()),
            ..head(PacketKind::EVENTS, self.lwp)
        }
        .encode(&records.collect::<Vec<u8>>())
    }
}

/// The head of a packet without events, to be completed.
pub(crate) fn head(kind: PacketKind, lwp: u32) -> PacketHead {
    PacketHead { lwp: Lwp(lwp), ..PacketHead::about(kind, Pid(60), Ticks(0)) }
}

/// The bytes of one record.
pub(crate) fn record(tick: u64, cpu: u32, code: u32, words: &[u64]) -> Vec<u8> {
    let head = RecordHead { code, words: words.len() as u8, flags: 0, cpu: cpu as u16 };
    let all = [tick, head.to_word()].into_iter().chain(words.iter().copied());
    all.flat_map(u64::to_le_bytes).collect()
}

/// The packet after the last one of an LWP, with the number of records that the LWP lost.
pub(crate) fn lwp_end(lwp: u32, lost: u64) -> Vec<u8> {
    PacketHead { lost, ..head(PacketKind::LWP_END, lwp) }.encode(&[])
}

/// The contents of a packet of declarations.
pub(crate) fn declared(events: &[Declared<'_>]) -> Vec<u8> {
    let declaration = |(code, name, fields): &Declared<'_>| Declaration {
        event: EventType {
            level: Level::User,
            code: Some(*code),
            name: (*name).into(),
            key: 1,
            fields: fields.iter().map(|(name, ty)| Field { name: (*name).into(), ty: *ty }).collect(),
            format: String::new(),
        },
        file: "drawn.rs".into(),
        line: 1,
    };
    let declarations: Vec<Declaration> = events.iter().map(declaration).collect();
    encode_declarations(declarations.iter())
}

/// A packet that declares events.
pub(crate) fn declarations(events: &[Declared<'_>]) -> Vec<u8> {
    head(PacketKind::DECLARATIONS, 0).encode(&declared(events))
}

/// A user trace with one packet for each LWP. The messages of each LWP are in the order of time.
pub(crate) fn user_trace(messages: &[Message]) -> Vec<u8> {
    let mut trace = file_head().to_vec();
    trace.extend(declarations(&[(MESSAGE, "received_msg", &[("len", FieldType::U64)])]));
    let mut lwps: Vec<u32> = messages.iter().map(|(_, _, lwp)| *lwp).collect();
    lwps.sort_unstable();
    lwps.dedup();
    for lwp in lwps {
        let of_lwp: Vec<&Message> = messages.iter().filter(|message| message.2 == lwp).collect();
        let (first_tick, last_tick) = (Ticks(of_lwp[0].0), Ticks(of_lwp[of_lwp.len() - 1].0));
        let records: Vec<u8> = of_lwp
            .into_iter()
            .flat_map(|(tick, cpu, lwp)| record(*tick, *cpu, MESSAGE, &[u64::from(*lwp)]))
            .collect();
        trace.extend(PacketHead { first_tick, last_tick, ..head(PacketKind::EVENTS, lwp) }.encode(&records));
        trace.extend(lwp_end(lwp, 0));
    }
    trace
}
