//! The file of what is carried over. Its owners are written, and read, one after the other.

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

/// A packet of owners is written when it has this size.
const PACKET: usize = 60 << 10;
/// Maximum length of a packet. No writer makes a longer one, because an owner has at most 2^16 open spans.
const LONGEST: u32 = 4 << 20;
/// Maximum length of a name. Longer ones are truncated; no record has a longer text.
const LONGEST_NAME: usize = 2048;

/// The result of [`carry_over`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedSummary {
    /// Number of owners in the file: threads, and LWPs with open spans.
    pub owners: u64,
    /// Number of owners for which the file has no room.
    pub left_out: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// An open file, read from its beginning to its end.
#[derive(Debug)]
pub struct CarriedFile {
    path: PathBuf,
    file: BufReader<File>,
    at: u64,
    lwps: CarriedLwps,
    payload: Vec<u8>,
    /// Number of bytes of the payload that have been read.
    read: usize,
    /// The contents of the last packet.
    end: Option<(u64, u64)>,
}

/// Writes to `out`, an empty file, what is known after some parts of a trace. The input is these parts, and the file
/// `before`, which contains what is known before them. At most `most_bytes` are written; owners for which there is no
/// room are counted.
///
/// Memory is needed only for the owners of which the parts have events. If `before` is damaged, it is read up to the
/// damage.
///
/// # Errors
/// If a part is not a user trace, or a file cannot be read or written.
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

/// Packets of these owners, which lived at the tick `at`, for a trace that may not contain their creation.
#[cfg(all(feature = "runtime", feature = "drain"))]
pub(crate) fn encode_owners(
    pid: Pid,
    at: Ticks,
    owners: impl Iterator<Item = (CarriedOwner, Carried)>,
) -> Vec<u8> {
    let (mut packets, mut payload) = (Vec::new(), Vec::new());
    let mut flush = |payload: &mut Vec<u8>| {
        if !payload.is_empty() {
            packets.extend(PacketHead::about(PacketKind::CARRIED_THREADS, pid, at).encode(payload));
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

/// An owner, decoded only as far as is needed to copy it.
#[derive(Clone, Copy, Debug)]
struct Encoded {
    owner: CarriedOwner,
    len: usize,
    mounted_on: Lwp,
    has_spans: bool,
}

/// The first owner in these bytes. [`decode`] describes the layout by reading it.
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
    /// Opens a file at its beginning.
    ///
    /// # Errors
    /// If it cannot be read, or does not begin like such a file.
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

    /// The LWPs at the time when the file was written.
    pub fn lwps(&self) -> &CarriedLwps {
        &self.lwps
    }

    /// The next owner; `None` after the last one.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or ends too early.
    pub fn next_owner(&mut self) -> Result<Option<(CarriedOwner, Carried)>, TraceError> {
        if !self.has_more()? {
            return Ok(None);
        }
        let mut cut = Cut::new(&self.payload[self.read..], self.at + self.read as u64);
        let decoded = decode(&mut cut)?;
        self.read = self.payload.len() - cut.left();
        Ok(Some(decoded))
    }

    /// The next owner; `None` after the last one, or where the file is damaged.
    fn peek(&mut self) -> Option<Encoded> {
        let has_more = self.has_more().unwrap_or(false);
        has_more.then(|| first_encoded(&self.payload[self.read..], self.at).ok()).flatten()
    }

    /// The bytes of the owner that `peek` returned.
    fn take(&mut self, owner: Encoded) -> &[u8] {
        let start = self.read;
        self.read += owner.len;
        &self.payload[start..self.read]
    }

    /// Reads the next packet, if the current one has been read to its end. `false` after the last one.
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

    /// Number of owners for which the file had no room. Known when all others have been read.
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

/// The owners up to the end, or to the first one that cannot be read.
impl Iterator for CarriedFile {
    type Item = (CarriedOwner, Carried);

    fn next(&mut self) -> Option<(CarriedOwner, Carried)> {
        self.next_owner().ok().flatten()
    }
}

#[cfg(test)]
mod tests;
