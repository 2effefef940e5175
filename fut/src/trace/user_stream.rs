//! The packets of one LWP as a stream of events, in the order of their ticks.
//!
//! Records are in the order in which they were reserved. A signal handler may interrupt a probe between reading the
//! clock and reserving; then the probe's record comes after those of the handler. So a packet is held back until the
//! next one has been read.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io,
    sync::Arc,
};

use sigmund_model::{
    Context, Effect, Event, EventStream, EventType, Field, FieldType, LeaveReason, Level, Loss, LossKind,
    Pid, Reported, Severity, Thread, Ticks, Wait, WaitKind, names,
};

use super::{
    code::{DECLARED_BIT, shown_code, split_code},
    declaration::Declaration,
    packet::PacketHead,
    reader::{LwpPackets, Packet, UserTrace},
    record::{RECORD_HEAD_LEN, Record, Records},
};

/// The meaning of an event for the merge, which follows from its declared name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventMeaning {
    Plain,
    UserSwitch,
    ThreadNew,
    ThreadReady,
    LwpAttach,
    LwpDetach,
    Lock,
}

impl EventMeaning {
    pub(super) fn of(name: &str) -> EventMeaning {
        match name {
            names::USER_CONTEXT_SWITCH => EventMeaning::UserSwitch,
            "USER_THREAD_NEW" => EventMeaning::ThreadNew,
            "USER_THREAD_READY" => EventMeaning::ThreadReady,
            "LWP_ATTACH" => EventMeaning::LwpAttach,
            "LWP_DETACH" => EventMeaning::LwpDetach,
            names::LOCK_ACQUIRE | names::LOCK_RELEASE => EventMeaning::Lock,
            _ => EventMeaning::Plain,
        }
    }

    pub(super) fn effect(self, pid: Pid, record: &Record<'_>) -> Effect {
        let word = |index| record.word(index);
        let thread = word(0).and_then(Thread::from_switch);
        match self {
            EventMeaning::UserSwitch => Effect::UserSwitch {
                next: thread,
                reason: LeaveReason::from_number(word(1).unwrap_or(0)),
                wait: Wait {
                    // Older traces have no fourth parameter.
                    kind: word(3).and_then(WaitKind::from_number),
                    on: word(2).filter(|on| *on != 0),
                },
            },
            EventMeaning::ThreadNew => thread.map_or(Effect::None, Effect::ThreadNew),
            EventMeaning::ThreadReady => thread.map_or(Effect::None, Effect::ThreadReady),
            EventMeaning::LwpAttach => Effect::LwpAttach { pid, cpu_time_ns: word(0) },
            EventMeaning::LwpDetach => Effect::LwpDetach { cpu_time_ns: word(0) },
            EventMeaning::Plain | EventMeaning::Lock => Effect::None,
        }
    }
}

/// The declared events. All streams share them, because there may be many events and many streams.
#[derive(Debug)]
struct DeclaredEvents {
    declared: Vec<(EventMeaning, EventType)>,
    of_code: HashMap<u32, u32>,
}

impl DeclaredEvents {
    fn of(declarations: &[Declaration]) -> DeclaredEvents {
        let kind = |d: &Declaration| (EventMeaning::of(&d.event.name), d.event.clone());
        let codes = declarations.iter().zip(0..).filter_map(|(d, index)| Some((d.event.code?, index)));
        DeclaredEvents { declared: declarations.iter().map(kind).collect(), of_code: codes.collect() }
    }
}

/// The events of one LWP.
#[derive(Debug)]
pub struct UserStream {
    packets: LwpPackets,
    kinds: Arc<DeclaredEvents>,
    next_packet: usize,
    /// Packets to which `queue` refers, each with the number of its entries in the queue. The first packet has the
    /// number `first_loaded`.
    loaded: VecDeque<(Packet, usize)>,
    first_loaded: u32,
    queue: VecDeque<QueuedRecord>,
    /// Number of entries of the newest packet. They are held back until the next packet has been read.
    newest: usize,
    /// The tick of the last event, and the number of events whose tick is before that of their predecessor.
    reached: Ticks,
    straightened: u64,
    /// Events of C programs that do not fit their declaration, by their place among the declared events: their number,
    /// and what the first of them has.
    misfits: BTreeMap<u32, (u64, String)>,
    losses: Vec<Loss>,
    last: Option<PacketHead>,
    /// Whether the losses after the last packet have been reported.
    is_over: bool,
}

/// The largest tick that the tables of a super-trace can hold; a TSC reaches it after a century.
const LAST_TICK: Ticks = Ticks(i64::MAX as u64);

/// The count of lost records has both causes.
const OR_TOO_LONG: &str = "or events of more than 255 words, that is, with long texts";
/// What helps against both.
const MORE_ROOM: &str = "record with a larger --user-buffer, or shorter texts";

