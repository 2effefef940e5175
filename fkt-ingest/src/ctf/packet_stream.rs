//! The events of one stream, packet after packet, in time order.
//!
//! Damage becomes a loss and does not end the stream:
//!
//! * events that the tracer discarded: packets count them since the stream began, so the difference between two packets
//!   was lost between the end of the first and the end of the second;
//! * missing packets: they are numbered;
//! * a packet with an inconsistent header is skipped, up to the next magic number. A packet whose time is before the
//!   previous packet is skipped as well, unless the next one confirms it;
//! * at an event that is not declared, or does not fit, the rest of its packet is skipped, because the start of the
//!   next event is unknown;
//! * the same at an event later than its packet's end by more than [`JITTER`]: a flipped bit would otherwise hide all
//!   later events. LTTng before 2.11 wrote ends that were slightly too early.
//!
//! An event earlier than the previous one gets that one's tick, and is noted.
//!
//! Cost, one thread of an AMD EPYC at 2.6 GHz that other programs keep busy, CPU time of the process, file in the page
//! cache, parameters filled (`cargo run --release -p fkt-ingest --example read_speed FOLDER`; LTTng-UST, large
//! headers): 3 M events with two numbers and the context vtid, 46 M events/s; 2 M with a number and a text of 11
//! characters, 33 M events/s. `babeltrace2 -o dummy` of the same traces: 4.1 and 4.8 M events/s.

use std::io;
use std::sync::Arc;

use sigmund_model::{Cpu, Event, EventStream, Level, Loss, LossKind, Severity};

use super::bits::Bits;
use super::clock::ClockScale;
use super::losses::Losses;
use super::metadata::Order;
use super::packet::{self, MAGIC, Packet};
use super::plan::{State, Stop};
use super::table::{NextEvent, Table};
use crate::error::ParseError;
use crate::input::Input;

/// How much later than its packet's end an event may be, or earlier than the previous packet a packet: 17 ms in
/// nanoseconds.
const JITTER: u64 = 1 << 24;
const ADVICE: &str = "record with more or larger buffers (lttng enable-channel --num-subbuf, --subbuf-size)";

/// Data that all streams of a trace share.
#[derive(Debug)]
pub(super) struct CtfData {
    pub(super) table: Table,
    pub(super) level: Level,
    pub(super) uuid: Option<[u8; 16]>,
    pub(super) order: Order,
}

impl CtfData {
    /// The state for reading `bytes`. The number of steps is limited to many times what an undamaged trace needs.
    pub(super) fn state(&self, bytes: u64) -> State {
        State::new(self.table.registers, bytes.saturating_mul(64).saturating_add(1 << 20))
    }
}

/// Reads the events of one stream, from one file or several consecutive ones.
#[derive(Debug)]
pub struct CtfStream {
    shared: Arc<CtfData>,
    scale: ClockScale,
    files: Vec<Input>,
    /// The current file, and the position of the next packet in it.
    file: usize,
    at: u64,
    open: Option<OpenPacket>,
    before: Option<PreviousPacket>,
    state: State,
    /// Time of the newest event or packet.
    last: u64,
    events: u64,
    /// Beginning of the previous packet if it was rejected for being earlier than `last`.
    rejected: Option<u64>,
    /// Whether a damaged place was noted and no packet has been readable since.
    damaged: bool,
    corrected: u64,
    losses: Losses,
}

#[derive(Debug)]
struct OpenPacket {
    /// Its position in the file, in bytes.
    from: usize,
    to: usize,
    stream: usize,
    /// Position of the next event, and end of the content, in bits of the packet.
    pos: u64,
    content: u64,
    missing: u64,
    cpu: Option<Cpu>,
    limit: u64,
}

/// The last readable packet.
#[derive(Debug)]
struct PreviousPacket {
    cpu: Option<Cpu>,
    end: Option<u64>,
    sequence: Option<u64>,
    discarded: Option<u64>,
}

impl CtfStream {
    pub(super) fn new(shared: Arc<CtfData>, scale: ClockScale, files: Vec<Input>) -> CtfStream {
        let bytes = files.iter().map(Input::len).sum();
        let losses = Losses::new(shared.level, scale);
        CtfStream {
            state: shared.state(bytes),
            shared,
            scale,
            files,
            file: 0,
            at: 0,
            open: None,
            before: None,
            last: 0,
            events: 0,
            rejected: None,
            damaged: false,
            corrected: 0,
            losses,
        }
    }

