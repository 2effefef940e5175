//! Opens a user trace: one walk over the packet heads, then packets on demand, each readable alone.
//!
//! Damage costs what it touches. A packet whose checksum is wrong is dropped and becomes a loss; when a head
//! cannot be read, the walk goes on at the next `FUTP` whose checksum is right.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use sigmund_model::{ClockDomain, Level, Loss, LossKind, Lwp, Nanos, Pid, Severity, Snapshot, Ticks};

use super::{
    declaration::{Declaration, decode_declarations},
    module::{Module, NamedPlace, decode_modules, decode_places},
    packet::{FILE_HEAD_LEN, FILE_MAGIC, PACKET_HEAD_LEN, PACKET_MAGIC, PacketHead, PacketKind, VERSION},
    record::Records,
    wire::{Cut, TraceError},
};

/// No writer makes longer packets; a longer one is damage, not a reason to allocate.
const MAX_PACKET_LEN: u64 = 16 << 20;

/// What a trace says about a process in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Which.
    pub pid: Pid,
    /// Its command name.
    pub name: String,
}

/// A user trace, opened.
#[derive(Debug)]
pub struct UserTrace {
    source: Arc<Source>,
    declarations: Vec<Declaration>,
    processes: Vec<ProcessInfo>,
    modules: Vec<Module>,
    places: Vec<NamedPlace>,
    snapshots: Vec<(ClockDomain, Snapshot)>,
    lwps: Vec<LwpPackets>,
    overwritten_lwps: u64,
    /// What is missing as it should be.
    notes: Vec<Loss>,
    losses: Vec<Loss>,
}

#[derive(Debug)]
struct Source {
    path: PathBuf,
    file: File,
    len: u64,
}

/// The packets of one LWP, in order.
#[derive(Clone, Debug)]
pub struct LwpPackets {
    /// Its process.
    pub pid: Pid,
    /// Itself.
    pub lwp: Lwp,
    /// Records it lost in all, as far as the trace says.
    pub lost: u64,
    /// Whether the trace holds its end, or where a snapshot was taken of it.
    pub ended: bool,
    /// Packets that a flight recorder has overwritten.
    pub overwritten_packets: u64,
    /// Bytes of records that were in them.
    pub overwritten_bytes: u64,
    source: Arc<Source>,
    packets: Vec<(u64, PacketHead)>,
}

/// One packet, read and checked.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Its head.
    pub head: PacketHead,
    payload: Vec<u8>,
}

impl UserTrace {
    /// Whether a file that begins like this is a user trace.
    pub fn is_user_trace(head: &[u8]) -> bool {
        head.starts_with(FILE_MAGIC)
    }

    /// Opens a user trace and walks over its packets.
    ///
    /// # Errors
    /// When the file cannot be read, is no user trace, or is one of another version.
    pub fn open(path: &Path) -> Result<UserTrace, TraceError> {
        let io_error = |error| TraceError::Io(path.to_path_buf(), error);
        let file = File::open(path).map_err(io_error)?;
        let len = file.metadata().map_err(io_error)?.len();
        let source = Arc::new(Source { path: path.to_path_buf(), file, len });
        let mut trace = UserTrace {
            source: Arc::clone(&source),
            declarations: Vec::new(),
            processes: Vec::new(),
            modules: Vec::new(),
            places: Vec::new(),
            snapshots: Vec::new(),
            lwps: Vec::new(),
            overwritten_lwps: 0,
            notes: Vec::new(),
            losses: Vec::new(),
        };
        source.check_head()?;
        trace.walk()?;
        Ok(trace)
    }

    /// The declared events. Two processes may use one code for different events: see `Declaration`'s order.
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// The processes that wrote it.
    pub fn processes(&self) -> &[ProcessInfo] {
        &self.processes
    }

    /// Executable mappings, in the order in which they were seen.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Spans and traced functions that have names of their own.
    pub fn places(&self) -> &[NamedPlace] {
        &self.places
    }

    /// Clock snapshots taken by the program.
    pub fn snapshots(&self) -> &[(ClockDomain, Snapshot)] {
        &self.snapshots
    }

    /// The LWPs that wrote it, each with its packets.
    pub fn lwps(&self) -> &[LwpPackets] {
        &self.lwps
    }

    /// What a flight recorder has overwritten together with LWPs that ended. That is as it should be.
    pub fn notes(&self) -> &[Loss] {
        &self.notes
    }

    /// LWPs of which a flight recorder has overwritten everything.
    pub fn overwritten_lwps(&self) -> u64 {
        self.overwritten_lwps
    }

