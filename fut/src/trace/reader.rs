//! Opens a user trace. One pass reads the packet headers; then packets are read on demand, each independently.
//!
//! Damage affects only the damaged packets. A packet with a wrong checksum is dropped and becomes a loss. If a header
//! is invalid, the pass continues at the next `FUTP` with a correct checksum. Time and memory are linear for any input:
//! a [`Search`] gives up when too many headers were wrong, and packets within a damaged packet replace it.

use std::{
    collections::HashMap,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sigmund_model::{ClockDomain, Level, Loss, LossKind, Lwp, Nanos, Pid, Severity, Snapshot, Ticks};

use super::{
    carried::{Carried, CarriedOwner, decode_owners},
    costs::{ProbeCosts, decode_costs},
    declaration::{Declaration, decode_declarations},
    module::{Module, NamedPlace, decode_modules, decode_places},
    packet::{FILE_HEAD_LEN, FILE_MAGIC, PACKET_HEAD_LEN, PacketHead, PacketKind},
    parts::RepeatedMetadata,
    record::Records,
    user_trace_file::{Search, UserTraceFile},
    wire::{Cut, TraceError},
};

/// A process in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its number.
    pub pid: Pid,
    /// Its command name.
    pub name: String,
}

/// An open user trace.
#[derive(Debug)]
pub struct UserTrace {
    source: Arc<UserTraceFile>,
    declarations: Vec<Declaration>,
    processes: Vec<ProcessInfo>,
    modules: Vec<Module>,
    places: Vec<NamedPlace>,
    snapshots: Vec<(ClockDomain, Snapshot)>,
    costs: Vec<(Pid, ProbeCosts)>,
    live: Vec<(CarriedOwner, Carried)>,
    live_at: Option<Ticks>,
    lwps: Vec<LwpPackets>,
    /// The index of each LWP in `lwps`.
    lwp_places: HashMap<(Pid, Lwp), usize>,
    overwritten_lwps: u64,
    unattached_lost: u64,
    metadata: RepeatedMetadata,
    /// Whether earlier parts of the trace were removed.
    begins_later: bool,
    /// Regular losses, that is, what a flight recorder has overwritten.
    notes: Vec<Loss>,
    losses: Vec<Loss>,
}

/// The packets of one LWP, in order.
#[derive(Clone, Debug)]
pub struct LwpPackets {
    /// Its process.
    pub pid: Pid,
    /// The LWP.
    pub lwp: Lwp,
    /// Number of all records lost, as far as that was recorded.
    pub lost: u64,
    /// Whether the trace contains the end of the LWP, or the end of a snapshot of it.
    pub ended: bool,
    /// Number of such ends. It is more than one if several LWPs had this number, or several snapshots were taken.
    pub ends: u32,
    /// Number of packets that a flight recorder has overwritten.
    pub overwritten_packets: u64,
    /// Bytes of records that were in these packets.
    pub overwritten_bytes: u64,
    /// Whether the first packets of the LWP may be in parts of the trace that were removed.
    pub(super) may_begin_later: bool,
    source: Arc<UserTraceFile>,
    packets: Vec<(u64, PacketHead)>,
}

/// One packet, read and checked.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Its header.
    pub head: PacketHead,
    pub(super) payload: Vec<u8>,
}

impl UserTrace {
    /// Whether a file that begins like this is a user trace.
    pub fn is_user_trace(head: &[u8]) -> bool {
        head.starts_with(FILE_MAGIC)
    }

    /// Opens a user trace and reads the headers of its packets.
    ///
    /// # Errors
    /// If the file cannot be read, is not a user trace, or has another version.
    pub fn open(path: &Path) -> Result<UserTrace, TraceError> {
        UserTrace::read(UserTraceFile::open(path)?, false)
    }