    /// Events read so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Opens the next readable packet; `false` at the end.
    fn open_packet(&mut self) -> bool {
        while let Some(file) = self.files.get(self.file) {
            let file = file.clone();
            let rest =
                usize::try_from(self.at).ok().and_then(|at| file.bytes().get(at..)).unwrap_or_default();
            if rest.is_empty() {
                (self.file, self.at) = (self.file + 1, 0);
                continue;
            }
            let shared = Arc::clone(&self.shared);
            let last = self.last;
            self.state.time = last;
            match packet::read(&shared.table, shared.uuid, rest, self.at, &mut self.state) {
                Ok(packet) => {
                    let from = self.at;
                    let size = packet.size.unwrap_or(rest.len() as u64);
                    self.at = from.saturating_add(size).min(file.len());
                    if let Some(parse_error) = self.time_error(&packet, from) {
                        self.note_loss(LossKind::Damaged, None, &parse_error);
                        continue;
                    }
                    self.begin(&packet, from as usize, self.at as usize);
                    return true;
                }
                Err(parse_error) => {
                    if !std::mem::replace(&mut self.damaged, true) {
                        self.note_loss(LossKind::Damaged, None, &parse_error);
                    }
                    self.at += shared.next_magic(rest);
                }
            }
        }
        self.note_corrected();
        false
    }

    fn begin(&mut self, packet: &Packet, from: usize, to: usize) {
        self.damaged = false;
        let begin = packet.begin.unwrap_or(self.last);
        self.losses.close_gaps(begin);
        self.note_losses(packet);
        self.state.time = begin;
        self.last = self.last.max(begin);
        self.before = Some(PreviousPacket {
            cpu: packet.cpu,
            end: packet.end,
            sequence: packet.sequence,
            discarded: packet.discarded,
        });
        self.open = Some(OpenPacket {
            from,
            to,
            stream: packet.stream,
            pos: packet.first_event,
            content: packet.content,
            missing: packet.missing,
            cpu: packet.cpu,
            limit: packet.end.map_or(u64::MAX, |end| end.saturating_add(JITTER)),
        });
    }

    /// Whether a packet's time contradicts the previous one in a way that makes this packet the wrong one.
    fn time_error(&mut self, packet: &Packet, at: u64) -> Option<ParseError> {
        let begin = packet.begin?;
        let earlier = |time: u64, than: u64| time.saturating_add(JITTER) < than;
        if !earlier(begin, self.last) {
            self.rejected = None;
            return None;
        }
        let expected = format!("timestamp_begin of at least {}", self.last);
        let parse_error = ParseError { at, part: "packet context", expected, found: begin.to_string() };
        if self.rejected.is_none_or(|rejected| earlier(begin, rejected)) {
            self.rejected = Some(begin);
            return Some(parse_error);
        }
        // Two packets in a row contradict the time before: that one was wrong.
        self.note_loss(LossKind::Contradiction, packet.cpu, &parse_error);
        self.rejected = None;
        self.last = begin;
        None
    }

    /// Adds rows for what the tracer lost, from its counts.
    fn note_losses(&mut self, packet: &Packet) {
        let size =
            self.shared.table.streams.get(packet.stream).map_or(64, |s| s.well_known.events_discarded_size);
        let mask = u64::MAX >> (64 - u32::from(size.clamp(1, 64)));
        let before = self.before.take();
        let since = before.as_ref().and_then(|before| before.end);
        let skipped = match (before.as_ref().and_then(|before| before.sequence), packet.sequence) {
            (Some(old), Some(new)) => new.wrapping_sub(old).wrapping_sub(1),
            _ => 0,
        };
        if skipped > u64::MAX / 2 {
            let detail = format!("packet number {:?} is not above the previous one", packet.sequence);
            self.push_loss(LossKind::Contradiction, Severity::Note, packet.cpu, detail);
        } else if skipped > 0 {
            let detail = format!("{skipped} packets are missing before number {:?}", packet.sequence);
            let row = self.push_loss(LossKind::Dropped, Severity::Gap, packet.cpu, detail);
            row.advice = ADVICE;
            self.losses.span(since, packet.begin);
        }
        let Some(discarded) = packet.discarded else { return };
        let old = before.as_ref().and_then(|before| before.discarded);
        // If the trace begins with a later packet, the count includes what was lost before it.
        let counted = old.is_some() || packet.sequence.is_none_or(|number| number == 0);
        let count = discarded.wrapping_sub(old.unwrap_or(0)) & mask;
        if count > mask / 2 {
            let detail = format!("{discarded} events discarded since the stream began, fewer than before");
            self.push_loss(LossKind::Contradiction, Severity::Note, packet.cpu, detail);
        } else if count > 0 {
            let severity = if counted { Severity::Gap } else { Severity::Note };
            let detail = match counted {
                true => format!("{count} events were discarded by the tracer: its buffer was full"),
                false => format!("{count} events were discarded before the end of the first packet here"),
            };
            let row = self.push_loss(LossKind::Dropped, severity, packet.cpu, detail);
            row.count = counted.then_some(count);
            row.advice = ADVICE;
            self.losses.span(since, packet.end);
        }
    }