    /// What the walk found missing or damaged. Reading packets may find more.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    fn walk(&mut self) -> Result<(), TraceError> {
        let source = Arc::clone(&self.source);
        let mut at = FILE_HEAD_LEN as u64;
        let mut previous = at;
        while at < source.len {
            let here = at;
            match source.head_at(at)? {
                // Its checksum is for later: `UserStream` reads the packet when its turn comes.
                Ok((head, _)) if head.kind == PacketKind::EVENTS => {
                    self.lwp(&head).packets.push((at, head));
                    at += PACKET_HEAD_LEN as u64 + u64::from(head.length);
                }
                Ok((head, _)) => {
                    match source.packet_at(at)? {
                        Ok(packet) if head.kind == PacketKind::LWP_END => self.lwp(&packet.head).end(&packet),
                        Ok(packet) => self.read_metadata(&packet, at),
                        Err(loss) => self.losses.push(loss),
                    }
                    at += PACKET_HEAD_LEN as u64 + u64::from(head.length);
                }
                Err(loss) => {
                    // A damaged length led here: the packet before has a wrong checksum, and the next good one
                    // may stand inside of what it claimed.
                    let from = if source.packet_at(previous)?.is_err() { previous } else { at };
                    let next = source.next_good_packet(from + 1)?;
                    let skipped = next.unwrap_or(source.len).saturating_sub(from);
                    let detail = format!("{}; {skipped} bytes skipped", loss.detail);
                    self.losses.push(Loss { detail, ..loss });
                    at = next.unwrap_or(source.len);
                }
            }
            previous = here;
        }
        self.lwps.iter_mut().try_for_each(LwpPackets::count_lost)
    }

    fn lwp(&mut self, head: &PacketHead) -> &mut LwpPackets {
        let found = self.lwps.iter().position(|l| l.pid == head.pid && l.lwp == head.lwp);
        let place = found.unwrap_or_else(|| {
            self.lwps.push(LwpPackets {
                pid: head.pid,
                lwp: head.lwp,
                lost: 0,
                ended: false,
                overwritten_packets: 0,
                overwritten_bytes: 0,
                source: Arc::clone(&self.source),
                packets: Vec::new(),
            });
            self.lwps.len() - 1
        });
        &mut self.lwps[place]
    }

    fn read_metadata(&mut self, packet: &Packet, at: u64) {
        let payload_at = at + PACKET_HEAD_LEN as u64;
        let done = match packet.head.kind {
            PacketKind::DECLARATIONS => {
                decode_declarations(&packet.payload, payload_at).map(|d| self.declarations.extend(d))
            }
            PacketKind::CLOCKS => {
                decode_clocks(&packet.payload, payload_at).map(|c| self.snapshots.extend(c))
            }
            PacketKind::MODULES => {
                decode_modules(&packet.payload, payload_at, packet.head.pid).map(|m| self.modules.extend(m))
            }
            PacketKind::PLACES => {
                decode_places(&packet.payload, payload_at, packet.head.pid).map(|p| self.places.extend(p))
            }
            PacketKind::OVERWRITTEN => {
                let [lwps, packets, bytes, lost] = packet.words();
                let detail = format!(
                    "{}: {lwps} LWPs that ended, {packets} packets of them with {bytes} bytes of records; \
                     they had lost {lost} records",
                    self.source.path.display()
                );
                self.overwritten_lwps += lwps;
                self.notes.push(Loss {
                    severity: Severity::Note,
                    ..Loss::new(LossKind::Overwritten, Level::User, detail)
                });
                Ok(())
            }
            PacketKind::PROCESS => Cut::new(&packet.payload, payload_at)
                .text("process name")
                .map(|name| self.processes.push(ProcessInfo { pid: packet.head.pid, name })),
            kind => Err(Cut::new(&[], at).bad("a packet of a known kind".into(), format!("kind {}", kind.0))),
        };
        if let Err(TraceError::Bad { at, expected, found, .. }) = done {
            self.losses.push(self.source.damage(at, &expected, &found));
        }
    }
}