/// Records of a packet with a larger tick than that: their number, and the offset and tick of the first one.
#[derive(Clone, Copy, Debug, Default)]
struct FarRecords {
    count: u64,
    first: Option<(u32, Ticks)>,
}

/// An event of a C program that does not fit its declaration.
#[derive(Clone, Copy, Debug)]
struct Misfit {
    /// Its place among the declared events.
    kind: u32,
    /// Number of numbers before its text, if it has one.
    text_after: Option<u32>,
}

/// A record in the queue.
#[derive(Clone, Copy, Debug)]
struct QueuedRecord {
    tick: Ticks,
    packet: u32,
    offset: u32,
}

impl UserTrace {
    /// The event types of the streams: the declared ones in their order, and one more for undeclared codes. The first
    /// parameter of the latter is the code.
    pub fn event_types(&self) -> Vec<EventType> {
        let unknown = EventType {
            level: Level::User,
            code: None,
            name: "undeclared".into(),
            key: 0,
            fields: vec![Field { name: "code".into(), ty: FieldType::U32 }],
            format: String::new(),
        };
        let shown = |d: &Declaration| EventType { code: d.event.code.map(shown_code), ..d.event.clone() };
        self.declarations().iter().map(shown).chain([unknown]).collect()
    }

    /// A stream for each LWP.
    pub fn streams(&self) -> Vec<UserStream> {
        let kinds = Arc::new(DeclaredEvents::of(self.declarations()));
        self.lwps().iter().map(|lwp| UserStream::new(lwp.clone(), Arc::clone(&kinds))).collect()
    }
}

impl UserStream {
    fn new(packets: LwpPackets, kinds: Arc<DeclaredEvents>) -> UserStream {
        UserStream {
            packets,
            kinds,
            next_packet: 0,
            loaded: VecDeque::new(),
            first_loaded: 0,
            queue: VecDeque::new(),
            newest: 0,
            reached: Ticks(0),
            straightened: 0,
            misfits: BTreeMap::new(),
            losses: Vec::new(),
            last: None,
            is_over: false,
        }
    }

    /// The LWP.
    pub fn lwp(&self) -> sigmund_model::Lwp {
        self.packets.lwp
    }

    /// Reads the next packet into the queue; `false` if there is none.
    fn load(&mut self) -> io::Result<bool> {
        let Some(packet) = self.packets.packet(self.next_packet) else {
            self.newest = 0;
            return Ok(false);
        };
        self.next_packet += 1;
        let packet = match packet? {
            Ok(packet) => packet,
            Err(loss) => {
                self.losses.push(loss);
                return Ok(true);
            }
        };
        self.note_losses(&packet.head);
        let number = self.first_loaded + self.loaded.len() as u32;
        let mut records = packet.records();
        let (mut offset, before) = (0, self.queue.len());
        let mut sorted = true;
        let mut far = FarRecords::default();
        for record in records.by_ref() {
            let length = (RECORD_HEAD_LEN + 8 * usize::from(record.head.words)) as u32;
            if record.tick > LAST_TICK {
                far.count += 1;
                far.first.get_or_insert((offset, record.tick));
                offset += length;
                continue;
            }
            sorted &= self.queue.back().is_none_or(|last| last.tick <= record.tick);
            self.queue.push_back(QueuedRecord { tick: record.tick, packet: number, offset });
            offset += length;
        }
        if let Some((at, tick)) = far.first {
            let loss = self.far_records(&packet.head, far.count, at, tick);
            self.losses.push(loss);
        }
        if records.left() > 0 {
            let detail = format!(
                "{}: packet {} of LWP {}: expected whole records, found {} bytes after the last",
                self.packets.path().display(),
                packet.head.sequence,
                packet.head.lwp,
                records.left()
            );
            self.losses.push(self.loss(LossKind::Damaged, &packet.head, None, detail, ""));
        }
        if !sorted {
            self.queue.make_contiguous().sort_by_key(|entry| entry.tick);
        }
        self.newest = self.queue.len() - before;
        self.loaded.push_back((packet, self.newest));
        Ok(true)
    }

