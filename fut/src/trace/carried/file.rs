//! The file of what is carried over: written owner by owner, and read so.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use sigmund_model::{LeaveReason, Lwp, Pid, Thread, Ticks, Wait, WaitKind};

use super::{Carried, CarriedLwps, CarriedOwner, CarriedSpan, Digest, LastPacket};
use crate::trace::{
    Cut, FILE_HEAD_LEN, FILE_MAGIC, PACKET_HEAD_LEN, PacketHead, PacketKind, TraceError, UserTrace,
    file_head, wire::push_text,
};

/// A packet of owners is written when it is this large.
const PACKET: usize = 60 << 10;
/// No writer makes a longer one: an owner has at most 2^16 open spans.
const LONGEST: u32 = 4 << 20;
/// Longer names are cut; no record has a longer text.
const LONGEST_NAME: usize = 2048;

/// What [`carry_over`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedSummary {
    /// Threads, and LWPs with open spans, in the file.
    pub owners: u64,
    /// Those that it has no room for.
    pub left_out: u64,
    /// Its length.
    pub bytes: u64,
}

/// An open file, read from its begin to its end.
#[derive(Debug)]
pub struct CarriedFile {
    path: PathBuf,
    file: BufReader<File>,
    at: u64,
    lwps: CarriedLwps,
    payload: Vec<u8>,
    /// Bytes of the payload that are read.
    read: usize,
    /// What the last packet states.
    end: Option<(u64, u64)>,
}

/// Writes to `out`, an empty file, what is known after these parts of a trace, and before them by the file `before`. At most
/// `most_bytes` are written; owners without room are counted.
///
/// Memory is needed for the owners that the parts have events of. A `before` that is damaged is read up to the damage.
///
/// # Errors
/// When a part is no user trace, or a file cannot be read or written.
pub fn carry_over(
    before: Option<CarriedFile>,
    parts: Vec<(PathBuf, File)>,
    out: File,
    most_bytes: u64,
) -> Result<CarriedSummary, TraceError> {
    let mut digest =
        Digest::after(before.as_ref().map_or_else(CarriedLwps::default, |file| file.lwps.clone()));
    let mut pid = Pid(0);
    for (path, file) in parts {
        let trace = UserTrace::of_file(&path, file)?;
        pid = trace.lwps().first().map_or(pid, |lwp| lwp.pid);
        digest.take(&trace, Ticks(u64::MAX)).map_err(|error| TraceError::Io(path, error))?;
    }
    let mut writer = Writer::begin(out, pid, &digest.lwps, most_bytes).map_err(not_written)?;
    let mut changes = digest.take_changes().into_iter().peekable();
    let mut before = before;
    loop {
        let old = before.as_mut().and_then(CarriedFile::peek);
        let new = changes.peek().map(|(owner, _)| *owner);
        let Some(owner) = old.map(|old| old.owner).into_iter().chain(new).min() else { break };
        let changed = changes.next_if(|(of, _)| *of == owner).map(|(_, changed)| changed);
        let mut facts = None;
        if let (Some(old), Some(before)) = (old.filter(|old| old.owner == owner), &mut before) {
            if changed.is_none() && !digest.may_change(old.owner, old.mounted_on, old.has_spans) {
                writer.push_encoded(before.take(old)).map_err(not_written)?;
                continue;
            }
            facts = decode(&mut Cut::new(before.take(old), 0)).ok().map(|(_, facts)| facts);
        }
        if let Some(facts) = digest.fold(owner, facts, changed) {
            writer.push(owner, &facts).map_err(not_written)?;
        }
    }
    writer.finish().map_err(not_written)
}

fn not_written(error: io::Error) -> TraceError {
    TraceError::Io(PathBuf::from("what is carried over"), error)
}

struct Writer {
    file: BufWriter<File>,
    pid: Pid,
    payload: Vec<u8>,
    owners: u64,
    left_out: u64,
    bytes: u64,
    most_bytes: u64,
}