    /// Adds a row that names the file.
    fn push_loss(
        &mut self,
        kind: LossKind,
        severity: Severity,
        cpu: Option<Cpu>,
        detail: String,
    ) -> &mut Loss {
        let name = self.files.get(self.file).or(self.files.last()).map(Input::name).unwrap_or_default();
        self.losses.push(kind, severity, cpu, format!("{name}: {detail}"))
    }

    /// Records that something at this point of the stream could not be read.
    #[cold]
    fn note_loss(&mut self, kind: LossKind, cpu: Option<Cpu>, parse_error: &ParseError) {
        let from = (self.events > 0 || self.before.is_some()).then(|| self.scale.tick(self.last));
        let cpu = cpu.or(self.before.as_ref().and_then(|before| before.cpu));
        self.push_loss(kind, Severity::Gap, cpu, parse_error.to_string()).from = from;
    }

    fn note_corrected(&mut self) {
        let count = std::mem::take(&mut self.corrected);
        if count > 0 {
            let detail = format!("{count} events were earlier than the previous event; they got its time");
            self.push_loss(LossKind::Contradiction, Severity::Note, None, detail).count = Some(count);
        }
    }

    /// Damage in the open packet ends that packet.
    #[cold]
    fn abandon_packet(&mut self, expected: String, found: String) {
        let Some(packet) = self.open.take() else { return };
        let kind = if packet.missing > 0 { LossKind::Truncated } else { LossKind::Damaged };
        let found = format!("{found} at bit {} of {}", packet.pos, packet.content);
        let parse_error = ParseError { at: packet.from as u64, part: "packet", expected, found };
        self.note_loss(kind, packet.cpu, &parse_error);
    }

    #[cold]
    fn stop(&mut self, stop: Stop) {
        let missing = self.open.as_ref().map_or(0, |packet| packet.missing);
        match stop {
            Stop::PastEnd if missing > 0 => self.cut_off(missing),
            Stop::PastEnd => self.abandon_packet("a whole event".to_owned(), "one that is longer".to_owned()),
            Stop::NoOption(tag) => {
                self.abandon_packet("a tag of a declared option".to_owned(), format!("tag {tag}"));
            }
            Stop::TooManySteps => {
                let found = "unbounded arrays and fields".to_owned();
                self.abandon_packet("events in proportion to the file".to_owned(), found);
                (self.file, self.at) = (self.files.len(), 0);
            }
        }
    }

    fn cut_off(&mut self, missing: u64) {
        let expected = format!("{missing} bits more");
        self.abandon_packet(expected, "the end of the file".to_owned());
    }
}

impl CtfData {
    /// The smallest distance from the start of `bytes` at which the next packet may begin: after the first byte.
    fn next_magic(&self, bytes: &[u8]) -> u64 {
        let magic = match self.order {
            Order::Little => MAGIC.to_le_bytes(),
            Order::Big => MAGIC.to_be_bytes(),
        };
        let after = bytes.get(1..).unwrap_or_default();
        let found = self.table.header.magic.and_then(|_| after.windows(4).position(|word| word == magic));
        found.map_or(bytes.len() as u64, |at| at as u64 + 1)
    }
}

impl EventStream for CtfStream {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        loop {
            let Some(packet) = &mut self.open else {
                if !self.open_packet() {
                    return Ok(false);
                }
                continue;
            };
            let bytes = self.files.get(self.file).map(Input::bytes).unwrap_or_default();
            let bytes = bytes.get(packet.from..packet.to).unwrap_or_default();
            let Some(plan) = self.shared.table.streams.get(packet.stream) else {
                self.open = None;
                continue;
            };
            let mut bits = Bits::new(bytes, packet.pos, packet.content);
            match plan.next(&mut bits, &mut self.state, event) {
                NextEvent::Event if self.state.time > packet.limit => {
                    let expected = format!("a time of at most {}", packet.limit - JITTER);
                    let found = format!("time {}", self.state.time);
                    self.abandon_packet(expected, found);
                }
                NextEvent::Event => {
                    packet.pos = bits.pos();
                    if self.state.time < self.last {
                        self.corrected += 1;
                    } else {
                        self.last = self.state.time;
                    }
                    self.events += 1;
                    event.tick = self.scale.tick(self.last);
                    event.cpu = packet.cpu;
                    return Ok(true);
                }
                NextEvent::End if packet.missing > 0 => {
                    let missing = packet.missing;
                    self.cut_off(missing);
                }
                NextEvent::End => self.open = None,
                NextEvent::Unknown(id) => {
                    self.abandon_packet("a declared event".to_owned(), format!("event {id}"));
                }
                NextEvent::NoBits(id) => {
                    self.abandon_packet("an event that takes bits".to_owned(), format!("event {id}"));
                }
                NextEvent::Stopped(stop) => self.stop(stop),
            }
        }
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        self.note_corrected();
        self.losses.take()
    }
}