    /// Like [`open`](Self::open), from an open file. `path` is used only in messages.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn of_file(path: &Path, file: File) -> Result<UserTrace, TraceError> {
        UserTrace::read(UserTraceFile::of_file(path, file)?, false)
    }

    /// Like [`of_file`](Self::of_file), from the parts of one trace, the oldest first. In messages, `path` is the name
    /// of the whole trace, and each part also has its own name. `begins_later` means that older parts were removed, so
    /// that missing packets before the first one are not a loss.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), for each part; an error if there is no part.
    pub fn of_parts(
        path: &Path,
        parts: Vec<(PathBuf, File)>,
        begins_later: bool,
    ) -> Result<UserTrace, TraceError> {
        if parts.is_empty() {
            let error =
                io::Error::new(io::ErrorKind::InvalidInput, "expected parts of a user trace, found none");
            return Err(TraceError::Io(path.to_path_buf(), error));
        }
        UserTrace::read(UserTraceFile::of_parts(path, parts)?, begins_later)
    }

    fn read(source: UserTraceFile, begins_later: bool) -> Result<UserTrace, TraceError> {
        let source = Arc::new(source);
        let mut trace = UserTrace {
            source: Arc::clone(&source),
            declarations: Vec::new(),
            processes: Vec::new(),
            modules: Vec::new(),
            places: Vec::new(),
            snapshots: Vec::new(),
            costs: Vec::new(),
            live: Vec::new(),
            live_at: None,
            lwps: Vec::new(),
            lwp_places: HashMap::new(),
            overwritten_lwps: 0,
            unattached_lost: 0,
            metadata: RepeatedMetadata::default(),
            begins_later,
            notes: Vec::new(),
            losses: Vec::new(),
        };
        trace.walk()?;
        Ok(trace)
    }

    /// The declared events. Two processes may use the same code for different events: see the order of `Declaration`.
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// The processes that wrote the trace.
    pub fn processes(&self) -> &[ProcessInfo] {
        &self.processes
    }

    /// Executable mappings, in the order in which they were seen.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Spans and traced functions that have their own names.
    pub fn places(&self) -> &[NamedPlace] {
        &self.places
    }

    /// Clock snapshots taken by the program.
    pub fn snapshots(&self) -> &[(ClockDomain, Snapshot)] {
        &self.snapshots
    }

    /// The cost of recording in each process, as far as recorded.
    pub fn costs(&self) -> &[(Pid, ProbeCosts)] {
        &self.costs
    }

    /// The user threads that lived when a snapshot was taken, or when a program's own recording started, with their
    /// names; empty for other traces.
    pub fn live(&self) -> &[(CarriedOwner, Carried)] {
        &self.live
    }

    /// When these threads lived. `None` if the trace does not say it.
    pub fn live_at(&self) -> Option<Ticks> {
        self.live_at
    }

    /// The LWPs that wrote the trace, each with its packets.
    pub fn lwps(&self) -> &[LwpPackets] {
        &self.lwps
    }

    /// What a flight recorder has overwritten together with LWPs that ended. This is a regular loss.
    pub fn notes(&self) -> &[Loss] {
        &self.notes
    }

    /// Number of LWPs of which a flight recorder has overwritten everything.
    pub fn overwritten_lwps(&self) -> u64 {
        self.overwritten_lwps
    }

    /// Number of records lost by threads that had no buffer. They are in no count of an LWP.
    pub fn unattached_lost(&self) -> u64 {
        self.unattached_lost
    }

    /// Missing and damaged parts found by the pass over the headers. Reading packets may find more.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    fn walk(&mut self) -> Result<(), TraceError> {
        let source = Arc::clone(&self.source);
        let mut search = Search::new(&source);
        let mut at = FILE_HEAD_LEN as u64;
        let mut previous = at;
        while at < source.len {
            let here = at;
            match source.head_at(at)? {
                // The checksum of this packet is checked later, when `UserStream` reads it.
                Ok((head, _)) if head.kind == PacketKind::EVENTS => {
                    self.lwp(&head).packets.push((at, head));
                    at += PACKET_HEAD_LEN as u64 + u64::from(head.length);
                }
                Ok((head, _)) => {
                    match source.packet_at(at)? {
                        Ok(packet) if head.kind == PacketKind::LWP_END && head.lwp == Lwp(0) => {
                            self.note_unattached(&packet);
                        }
                        Ok(packet) if head.kind == PacketKind::LWP_END => self.lwp(&packet.head).end(&packet),
                        Ok(packet) => self.read_metadata(&packet, at),
                        Err(loss) => self.losses.push(loss),
                    }
                    at += PACKET_HEAD_LEN as u64 + u64::from(head.length);
                }
                Err(loss) => {
                    // The previous packet may have a damaged length and a wrong checksum. Then the next valid packet
                    // may be inside the range that the previous one claims.
                    let from = if search.is_whole(previous)? { at } else { previous };
                    let next = search.next_whole(from + 1)?;
                    if next.is_some_and(|next| next < at) {
                        self.drop_packet(previous)?;
                    }
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

    /// Drops a damaged packet of records that contains other packets. Those are read instead.
    fn drop_packet(&mut self, at: u64) -> Result<(), TraceError> {
        let Ok((head, crc)) = self.source.head_at(at)? else { return Ok(()) };
        if head.kind == PacketKind::EVENTS
            && self.lwp(&head).packets.pop_if(|(last, _)| *last == at).is_some()
        {
            self.losses.push(self.source.wrong_checksum(at, &head, crc));
        }
        Ok(())
    }

    fn lwp(&mut self, head: &PacketHead) -> &mut LwpPackets {
        let place = *self.lwp_places.entry((head.pid, head.lwp)).or_insert_with(|| {
            self.lwps.push(LwpPackets {
                pid: head.pid,
                lwp: head.lwp,
                lost: 0,
                ended: false,
                ends: 0,
                overwritten_packets: 0,
                overwritten_bytes: 0,
                may_begin_later: self.begins_later,
                source: Arc::clone(&self.source),
                packets: Vec::new(),
            });
            self.lwps.len() - 1
        });
        &mut self.lwps[place]
    }

    fn note_unattached(&mut self, packet: &Packet) {
        let lost = packet.head.lost;
        let [no_memory] = packet.words();
        let why = if no_memory == 1 {
            "no memory for the buffer of an LWP"
        } else {
            "threads without a buffer: more threads at one time than buffers, or records of a signal handler while its \
             thread was given one, or of a thread that was ending"
        };
        self.unattached_lost = self.unattached_lost.saturating_add(lost);
        let detail = format!("{}: {why}", self.source.path.display());
        self.losses.push(Loss { count: Some(lost), ..Loss::new(LossKind::Dropped, Level::User, detail) });
    }

    fn read_metadata(&mut self, packet: &Packet, at: u64) {
        // The drain takes clock snapshots in each part.
        let is_published = packet.head.kind != PacketKind::CLOCKS;
        if self.source.has_parts() && is_published && self.metadata.repeats(self.source.part_of(at), packet) {
            return;
        }
        let payload_at = at + PACKET_HEAD_LEN as u64;
        let done = match packet.head.kind {
            PacketKind::DECLARATIONS => {
                decode_declarations(&packet.payload, payload_at).map(|d| self.declarations.extend(d))
            }
            PacketKind::CLOCKS => {
                decode_clocks(&packet.payload, payload_at).map(|c| self.snapshots.extend(c))
            }
            PacketKind::COSTS => decode_costs(&packet.payload, payload_at)
                .map(|costs| self.costs.push((packet.head.pid, costs))),
            PacketKind::CARRIED_THREADS => {
                let at = Some(packet.head.last_tick).filter(|at| *at > Ticks(0));
                self.live_at = self.live_at.max(at);
                decode_owners(&packet.payload, payload_at).map(|live| self.live.extend(live))
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
                self.overwritten_lwps = self.overwritten_lwps.saturating_add(lwps);
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
        self.ends = self.ends.saturating_add(1);
        [self.overwritten_packets, self.overwritten_bytes] = packet.words();
    }

    /// Takes the count from the last packet with a correct checksum. The headers of later packets may be damaged.
    fn count_lost(&mut self) -> Result<(), TraceError> {
        for (at, _) in self.packets.iter().rev() {
            if let Ok(packet) = self.source.packet_at(*at)? {
                self.lost = self.lost.max(packet.head.lost);
                break;
            }
        }
        Ok(())
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The headers of the packets.
    pub fn heads(&self) -> impl Iterator<Item = &PacketHead> {
        self.packets.iter().map(|(_, head)| head)
    }

    /// Reads the packet at `index`; `None` after the last one.
    ///
    /// # Errors
    /// The outer error means that the file can no longer be read. The inner one is the loss of a damaged packet.
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
    /// The records in the packet.
    pub fn records(&self) -> Records<'_> {
        Records::of(&self.payload)
    }

    /// The first words of the payload; 0 for those that it does not have.
    fn words<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|index| {
            let bytes = self.payload.get(8 * index..).and_then(<[u8]>::first_chunk::<8>);
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        })
    }

    /// The payload from `offset` on.
    pub(super) fn payload_from(&self, offset: usize) -> &[u8] {
        self.payload.get(offset..).unwrap_or(&[])
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
    fn a_truncated_trace_keeps_its_whole_packets_and_reports_what_is_missing() {
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