/// Clock snapshots as the payload of a packet of kind `CLOCKS`.
#[cfg(feature = "shm")]
pub(crate) fn encode_clocks(snapshots: &[(ClockDomain, Snapshot)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (domain, snapshot) in snapshots {
        super::wire::push_text(&mut out, domain.name());
        for word in [snapshot.before.0, snapshot.after.0, snapshot.ns.0] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    out
}

fn decode_clocks(payload: &[u8], at: u64) -> Result<Vec<(ClockDomain, Snapshot)>, TraceError> {
    let mut cut = Cut::new(payload, at);
    let mut snapshots = Vec::new();
    while !cut.is_empty() {
        let name = cut.text("clock name")?;
        let before = Ticks(cut.u64("clock snapshot")?);
        let after = Ticks(cut.u64("clock snapshot")?);
        let ns = Nanos(cut.u64("clock snapshot")?);
        if let Some(domain) = ClockDomain::from_name(&name) {
            snapshots.push((domain, Snapshot { before, after, ns }));
        }
    }
    Ok(snapshots)
}

impl LwpPackets {
    fn end(&mut self, packet: &Packet) {
        self.lost = self.lost.max(packet.head.lost);
        self.ended = true;
        [self.overwritten_packets, self.overwritten_bytes] = packet.words();
    }

    /// The count in the last packet whose checksum is right: the heads of the others may be damaged.
    fn count_lost(&mut self) -> Result<(), TraceError> {
        for (at, _) in self.packets.iter().rev() {
            if let Ok(packet) = self.source.packet_at(*at)? {
                self.lost = self.lost.max(packet.head.lost);
                break;
            }
        }
        Ok(())
    }

    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The heads of the packets, as the walk read them.
    pub fn heads(&self) -> impl Iterator<Item = &PacketHead> {
        self.packets.iter().map(|(_, head)| head)
    }

    /// Reads the packet at `index`; `None` behind the last.
    ///
    /// # Errors
    /// The outer one when the file cannot be read any more; the inner one is the loss of a damaged packet.
    pub fn packet(&self, index: usize) -> Option<io::Result<Result<Packet, Loss>>> {
        let (at, _) = self.packets.get(index)?;
        Some(self.source.packet_at(*at).map_err(io::Error::other))
    }

    /// Name of the file, for messages.
    pub fn path(&self) -> &Path {
        &self.source.path
    }
}

impl Packet {
    /// Its records.
    pub fn records(&self) -> Records<'_> {
        Records::of(&self.payload)
    }

    /// The first words of its payload; 0 where it has none.
    fn words<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|index| {
            let bytes = self.payload.get(8 * index..).and_then(<[u8]>::first_chunk::<8>);
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        })
    }

    /// Its payload from `offset` on.
    pub(super) fn payload_from(&self, offset: usize) -> &[u8] {
        self.payload.get(offset..).unwrap_or(&[])
    }
}

impl Source {
    fn check_head(&self) -> Result<(), TraceError> {
        let bad = |at, expected: String, found: String| TraceError::Bad {
            file: self.path.clone(),
            at,
            expected,
            found,
        };
        let mut head = vec![0; FILE_HEAD_LEN.min(self.len as usize)];
        self.read(0, &mut head)?;
        if !head.starts_with(FILE_MAGIC) || head.len() < FILE_HEAD_LEN {
            return Err(bad(
                0,
                "a user trace (\"FUTTRACE\")".into(),
                format!("{:?}", String::from_utf8_lossy(&head)),
            ));
        }
        let version = Cut::new(&head[8..], 8).u32("version")?;
        if version != VERSION {
            return Err(bad(8, format!("version {VERSION}"), format!("version {version}")));
        }
        Ok(())
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), TraceError> {
        self.file.read_exact_at(into, at).map_err(|error| TraceError::Io(self.path.clone(), error))
    }

    /// The head at `at`, if it is one and its packet fits into the file.
    fn head_at(&self, at: u64) -> Result<Result<(PacketHead, u32), Loss>, TraceError> {
        let left = self.len - at;
        let mut bytes = [0; PACKET_HEAD_LEN];
        if left < PACKET_HEAD_LEN as u64 {
            let found = format!("{left} bytes to the end of the file");
            return Ok(Err(self.truncation(at, "a packet head of 64 bytes", &found)));
        }
        self.read(at, &mut bytes)?;
        let (head, crc) = match PacketHead::parse(&bytes, at) {
            Ok(parsed) => parsed,
            Err(TraceError::Bad { expected, found, .. }) => {
                return Ok(Err(self.damage(at, &expected, &found)));
            }
            Err(error) => return Err(error),
        };
        let length = u64::from(head.length);
        if length > left - PACKET_HEAD_LEN as u64 {
            let found = format!("{} to the end of the file", left - PACKET_HEAD_LEN as u64);
            return Ok(Err(self.truncation(at, &format!("a packet of {length} bytes"), &found)));
        }
        if length > MAX_PACKET_LEN {
            let expected = format!("a packet of at most {MAX_PACKET_LEN} bytes");
            return Ok(Err(self.damage(at, &expected, &length.to_string())));
        }
        Ok(Ok((head, crc)))
    }

    fn packet_at(&self, at: u64) -> Result<Result<Packet, Loss>, TraceError> {
        let (head, crc) = match self.head_at(at)? {
            Ok(parsed) => parsed,
            Err(loss) => return Ok(Err(loss)),
        };
        let mut bytes = vec![0; PACKET_HEAD_LEN + head.length as usize];
        self.read(at, &mut bytes)?;
        if !PacketHead::checks(&bytes, crc) {
            let loss = self.damage(at, &format!("a packet with checksum {crc:08x}"), "another checksum");
            let (from, to) = (Some(head.first_tick), Some(head.last_tick));
            return Ok(Err(Loss { lwp: Some(head.lwp), from, to, ..loss }));
        }
        bytes.drain(..PACKET_HEAD_LEN);
        Ok(Ok(Packet { head, payload: bytes }))
    }