impl Writer {
    fn begin(file: File, pid: Pid, lwps: &CarriedLwps, most_bytes: u64) -> io::Result<Writer> {
        let file = BufWriter::with_capacity(256 << 10, file);
        let payload = Vec::with_capacity(PACKET + LONGEST_NAME);
        let mut writer = Writer { file, pid, payload, owners: 0, left_out: 0, bytes: 0, most_bytes };
        writer.write(&file_head())?;
        writer.payload.extend_from_slice(&lwps.gap.0.to_le_bytes());
        for (lwp, last) in &lwps.lwps {
            for word in [u64::from(lwp.0), last.sequence, last.lost, last.gap.0] {
                writer.payload.extend_from_slice(&word.to_le_bytes());
            }
        }
        writer.flush(PacketKind::CARRIED_LWPS)?;
        Ok(writer)
    }

    fn push(&mut self, owner: CarriedOwner, facts: &Carried) -> io::Result<()> {
        self.push_by(|payload| encode(owner, facts, payload))
    }

    fn push_encoded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.push_by(|payload| payload.extend_from_slice(bytes))
    }

    fn push_by(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        if self.bytes + self.payload.len() as u64 > self.most_bytes {
            self.left_out += 1;
            return Ok(());
        }
        write(&mut self.payload);
        self.owners += 1;
        if self.payload.len() >= PACKET { self.flush(PacketKind::CARRIED_THREADS) } else { Ok(()) }
    }

    fn finish(mut self) -> io::Result<CarriedSummary> {
        if !self.payload.is_empty() {
            self.flush(PacketKind::CARRIED_THREADS)?;
        }
        for word in [self.owners, self.left_out] {
            self.payload.extend_from_slice(&word.to_le_bytes());
        }
        self.flush(PacketKind::CARRIED_END)?;
        self.file.flush()?;
        Ok(CarriedSummary { owners: self.owners, left_out: self.left_out, bytes: self.bytes })
    }

    fn flush(&mut self, kind: PacketKind) -> io::Result<()> {
        let packet = PacketHead::about(kind, self.pid, Ticks(0)).encode(&self.payload);
        self.payload.clear();
        self.write(&packet)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

/// Packets of these owners, for a trace that may not hold their creation.
#[cfg(all(feature = "runtime", feature = "drain"))]
pub(crate) fn encode_owners(pid: Pid, owners: impl Iterator<Item = (CarriedOwner, Carried)>) -> Vec<u8> {
    let (mut packets, mut payload) = (Vec::new(), Vec::new());
    let mut flush = |payload: &mut Vec<u8>| {
        if !payload.is_empty() {
            packets.extend(PacketHead::about(PacketKind::CARRIED_THREADS, pid, Ticks(0)).encode(payload));
            payload.clear();
        }
    };
    for (owner, facts) in owners {
        encode(owner, &facts, &mut payload);
        if payload.len() >= PACKET {
            flush(&mut payload);
        }
    }
    flush(&mut payload);
    packets
}

/// The owners in the payload of a packet of kind `CARRIED_THREADS`.
pub(in crate::trace) fn decode_owners(
    payload: &[u8],
    at: u64,
) -> Result<Vec<(CarriedOwner, Carried)>, TraceError> {
    let (mut cut, mut owners) = (Cut::new(payload, at), Vec::new());
    while !cut.is_empty() {
        owners.push(decode(&mut cut)?);
    }
    Ok(owners)
}

/// An owner, as far as is needed to pass it on as it is.
#[derive(Clone, Copy, Debug)]
struct Encoded {
    owner: CarriedOwner,
    len: usize,
    mounted_on: Lwp,
    has_spans: bool,
}

/// The first owner in these bytes; it is laid out as [`decode`] reads it.
fn first_encoded(bytes: &[u8], at: u64) -> Result<Encoded, TraceError> {
    let mut cut = Cut::new(bytes, at);
    let owner = decode_owner(&mut cut)?;
    let name = cut.u32("name")?;
    cut.bytes(name as usize + 3 * 8, "name and creation")?;
    let mounted_on = Lwp(cut.u32("LWP")?);
    cut.bytes(8 + 2 + 8 + 8, "states")?;
    let spans = cut.u32("number of spans")?;
    cut.bytes(24 * spans as usize, "spans")?;
    Ok(Encoded { owner, len: bytes.len() - cut.left(), mounted_on, has_spans: spans > 0 })
}

fn encode(owner: CarriedOwner, facts: &Carried, out: &mut Vec<u8>) {
    let word = |out: &mut Vec<u8>, word: u64| out.extend_from_slice(&word.to_le_bytes());
    let (tag, number) = match owner {
        CarriedOwner::Thread(thread) => (0, thread.0),
        CarriedOwner::Lwp(lwp) => (1, lwp.0.into()),
    };
    let Carried { name, created, created_by, mounted, left, ready, spans } = facts;
    let (mounted, on) = mounted.unwrap_or((Ticks(0), Lwp(0)));
    let (left, reason, wait) = left.unwrap_or((Ticks(0), LeaveReason::Unknown, Wait::default()));
    out.push(tag);
    word(out, number);
    push_text(out, &name[..name.floor_char_boundary(LONGEST_NAME)]);
    word(out, created.unwrap_or_default().0);
    word(out, created_by.map_or(0, |thread| thread.0));
    word(out, mounted.0);
    out.extend_from_slice(&on.0.to_le_bytes());
    word(out, left.0);
    out.extend_from_slice(&[reason as u8, wait.kind.map_or(0, WaitKind::number)]);
    word(out, wait.on.unwrap_or(0));
    word(out, ready.unwrap_or_default().0);
    out.extend_from_slice(&(spans.len() as u32).to_le_bytes());
    for span in spans {
        out.extend_from_slice(&span.code.to_le_bytes());
        out.extend_from_slice(&span.lwp.0.to_le_bytes());
        word(out, span.address);
        word(out, span.since.0);
    }
}

fn decode(cut: &mut Cut<'_>) -> Result<(CarriedOwner, Carried), TraceError> {
    let tick = |word: u64| Some(Ticks(word)).filter(|tick| tick.0 != 0);
    let owner = decode_owner(cut)?;
    let name = cut.text("name")?.into_boxed_str();
    let created = tick(cut.u64("creation")?);
    let created_by = Thread::from_switch(cut.u64("creator")?);
    let (mounted, lwp) = (tick(cut.u64("mounted")?), Lwp(cut.u32("LWP")?));
    let left = tick(cut.u64("left")?);
    let reason = LeaveReason::from_number(cut.u8("reason")?.into());
    let kind = WaitKind::from_number(cut.u8("kind of wait")?.into());
    let wait = Wait { kind, on: Some(cut.u64("object")?).filter(|on| *on != 0) };
    let ready = tick(cut.u64("made ready")?);
    let mut spans = Vec::new();
    for _ in 0..cut.u32("number of spans")? {
        let (code, lwp) = (cut.u32("span")?, Lwp(cut.u32("span")?));
        spans.push(CarriedSpan { code, lwp, address: cut.u64("span")?, since: Ticks(cut.u64("span")?) });
    }
    let mounted = mounted.map(|tick| (tick, lwp));
    let left = left.map(|tick| (tick, reason, wait));
    Ok((owner, Carried { name, created, created_by, mounted, left, ready, spans }))
}

fn decode_owner(cut: &mut Cut<'_>) -> Result<CarriedOwner, TraceError> {
    let (tag, number) = (cut.u8("owner")?, cut.u64("owner")?);
    Ok(match tag {
        0 => CarriedOwner::Thread(Thread(number)),
        _ => CarriedOwner::Lwp(Lwp(number as u32)),
    })
}

impl CarriedFile {
    /// Opens a file from its begin.
    ///
    /// # Errors
    /// When it cannot be read, or does not begin as one.
    pub fn open(path: &Path, file: File) -> Result<CarriedFile, TraceError> {
        let mut opened = CarriedFile {
            path: path.to_path_buf(),
            file: BufReader::with_capacity(256 << 10, file),
            at: 0,
            lwps: CarriedLwps::default(),
            payload: Vec::new(),
            read: 0,
            end: None,
        };
        let mut head = [0; FILE_HEAD_LEN];
        opened.fill(&mut head)?;
        if !head.starts_with(FILE_MAGIC) {
            return Err(opened.bad("what is carried over (\"FUTTRACE\")", "another file"));
        }
        if opened.next_packet()? != PacketKind::CARRIED_LWPS {
            return Err(opened.bad("a packet of LWPs first", "another packet"));
        }
        let mut cut = Cut::new(&opened.payload, opened.at);
        opened.lwps.gap = Ticks(cut.u64("gap")?);
        while !cut.is_empty() {
            let lwp = Lwp(cut.u64("LWP")? as u32);
            let (sequence, lost) = (cut.u64("packet")?, cut.u64("lost records")?);
            let last = LastPacket { sequence, lost, gap: Ticks(cut.u64("gap")?) };
            opened.lwps.lwps.insert(lwp, last);
        }
        opened.read = opened.payload.len();
        Ok(opened)
    }

    /// The LWPs at that time.
    pub fn lwps(&self) -> &CarriedLwps {
        &self.lwps
    }

    /// The next owner; `None` after the last.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or ends too early.
    pub fn next_owner(&mut self) -> Result<Option<(CarriedOwner, Carried)>, TraceError> {
        if !self.has_more()? {
            return Ok(None);
        }
        let mut cut = Cut::new(&self.payload[self.read..], self.at + self.read as u64);
        let decoded = decode(&mut cut)?;
        self.read = self.payload.len() - cut.left();
        Ok(Some(decoded))
    }

    /// The next owner; `None` after the last, or where the file is damaged.
    fn peek(&mut self) -> Option<Encoded> {
        let has_more = self.has_more().unwrap_or(false);
        has_more.then(|| first_encoded(&self.payload[self.read..], self.at).ok()).flatten()
    }

    /// The bytes of the owner that `peek` gave.
    fn take(&mut self, owner: Encoded) -> &[u8] {
        let start = self.read;
        self.read += owner.len;
        &self.payload[start..self.read]
    }

    /// Reads the next packet, if the one before is read to its end; `false` after the last.
    fn has_more(&mut self) -> Result<bool, TraceError> {
        while self.end.is_none() && self.read == self.payload.len() {
            let kind = self.next_packet()?;
            if kind == PacketKind::CARRIED_END {
                let mut cut = Cut::new(&self.payload, self.at);
                self.end = Some((cut.u64("owners")?, cut.u64("owners left out")?));
            } else if kind != PacketKind::CARRIED_THREADS {
                return Err(self.bad("a packet of threads", &format!("kind {}", kind.0)));
            }
        }
        Ok(self.end.is_none())
    }

    /// Owners that the file had no room for; known when all others were read.
    pub fn left_out(&self) -> u64 {
        self.end.map_or(0, |(_, left_out)| left_out)
    }

    fn next_packet(&mut self) -> Result<PacketKind, TraceError> {
        let mut packet = vec![0; PACKET_HEAD_LEN];
        self.fill(&mut packet)?;
        let (head, crc) = PacketHead::parse(&packet, self.at - PACKET_HEAD_LEN as u64)?;
        if head.length > LONGEST {
            return Err(self.bad(&format!("a packet of at most {LONGEST} bytes"), &head.length.to_string()));
        }
        packet.resize(PACKET_HEAD_LEN + head.length as usize, 0);
        let payload_at = self.at;
        self.fill(&mut packet[PACKET_HEAD_LEN..])?;
        self.at = payload_at;
        if !PacketHead::checks(&packet, crc) {
            return Err(self.bad(&format!("a packet with checksum {crc:08x}"), "another checksum"));
        }
        self.at = payload_at + u64::from(head.length);
        packet.drain(..PACKET_HEAD_LEN);
        (self.payload, self.read) = (packet, 0);
        Ok(head.kind)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), TraceError> {
        self.file.read_exact(bytes).map_err(|error| TraceError::Io(self.path.clone(), error))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn bad(&self, expected: &str, found: &str) -> TraceError {
        let (expected, found) = (expected.into(), found.into());
        TraceError::Bad { file: self.path.clone(), at: self.at, expected, found }
    }
}

/// The owners up to the end, or to what cannot be read.
impl Iterator for CarriedFile {
    type Item = (CarriedOwner, Carried);

    fn next(&mut self) -> Option<(CarriedOwner, Carried)> {
        self.next_owner().ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use sigmund_model::{EventType, Field, FieldType, Level};

    use super::*;
    use crate::trace::{
        CarriedState, Declaration, NamedPlace, PacketFlags, RecordHead, encode_declarations, encode_places,
    };

    const SWITCH: u32 = 1 | crate::trace::DECLARED_BIT;
    const NEW: u32 = 2 | crate::trace::DECLARED_BIT;
    const READY: u32 = 3 | crate::trace::DECLARED_BIT;
    const SPAN_BEGIN: u32 = 4 | crate::trace::DECLARED_BIT;
    const SPAN_END: u32 = 5 | crate::trace::DECLARED_BIT;
    /// Of a C program.
    const PROF_IN: u32 = 6;
    const PROF_OUT: u32 = 7;

    const YIELD: u64 = 1;
    const BLOCK: u64 = 3;
    const EXIT: u64 = 4;

    fn head(kind: PacketKind, lwp: u32) -> PacketHead {
        PacketHead { lwp: Lwp(lwp), ..PacketHead::about(kind, Pid(60), Ticks(0)) }
    }

    /// Code, name and fields of an event.
    type Declared = (u32, &'static str, &'static [(&'static str, FieldType)]);

    fn metadata() -> Vec<u8> {
        const THREAD: (&str, FieldType) = ("thread", FieldType::Thread);
        let declared: [Declared; 7] = [
            (SWITCH, "USER_CONTEXT_SWITCH", &[("next", FieldType::Thread), ("reason", FieldType::U8)]),
            (NEW, "USER_THREAD_NEW", &[THREAD, ("name", FieldType::Text)]),
            (READY, "USER_THREAD_READY", &[THREAD]),
            (SPAN_BEGIN, "SPAN_BEGIN", &[("span", FieldType::Pointer)]),
            (SPAN_END, "SPAN_END", &[("span", FieldType::Pointer)]),
            (PROF_IN, "PROF_IN", &[("function", FieldType::Pointer)]),
            (PROF_OUT, "PROF_OUT", &[("function", FieldType::Pointer)]),
        ];
        let declarations = declared.map(|(code, name, fields)| Declaration {
            event: EventType {
                level: Level::User,
                code: Some(code),
                name: name.into(),
                key: 1,
                fields: fields.iter().map(|(name, ty)| Field { name: (*name).into(), ty: *ty }).collect(),
                format: String::new(),
            },
            file: String::new(),
            line: 0,
        });
        let place = |address| {
            let (name, file) = ("work".to_string(), "work.c".to_string());
            NamedPlace { pid: Pid(60), address, name, file, line: address as u32 }
        };
        let declarations =
            head(PacketKind::DECLARATIONS, 0).encode(&encode_declarations(declarations.iter()));
        let places = head(PacketKind::PLACES, 0).encode(&encode_places(&[place(0x71), place(0x72)]));
        [declarations, places].concat()
    }

    /// A record: tick, code, words.
    type Drawn<'d> = (u64, u32, &'d [u64]);

    fn packet(lwp: u32, sequence: u64, thread: u64, records: &[Drawn<'_>]) -> Vec<u8> {
        let record = |(tick, code, words): &Drawn<'_>| {
            let head = RecordHead { code: *code, words: words.len() as u8, flags: 0, cpu: 0 };
            [&[*tick, head.to_word()], *words].concat()
        };
        let payload: Vec<u8> = records.iter().flat_map(record).flat_map(u64::to_le_bytes).collect();
        PacketHead {
            sequence,
            first_tick: Ticks(records[0].0),
            thread: Thread::from_switch(thread),
            last_tick: Ticks(records[records.len() - 1].0),
            ..head(PacketKind::EVENTS, lwp)
        }
        .encode(&payload)
    }

    fn text(name: &str) -> [u64; 2] {
        let mut bytes = [0; 8];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        [name.len() as u64, u64::from_le_bytes(bytes)]
    }

    fn new(thread: u64, name: &str) -> [u64; 3] {
        let [len, bytes] = text(name);
        [thread, len, bytes]
    }

    /// What is carried over part after part; of each, its packets.
    struct Carrying {
        folder: tempfile::TempDir,
        parts: usize,
    }

    impl Carrying {
        fn begin() -> Carrying {
            Carrying { folder: tempfile::tempdir().unwrap(), parts: 0 }
        }

        fn path(&self, what: &str, number: usize) -> PathBuf {
            self.folder.path().join(format!("{what}-{number}"))
        }

        fn remove(&mut self, packets: &[Vec<u8>]) -> CarriedSummary {
            self.remove_with_room(packets, u64::MAX)
        }

        fn remove_with_room(&mut self, packets: &[Vec<u8>], most_bytes: u64) -> CarriedSummary {
            let part = self.path("part", self.parts);
            std::fs::write(
                &part,
                [vec![file_head().to_vec(), metadata()], packets.to_vec()].concat().concat(),
            )
            .unwrap();
            let before = (self.parts > 0).then(|| self.file());
            self.parts += 1;
            let out = File::create_new(self.path("carried", self.parts)).unwrap();
            carry_over(before, vec![(part.clone(), File::open(part).unwrap())], out, most_bytes).unwrap()
        }

        fn file(&self) -> CarriedFile {
            let path = self.path("carried", self.parts);
            CarriedFile::open(&path, File::open(&path).unwrap()).unwrap()
        }

        /// Number, name and state of the threads.
        fn threads(&self) -> Vec<(u64, String, CarriedState)> {
            let mut file = self.file();
            let lwps = file.lwps().clone();
            let mut threads = Vec::new();
            while let Some((owner, facts)) = file.next_owner().unwrap() {
                if let CarriedOwner::Thread(thread) = owner {
                    threads.push((thread.0, facts.name.to_string(), facts.state(&lwps).unwrap()));
                }
            }
            threads
        }

        /// Addresses and begins of the open spans of all owners.
        fn spans(&self) -> Vec<(CarriedOwner, Vec<(u64, u64)>)> {
            let spans = |(owner, facts): (_, Carried)| {
                (owner, facts.spans.iter().map(|span| (span.address, span.since.0)).collect())
            };
            self.file().map(spans).collect()
        }
    }

    // LWP 70  | new 5, 6, 7; 5 runs, blocks on 0xbeef; 6 exits; 7 runs … │ (nothing)
    #[test]
    fn threads_that_live_are_carried_over_part_after_part_and_others_are_not() {
        let blocked = CarriedState::Blocked(Wait { kind: Some(WaitKind::Mutex), on: Some(0xbeef) });
        let mutex = u64::from(WaitKind::Mutex.number());
        let mut carrying = Carrying::begin();
        let first = packet(
            70,
            0,
            4,
            &[
                (10, NEW, &new(5, "five")),
                (11, NEW, &new(6, "six")),
                (12, NEW, &new(7, "")),
                (13, NEW, &new(8, "eight")),
                (20, SWITCH, &[5, BLOCK, 0, 0]),
                (30, SWITCH, &[6, BLOCK, 0xbeef, mutex]),
                (40, SWITCH, &[7, EXIT, 0, 0]),
            ],
        );
        let summary = carrying.remove(&[first]);
        let expected = [
            (4, "", CarriedState::Blocked(Wait::default())),
            (5, "five", blocked),
            (7, "", CarriedState::Mounted(Lwp(70))),
            (8, "eight", CarriedState::New),
        ];
        let expected = expected.map(|(thread, name, state)| (thread, name.to_string(), state)).to_vec();
        assert_eq!((summary.owners, summary.left_out, carrying.threads()), (4, 0, expected.clone()));
        // A part in which nothing happens.
        carrying.remove(&[]);
        assert_eq!(carrying.threads(), expected);
        // A thread continues on another LWP, whose packet comes first; one blocks in a packet that is a rest.
        let continued = packet(70, 0, 7, &[(50, READY, &[5]), (60, SWITCH, &[0, YIELD, 0, 0])]);
        let mut rest = PacketHead::parse(&continued, 0).unwrap().0;
        rest.flags = PacketFlags::CONTINUED;
        let continued = rest.encode(&continued[PACKET_HEAD_LEN..]);
        carrying.remove(&[packet(71, 0, 0, &[(55, SWITCH, &[5, 0, 0, 0])]), continued]);
        let states: Vec<_> =
            carrying.threads().into_iter().map(|(thread, _, state)| (thread, state)).collect();
        let [mounted, ready] = [CarriedState::Mounted(Lwp(71)), CarriedState::Ready];
        let blocked = CarriedState::Blocked(Wait::default());
        assert_eq!(states, [(4, blocked), (5, mounted), (7, ready), (8, CarriedState::New)]);
        // LWP 71 ends under thread 5.
        carrying.remove(&[head(PacketKind::LWP_END, 71).encode(&[])]);
        assert_eq!(carrying.threads()[1], (5, "five".into(), CarriedState::Unmounted));
    }

    #[test]
    fn lost_events_leave_states_unknown_and_names_known() {
        let mut carrying = Carrying::begin();
        carrying.remove(&[packet(70, 0, 0, &[(10, NEW, &new(5, "five")), (11, NEW, &new(6, "six"))])]);
        let mut lost = PacketHead::parse(&packet(70, 1, 0, &[(50, READY, &[6])]), 0).unwrap().0;
        lost.lost = 3;
        let payload = packet(70, 1, 0, &[(50, READY, &[6])]).split_off(PACKET_HEAD_LEN);
        carrying.remove(&[lost.encode(&payload)]);
        let expected = [(5, "five".into(), CarriedState::Unknown), (6, "six".into(), CarriedState::Ready)];
        assert_eq!(carrying.threads(), expected);
        // A packet that is missing between two parts.
        carrying.remove(&[packet(70, 3, 0, &[(60, READY, &[5])])]);
        let expected = [(5, "five".into(), CarriedState::Ready), (6, "six".into(), CarriedState::Unknown)];
        assert_eq!(carrying.threads(), expected);
    }

    // thread 5 on LWP 70  | (a  (b │  b)  (c  │ on LWP 71: c)  (work
    #[test]
    fn spans_stay_open_until_their_end_is_in_a_part() {
        let thread = |number| CarriedOwner::Thread(Thread(number));
        let mut carrying = Carrying::begin();
        let spans = [(10, SPAN_BEGIN, &[0xa][..]), (11, SPAN_BEGIN, &[0xb]), (12, SWITCH, &[0, BLOCK, 0, 0])];
        carrying.remove(&[packet(70, 0, 5, &spans)]);
        assert_eq!(carrying.spans(), [(thread(5), vec![(0xa, 10), (0xb, 11)])]);
        let spans = [(20, SWITCH, &[5, 0, 0, 0][..]), (21, SPAN_END, &[0xb]), (22, SPAN_BEGIN, &[0xc])];
        carrying.remove(&[packet(70, 1, 0, &spans)]);
        assert_eq!(carrying.spans(), [(thread(5), vec![(0xa, 10), (0xc, 22)])]);
        // The packet of the LWP that it comes to is first in the file; begin and end of a function have their own addresses.
        let spans = [
            (32, SWITCH, &[5, 0, 0, 0][..]),
            (33, SPAN_END, &[0xc]),
            (34, PROF_IN, &[0x71]),
            (35, PROF_IN, &[0x72]),
        ];
        let left = [(29, SPAN_BEGIN, &[0xd][..]), (30, SPAN_END, &[0xd]), (31, SWITCH, &[0, YIELD, 0, 0])];
        carrying.remove(&[packet(71, 0, 0, &spans), packet(70, 2, 5, &left)]);
        assert_eq!(carrying.spans(), [(thread(5), vec![(0xa, 10), (0x71, 34), (0x72, 35)])]);
        carrying.remove(&[packet(71, 1, 5, &[(40, PROF_OUT, &[0x71]), (41, PROF_OUT, &[0x71])])]);
        assert_eq!(carrying.spans(), [(thread(5), vec![(0xa, 10)])]);
        // The outer one ends those in it; an LWP without a user thread has its own.
        carrying.remove(&[
            packet(71, 2, 5, &[(50, SPAN_BEGIN, &[0xe]), (51, SPAN_END, &[0xa])]),
            packet(72, 0, 0, &[(52, SPAN_BEGIN, &[0xa])]),
        ]);
        assert_eq!(carrying.spans(), [(thread(5), vec![]), (CarriedOwner::Lwp(Lwp(72)), vec![(0xa, 52)])]);
        carrying.remove(&[head(PacketKind::LWP_END, 72).encode(&[])]);
        assert_eq!(carrying.spans(), [(thread(5), vec![])]);
    }

    #[test]
    fn what_has_no_room_is_counted_and_damage_ends_what_is_read() {
        let names: Vec<[u64; 3]> = (1..=5000).map(|thread| new(thread, "a name")).collect();
        let records: Vec<Drawn<'_>> = (10..).zip(&names).map(|(tick, name)| (tick, NEW, &name[..])).collect();
        let mut carrying = Carrying::begin();
        let whole = carrying.remove(&[packet(70, 0, 0, &records)]);
        assert_eq!((whole.owners, whole.left_out), (5000, 0));
        let path = carrying.path("carried", 1);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), whole.bytes);
        let mut carrying = Carrying::begin();
        let half = carrying.remove_with_room(&[packet(70, 0, 0, &records)], whole.bytes / 2);
        assert_eq!(half.owners + half.left_out, 5000);
        assert!((2000..2600).contains(&half.owners) && half.bytes < whole.bytes / 2 + 1000, "{half:?}");
        let mut file = carrying.file();
        while file.next_owner().unwrap().is_some() {}
        assert_eq!(file.left_out(), half.left_out);
        // Cut anywhere, and with any bit flipped in a packet.
        let path = carrying.path("carried", 1);
        let bytes = std::fs::read(&path).unwrap();
        for len in [0, 10, 16, 60, 100, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..len]).unwrap();
            let opened = CarriedFile::open(&path, File::open(&path).unwrap());
            let error = opened.and_then(|mut file| {
                while file.next_owner()?.is_some() {}
                Ok(())
            });
            assert!(error.is_err(), "cut at {len}");
        }
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 4;
        std::fs::write(&path, &flipped).unwrap();
        let mut file = carrying.file();
        let error = loop {
            match file.next_owner() {
                Ok(owner) => assert!(owner.is_some(), "the damage is found"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("checksum"), "{error}");
    }

    /// `cargo test -p sigmund-fut --release --lib a_million_threads -- --ignored --nocapture`; the memory is that of the process
    /// beyond what it had before.
    #[test]
    #[ignore = "a measurement"]
    fn a_million_threads() {
        const THREADS: u64 = 1_000_000;
        let peak_mb = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
        };
        let cpu_ms = || {
            let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
            times.split(' ').next().unwrap().parse::<u64>().unwrap() / 1_000_000
        };
        let folder = tempfile::tempdir().unwrap();
        let mut number = 0;
        let mut part = |packets: &mut dyn Iterator<Item = Vec<u8>>| {
            number += 1;
            let path = folder.path().join(format!("part-{number}"));
            let mut file = BufWriter::new(File::create_new(&path).unwrap());
            file.write_all(&[file_head().to_vec(), metadata()].concat()).unwrap();
            packets.for_each(|packet| file.write_all(&packet).unwrap());
            file.flush().unwrap();
            path
        };
        let all: Vec<u64> = (1..=THREADS).collect();
        let create = |(sequence, threads): (usize, &[u64])| {
            let words: Vec<_> = threads.iter().map(|thread| new(*thread, "worker")).collect();
            let record = |(thread, words): (&u64, &'static [u64])| (10 + thread, NEW, words);
            let words: Vec<&'static [u64]> = words.into_iter().map(|w| &*Vec::leak(w.to_vec())).collect();
            packet(70, sequence as u64, 0, &threads.iter().zip(words).map(record).collect::<Vec<_>>())
        };
        // Each is mounted, and blocks.
        let run = |(sequence, threads): (usize, &[u64])| {
            let record =
                |thread: &u64| (2_000_000 + thread, SWITCH, &*Vec::leak(vec![*thread, BLOCK, 0xbeef, 1]));
            packet(70, 1000 + sequence as u64, 0, &threads.iter().map(record).collect::<Vec<_>>())
        };
        let plain = |sequence: u64| {
            let first = 4_000_000 + 1500 * sequence;
            packet(71, sequence, 0, &(0..1500).map(|i| (first + i, 99, &[1, 2][..])).collect::<Vec<_>>())
        };
        let parts = [
            ("creates them", part(&mut all.chunks(1000).enumerate().map(create))),
            ("runs each", part(&mut all.chunks(1000).enumerate().map(run))),
            ("has 3 million other events", part(&mut (0..2000).map(plain))),
            ("has none", part(&mut std::iter::empty())),
        ];
        let mut before: Option<PathBuf> = None;
        for (what, path) in parts {
            let len = std::fs::metadata(&path).unwrap().len();
            let out = path.with_extension("carried");
            std::fs::write("/proc/self/clear_refs", "5").unwrap();
            let (memory, start) = (peak_mb(), cpu_ms());
            let file =
                before.map(|path: PathBuf| CarriedFile::open(&path, File::open(&path).unwrap()).unwrap());
            let file = carry_over(
                file,
                vec![(path.clone(), File::open(&path).unwrap())],
                File::create_new(&out).unwrap(),
                u64::MAX,
            );
            let (took, memory) = (cpu_ms() - start, peak_mb() - memory);
            eprintln!(
                "a part of {} MB that {what}: {took} ms of CPU time, {memory} MB of memory; {:?}",
                len >> 20,
                file.unwrap()
            );
            before = Some(out);
        }
    }
}