    fn note_losses(&mut self, head: &PacketHead) {
        let path = self.packets.path().display().to_string();
        if self.last.is_none() {
            self.note_missing_start(head, &path);
        }
        if self.last.is_none() && head.sequence > 0 && self.packets.overwritten_packets > 0 {
            let detail = format!(
                "{path}: LWP {}: {} packets with {} bytes of records before packet {}",
                head.lwp, self.packets.overwritten_packets, self.packets.overwritten_bytes, head.sequence
            );
            let advice = "a larger --user-buffer keeps more";
            let loss = self.loss(LossKind::Overwritten, head, None, detail, advice);
            self.losses.push(Loss { severity: Severity::Note, ..loss });
        }
        if let Some(last) = self.last {
            // The count starts again with each LWP of that number.
            let continues = head.flags.contains(super::PacketFlags::CONTINUED);
            let begins = head.sequence == 0 && !continues;
            let lost_before = if begins { 0 } else { last.lost };
            if head.lost > lost_before {
                let count = head.lost - lost_before;
                self.losses.push(self.dropped_before(head, count, &path));
            }
            let expected = if continues { last.sequence } else { last.sequence.wrapping_add(1) };
            if head.sequence != expected && !begins {
                let detail =
                    format!("{path}: LWP {}: expected packet {expected}, found {}", head.lwp, head.sequence);
                self.losses.push(self.loss(LossKind::Damaged, head, None, detail, ""));
            }
        }
        if head.flags.contains(super::PacketFlags::UNFINISHED) {
            let detail = format!("{path}: LWP {}: packet {} was never finished", head.lwp, head.sequence);
            let loss = self.loss(LossKind::Unfinished, head, None, detail, "");
            self.losses.push(Loss { severity: Severity::Note, ..loss });
        }
        self.last = Some(*head);
    }

    /// Reports packets that are missing before the first one.
    fn note_missing_start(&mut self, head: &PacketHead, path: &str) {
        if head.sequence > 0 && self.packets.may_begin_later {
            return;
        }
        if head.lost > 0 {
            self.losses.push(self.dropped_before(head, head.lost, path));
        }
        if head.sequence == 0 || self.packets.overwritten_packets > 0 {
            return;
        }
        let detail = format!("{path}: LWP {}: expected packet 0, found {}", head.lwp, head.sequence);
        // If the end of the LWP is missing, too, it is unknown whether a flight recorder has overwritten these packets.
        let (kind, severity) = match self.packets.ended {
            true => (LossKind::Damaged, Severity::Gap),
            false => (LossKind::Overwritten, Severity::Note),
        };
        self.losses.push(Loss { severity, ..self.loss(kind, head, None, detail, "") });
    }

    fn dropped_before(&self, head: &PacketHead, count: u64, path: &str) -> Loss {
        let PacketHead { lwp, sequence, .. } = head;
        let detail = format!("{path}: LWP {lwp}: no free packet before packet {sequence}, {OR_TOO_LONG}");
        self.loss(LossKind::Dropped, head, Some(count), detail, MORE_ROOM)
    }

    fn loss(
        &self,
        kind: LossKind,
        head: &PacketHead,
        count: Option<u64>,
        detail: String,
        advice: &'static str,
    ) -> Loss {
        let from = self.last.map(|last| last.last_tick);
        let gap = Loss::new(kind, Level::User, detail);
        let mut gap = Loss { lwp: Some(head.lwp), from, count, advice, ..gap };
        gap.end_at(Some(head.first_tick));
        gap
    }

    /// Reports records lost after the last packet. Only the final count includes them.
    fn note_final_losses(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let last = self.last.take();
        let lost_before = last.map_or(0, |last| last.lost);
        if self.packets.lost <= lost_before {
            return;
        }
        let what = match last {
            Some(_) => "no free packet at its end",
            None if self.packets.is_empty() => "no free packet from its start to its end",
            None => "no free packet, and none of those that it had can be read",
        };
        let (path, lwp) = (self.packets.path().display(), self.packets.lwp);
        let loss =
            Loss::new(LossKind::Dropped, Level::User, format!("{path}: LWP {lwp}: {what}, {OR_TOO_LONG}"));
        // The packets of the LWP may be in a part that was removed.
        let is_before = self.packets.is_empty() && self.packets.may_begin_later;
        let severity = if is_before { Severity::Note } else { loss.severity };
        self.losses.push(Loss {
            severity,
            lwp: Some(lwp),
            from: last.map(|last| last.last_tick),
            count: Some(self.packets.lost - lost_before),
            advice: MORE_ROOM,
            ..loss
        });
    }

    /// The loss of records with damaged ticks. Their time is known only from their packet.
    fn far_records(&self, head: &PacketHead, count: u64, at: u32, tick: Ticks) -> Loss {
        let detail = format!(
            "{}: packet {} of LWP {}: byte {at} of its records: expected a tick of at most {}, found {}",
            self.packets.path().display(),
            head.sequence,
            head.lwp,
            LAST_TICK.0,
            tick.0
        );
        let loss = Loss::new(LossKind::Damaged, Level::User, detail);
        let first = self.queue.back().map(|entry| entry.tick);
        Loss { lwp: Some(head.lwp), from: first, to: first, count: Some(count), ..loss }
    }