    fn next_good_packet(&self, from: u64) -> Result<Option<u64>, TraceError> {
        let mut at = from;
        let mut window = vec![0; 1 << 16];
        while at < self.len {
            let len = window.len().min((self.len - at) as usize);
            self.read(at, &mut window[..len])?;
            let magics = window[..len].windows(4).enumerate().filter(|(_, w)| *w == PACKET_MAGIC);
            for (place, _) in magics {
                if self.packet_at(at + place as u64)?.is_ok() {
                    return Ok(Some(at + place as u64));
                }
            }
            // Windows overlap by three bytes, so that no magic falls between two.
            at += if len > 3 && at + (len as u64) < self.len { len as u64 - 3 } else { len as u64 };
        }
        Ok(None)
    }

    fn damage(&self, at: u64, expected: &str, found: &str) -> Loss {
        let detail = format!("{}: at byte {at}: expected {expected}, found {found}", self.path.display());
        Loss::new(LossKind::Damaged, Level::User, detail)
    }

    fn truncation(&self, at: u64, expected: &str, found: &str) -> Loss {
        Loss { kind: LossKind::Truncated, ..self.damage(at, expected, found) }
    }
}

#[cfg(test)]
mod tests {
    use sigmund_model::Thread;

    use super::*;
    use crate::trace::{PacketFlags, RecordHead, file_head};

    fn packet(sequence: u64, records: u64) -> Vec<u8> {
        let first = 1000 * sequence + 1;
        let head = RecordHead { code: 1, words: 1, flags: 0, cpu: 0 }.to_word();
        let payload: Vec<u8> =
            (0..records).flat_map(|i| [first + i, head, i]).flat_map(u64::to_le_bytes).collect();
        PacketHead {
            kind: PacketKind::EVENTS,
            flags: PacketFlags::default(),
            length: 0,
            pid: Pid(10),
            lwp: Lwp(11),
            sequence,
            first_tick: Ticks(first),
            thread: Some(Thread(5)),
            lost: 0,
            last_tick: Ticks(first + records - 1),
        }
        .encode(&payload)
    }

    fn opened(bytes: &[u8]) -> Result<UserTrace, TraceError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        UserTrace::open(file.path())
    }

    fn three_packets() -> Vec<u8> {
        [file_head().to_vec(), packet(0, 3), packet(1, 4), packet(2, 5)].concat()
    }

    fn records_read(trace: &UserTrace) -> usize {
        let read = |lwp: &LwpPackets| -> usize {
            (0..lwp.len()).filter_map(|i| lwp.packet(i)?.unwrap().ok()).map(|p| p.records().count()).sum()
        };
        trace.lwps().iter().map(read).sum()
    }

    #[test]
    fn each_packet_is_readable_alone() {
        let trace = opened(&three_packets()).unwrap();
        let lwp = &trace.lwps()[0];
        let middle = lwp.packet(1).unwrap().unwrap().unwrap();
        assert_eq!((middle.head.sequence, middle.head.thread), (1, Some(Thread(5))));
        assert_eq!(middle.records().map(|r| r.tick.0).collect::<Vec<_>>(), [1001, 1002, 1003, 1004]);
    }

    #[test]
    fn a_truncated_trace_keeps_its_whole_packets_and_says_what_is_missing() {
        let bytes = three_packets();
        for len in FILE_HEAD_LEN..bytes.len() {
            let trace = opened(&bytes[..len]).unwrap();
            let ends = [FILE_HEAD_LEN, FILE_HEAD_LEN + 64 + 72, FILE_HEAD_LEN + 64 + 72 + 64 + 96];
            let whole = [0, 3, 7][ends.iter().filter(|e| **e <= len).count() - 1];
            assert_eq!(records_read(&trace), whole, "cut at {len}");
            assert_eq!(trace.losses().is_empty(), ends.contains(&len), "cut at {len}");
        }
        for len in 0..FILE_HEAD_LEN {
            assert!(opened(&bytes[..len]).unwrap_err().to_string().contains("FUTTRACE"), "cut at {len}");
        }
    }

    #[test]
    fn a_flipped_bit_costs_one_packet_at_most() {
        let bytes = three_packets();
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match opened(&flipped) {
                Ok(trace) => assert!(records_read(&trace) >= 7, "bit {bit}: {}", records_read(&trace)),
                Err(error) => assert!(bit < 96, "bit {bit}: {error}"),
            }
        }
    }
}