    /// Reports events whose ticks were corrected. No writer makes a packet that contains ticks before those of the
    /// packet before the previous one.
    fn note_straightened(&mut self) {
        let count = std::mem::take(&mut self.straightened);
        if count > 0 {
            let (path, lwp) = (self.packets.path().display(), self.packets.lwp);
            let detail =
                format!("{path}: LWP {lwp}: {count} events earlier than the one before; they got its tick");
            let loss = Loss::new(LossKind::Contradiction, Level::User, detail);
            self.losses.push(Loss { severity: Severity::Note, lwp: Some(lwp), count: Some(count), ..loss });
        }
    }

    /// Reports events of C programs whose parameters do not fit their declarations.
    fn note_misfits(&mut self) {
        for (kind, (count, found)) in std::mem::take(&mut self.misfits) {
            let (path, lwp) = (self.packets.path().display(), self.packets.lwp);
            let EventType { name, fields, .. } = &self.kinds.declared[kind as usize].1;
            let fields: Vec<_> = fields.iter().map(|f| format!("{}: {}", f.name, f.ty.name())).collect();
            let detail = format!("{path}: LWP {lwp}: expected {name}({}), found {found}", fields.join(", "));
            let advice = "the parameters of the probe must be those of fut_declare";
            let loss = Loss::new(LossKind::Contradiction, Level::User, detail);
            let count = Some(count);
            self.losses.push(Loss { severity: Severity::Note, lwp: Some(lwp), count, advice, ..loss });
        }
    }

    fn note_misfit(&mut self, misfit: Misfit) {
        let found = || match misfit.text_after {
            None => "numbers and no text".into(),
            Some(1) => "1 number and a text".into(),
            Some(numbers) => format!("{numbers} numbers and a text"),
        };
        self.misfits.entry(misfit.kind).or_insert_with(|| (0, found())).0 += 1;
    }

    /// Returns the difference if the parameters of a C program's event do not fit its declaration.
    fn fill(&self, event: &mut Event, entry: QueuedRecord) -> Option<Misfit> {
        let (packet, _) = &self.loaded[(entry.packet - self.first_loaded) as usize];
        let record = Records::of(packet.payload_from(entry.offset as usize)).next()?;
        let mut misfit = None;
        event.tick = entry.tick;
        event.cpu = record.cpu();
        event.lwp = Some(packet.head.lwp);
        event.context = Context::Task;
        event.thread = match packet.head.thread {
            _ if entry.offset != 0 => Reported::Nothing,
            Some(thread) => Reported::Some(thread),
            None => Reported::None,
        };
        event.params.clear();
        let (code, text_after) = split_code(record.head.code);
        event.kind = self.kinds.of_code.get(&code).copied().unwrap_or(self.kinds.declared.len() as u32);
        event.effect = Effect::None;
        match self.kinds.declared.get(event.kind as usize) {
            Some((role, event_type)) => {
                event.effect = role.effect(packet.head.pid, &record);
                let fields = event_type.fields.iter().map(|f| f.ty);
                let declared = || event_type.fields.iter().position(|f| f.ty == FieldType::Text);
                if code & DECLARED_BIT != 0 || declared() == text_after.map(|numbers| numbers as usize) {
                    record.params(fields, &mut event.params);
                } else {
                    record.params_by_code(fields, text_after, &mut event.params);
                    misfit = Some(Misfit { kind: event.kind, text_after });
                }
                if let (EventMeaning::Lock, Some(kind)) =
                    (role, record.word(1).and_then(WaitKind::from_number))
                {
                    event.params.name(1, kind.name());
                }
            }
            None => {
                event.params.push_number(i64::from(code));
                let numbers = text_after.map_or(0, |numbers| numbers as usize);
                let fields = std::iter::repeat_n(FieldType::U64, numbers);
                record.params(fields.chain(text_after.map(|_| FieldType::Text)), &mut event.params);
            }
        }
        if let Effect::UserSwitch { reason, wait, .. } = event.effect {
            event.params.name(1, reason.name());
            if let Some(kind) = wait.kind {
                event.params.name(3, kind.name());
            }
        }
        misfit
    }
}

impl EventStream for UserStream {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        while self.queue.len() <= self.newest {
            if !self.load()? {
                break;
            }
        }
        let Some(entry) = self.queue.pop_front() else {
            self.note_final_losses();
            self.note_straightened();
            self.note_misfits();
            return Ok(false);
        };
        if let Some(misfit) = self.fill(event, entry) {
            self.note_misfit(misfit);
        }
        self.straightened += u64::from(event.tick < self.reached);
        self.reached = self.reached.max(event.tick);
        event.tick = self.reached;
        self.loaded[(entry.packet - self.first_loaded) as usize].1 -= 1;
        while matches!(self.loaded.front(), Some((_, 0))) {
            self.loaded.pop_front();
            self.first_loaded += 1;
        }
        Ok(true)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }
}
