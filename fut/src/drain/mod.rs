//! The drain: removes finished packets from an arena, and appends them to a user trace.
//!
//! It runs outside the traced program, or on its own thread in the program. Probes never wait for it: when it is too
//! slow, they count the records that are lost. An arena in overwrite mode is not drained while the program runs, but
//! [`snapshot`] can copy its contents at any time.

mod cuts;
mod output;
mod snapshot;

use std::{
    borrow::Borrow,
    fs::File,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sigmund_model::{Pid, Ticks};

#[cfg(feature = "probes")]
pub(crate) use snapshot::snapshot_of_own;
pub use snapshot::{snapshot, snapshot_to};

pub use crate::handover::{ArenaServer, ProcessArena, Unrecorded, lwps_in_namespace};

use self::{
    cuts::{Cuts, switch_code},
    output::Output,
};
use crate::{
    clock,
    shm::{
        Arena, Mode, Ring, RingState,
        ring::{Consumer, Taken},
    },
    trace::{PacketHead, PacketKind, encode_clocks, file_head},
};

/// Interval between clock snapshots while a program runs. They are needed because NTP changes the rate of some clocks.
const CLOCKS_EVERY: Duration = Duration::from_secs(1);
/// Approximate maximum of packets that one poll takes. The next poll takes the rest.
const MOST_AT_ONCE: usize = 1024;

/// Takes packets out of one arena. `A` is the arena itself, or an owner of it.
#[derive(Debug)]
pub struct Drain<A: Borrow<Arena>> {
    arena: A,
    out: Output,
    path: PathBuf,
    metadata_taken: usize,
    clocks_read: Instant,
    /// The ring at which the next poll starts.
    next_ring: u32,
    /// Packets that are partly written.
    cuts: Cuts,
    summary: DrainSummary,
}

/// Totals of a drain or a snapshot. Every emitted record is counted in `records`, `lost` or `unwritten`, or its bytes
/// are counted in `overwritten_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainSummary {
    /// Packets of events taken.
    pub packets: u64,
    /// Records written to the trace.
    pub records: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Records for which the ring had no room.
    pub lost: u64,
    /// Records that were reserved and never committed, because their LWP was killed while it wrote them. In a snapshot,
    /// records that were just being written.
    pub unfinished: u64,
    /// Records that were taken after writing the trace had failed.
    pub unwritten: u64,
    /// In overwrite mode: packets that were overwritten by newer ones.
    pub overwritten_packets: u64,
    /// Bytes of records in these packets.
    pub overwritten_bytes: u64,
}

/// A file that has only the header of a user trace.
#[derive(Debug)]
pub(crate) struct BegunTrace(Output);

impl BegunTrace {
    /// Writes the header to an open, empty file.
    pub(crate) fn new(file: File) -> io::Result<BegunTrace> {
        let mut out = Output::new(file);
        out.append(&file_head());
        out.flush();
        out.failure()?;
        Ok(BegunTrace(out))
    }
}

/// An error if the arena has had a drain.
fn claim(arena: &Arena) -> io::Result<()> {
    if arena.claim_for_drain() {
        return Ok(());
    }
    let why = "expected an arena without a drain, found one that has already had a drain";
    Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
}

#[cfg(feature = "probes")]
impl<'a> Drain<&'a Arena> {
    /// Drains the arena of this process, in which the session has just started. Adds the names of the user threads that
    /// are older. For everything that is created or ends from here on, the arena has an event.
    pub(crate) fn of_own(arena: &'a Arena, begun: BegunTrace, path: &Path) -> io::Result<Drain<&'a Arena>> {
        claim(arena)?;
        let mut drain = Drain::with(arena, begun, path);
        drain.take_metadata();
        drain.out.append(&snapshot::live_threads(arena));
        Ok(drain)
    }
}

impl<A: Borrow<Arena>> Drain<A> {
    /// Creates a user trace at `path` for the packets of `arena`.
    ///
    /// # Errors
    /// If the file cannot be created, or the arena has already had a drain.
    pub fn new(arena: A, path: &Path) -> io::Result<Drain<A>> {
        Drain::to_file(arena, File::create_new(path)?, path)
    }

    /// Begins a user trace in an open, empty file; `path` is used in messages only.
    ///
    /// # Errors
    /// If the file cannot be written, or the arena has already had a drain. An arena can have only one in its lifetime.
    pub fn to_file(arena: A, file: File, path: &Path) -> io::Result<Drain<A>> {
        claim(arena.borrow())?;
        Ok(Drain::with(arena, BegunTrace::new(file)?, path))
    }

    fn with(arena: A, begun: BegunTrace, path: &Path) -> Drain<A> {
        Drain {
            arena,
            out: begun.0,
            path: path.to_path_buf(),
            metadata_taken: 0,
            clocks_read: Instant::now(),
            next_ring: 0,
            cuts: Cuts::default(),
            summary: DrainSummary::default(),
        }
    }

    /// The process that writes the arena.
    pub fn pid(&self) -> Pid {
        self.arena.borrow().pid()
    }

    /// The arena that is drained.
    pub fn arena(&self) -> &A {
        &self.arena
    }

    /// Path of the user trace.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Totals so far.
    pub fn summary(&self) -> DrainSummary {
        let unwritten = self.out.unwritten();
        let records = self.summary.records - unwritten;
        DrainSummary { bytes: self.out.bytes(), records, unwritten, ..self.summary }
    }

    /// Takes finished packets, and returns their number. If that is not 0, call `poll` again soon. In overwrite mode
    /// there is nothing to take before the end.
    ///
    /// # Errors
    /// If the trace cannot be written. The error is returned only once. Later packets are still taken, and their
    /// records counted.
    pub fn poll(&mut self) -> io::Result<usize> {
        self.take_metadata();
        self.read_clocks();
        let Drain { arena, out, next_ring, cuts, summary, .. } = self;
        let arena: &Arena = (*arena).borrow();
        let mut taken = 0;
        let used = if arena.mode() == Mode::Discard { arena.rings().count() as u32 } else { 0 };
        for _ in 0..used {
            if taken >= MOST_AT_ONCE {
                break;
            }
            let index = *next_ring % used;
            *next_ring = (index + 1) % used;
            let mut ring = consumer(arena.ring(index));
            taken += match ring.state() {
                RingState::Live => take_closed(index, &mut ring, cuts, out, summary),
                RingState::Ended => take_left(index, ring, cuts, out, summary),
                RingState::Free | RingState::Busy => 0,
            };
        }
        // So the records reach the file soon, whatever happens to this process.
        out.flush();
        out.failure()?;
        Ok(taken)
    }

    /// Continues in another open, empty file: the next part of the trace. The part begins with all metadata, so that it
    /// can be read without the earlier parts; [`UserTrace::of_parts`](crate::trace::UserTrace::of_parts) reads all
    /// parts as one trace. All records that are committed by now are in the earlier part, even if their packets are not
    /// full.
    ///
    /// # Errors
    /// If one of the two files cannot be written, as for [`poll`](Drain::poll).
    pub fn next_part(&mut self, file: File, path: &Path) -> io::Result<()> {
        self.take_metadata();
        let Drain { arena, out, cuts, summary, .. } = self;
        let arena: &Arena = (*arena).borrow();
        let metadata = arena.metadata(0);
        if arena.mode() == Mode::Discard {
            take_committed(arena, switch_code(&metadata), cuts, out, summary);
        }
        append_clocks(arena.pid(), out);
        out.next_file(file);
        out.append(&file_head());
        out.append(&metadata);
        append_clocks(arena.pid(), out);
        out.flush();
        self.metadata_taken = metadata.len();
        self.path = path.to_path_buf();
        self.clocks_read = Instant::now();
        self.out.failure()
    }

    /// Takes everything, including packets that are not full. Call this only after the process has ended or stopped
    /// recording.
    ///
    /// # Errors
    /// If the trace cannot be written, and `poll` has not already returned that error.
    pub fn finish(self) -> io::Result<DrainSummary> {
        let (summary, written) = self.close();
        written.map(|()| summary)
    }

    /// Like [`finish`](Drain::finish), but also returns the totals if the trace could not be written completely.
    pub fn close(mut self) -> (DrainSummary, io::Result<()>) {
        self.take_metadata();
        let Drain { arena, out, cuts, summary, .. } = &mut self;
        let arena: &Arena = (*arena).borrow();
        match arena.mode() {
            Mode::Overwrite => snapshot::append_last(arena, out, summary),
            Mode::Discard => (0..)
                .zip(arena.rings().map(consumer))
                .filter(|(_, ring)| matches!(ring.state(), RingState::Live | RingState::Ended))
                .for_each(|(index, ring)| _ = take_left(index, ring, cuts, out, summary)),
        }
        append_unattached(arena, out, summary);
        append_clocks(arena.pid(), out);
        out.flush();
        let written = out.failure();
        (self.summary(), written)
    }

    /// Appends a clock snapshot once a second. Not for a flight recorder, whose trace is written at the end and must
    /// not grow before.
    fn read_clocks(&mut self) {
        let arena: &Arena = self.arena.borrow();
        if arena.mode() == Mode::Discard && self.clocks_read.elapsed() >= CLOCKS_EVERY {
            append_clocks(arena.pid(), &mut self.out);
            self.clocks_read = Instant::now();
        }
    }

    fn take_metadata(&mut self) {
        let packets = self.arena.borrow().metadata(self.metadata_taken);
        self.metadata_taken += packets.len();
        self.out.append(&packets);
    }
}

/// The consumer of a ring in discard mode, in an arena that this drain has claimed.
fn consumer(ring: Ring<'_>) -> Consumer<'_> {
    // SAFETY: `Drain::to_file` has claimed the arena, and uses one ring after the other. A second drain in another
    // process would make both lose records, but not violate memory safety: the words that it writes are not trusted by
    // any reader.
    unsafe { ring.consumer() }
}

/// Takes everything that is committed. Packets that are not full stay with their producers.
fn take_committed(
    arena: &Arena,
    switch: Option<u32>,
    cuts: &mut Cuts,
    out: &mut Output,
    summary: &mut DrainSummary,
) {
    for (index, ring) in (0..).zip(arena.rings()) {
        let mut ring = consumer(ring);
        match ring.state() {
            RingState::Live => {
                take_closed(index, &mut ring, cuts, out, summary);
                if let Some(taken) = cuts.write_begun(index, &ring, switch, out) {
                    summary.add(&taken);
                }
            }
            RingState::Ended => _ = take_left(index, ring, cuts, out, summary),
            RingState::Free | RingState::Busy => {}
        }
    }
}

/// Rule 7 of the ring: takes the packets that the producer has closed and committed.
fn take_closed(
    index: u32,
    ring: &mut Consumer<'_>,
    cuts: &mut Cuts,
    out: &mut Output,
    summary: &mut DrainSummary,
) -> usize {
    // At most one ring's worth at a time, because other rings need their turn.
    let most = ring.count().min(MOST_AT_ONCE as u64);
    for packets in 0..most {
        let Some(taken) = ring.take_closed(out.payload()) else { return packets as usize };
        let taken = cuts.write_taken(index, taken, out);
        ring.release();
        summary.add(&taken);
    }
    most as usize
}

/// Rule 8: takes everything of a producer that has ended. The ring is free afterwards.
fn take_left(
    index: u32,
    mut ring: Consumer<'_>,
    cuts: &mut Cuts,
    out: &mut Output,
    summary: &mut DrainSummary,
) -> usize {
    let first = ring.next_to_take();
    // The cursor was written by another process and is not trusted. At most one ring's worth of packets is left.
    let last = ring.position().0.min(first.saturating_add(ring.count() - 1));
    for sequence in first..=last {
        let mut taken = ring.take_left(out.payload());
        if sequence < last || taken.records > 0 {
            taken = cuts.write_taken(index, taken, out);
        }
        ring.release();
        summary.add(&taken);
    }
    cuts.forget(index);
    summary.count_lost(ring.lost());
    append_words(PacketHead { sequence: last, ..end_of(&ring) }, &[], out);
    ring.give_back();
    (last + 1).saturating_sub(first) as usize
}

impl DrainSummary {
    /// Adds with saturation: the count was written by another process and is not trusted.
    fn count_lost(&mut self, lost: u64) {
        self.lost = self.lost.saturating_add(lost);
    }

    fn count_overwritten(&mut self, packets: u64, bytes: u64) {
        self.overwritten_packets = self.overwritten_packets.saturating_add(packets);
        self.overwritten_bytes = self.overwritten_bytes.saturating_add(bytes);
    }

    fn add(&mut self, taken: &Taken) {
        self.packets += 1;
        self.records += taken.records;
        self.unfinished += taken.holes;
    }
}

/// The packet that ends an LWP.
fn end_of(ring: &Ring<'_>) -> PacketHead {
    let end = PacketHead::about(PacketKind::LWP_END, ring.pid(), Ticks(clock::ticks()));
    PacketHead { lwp: ring.lwp(), lost: ring.lost(), ..end }
}

/// Counts the records of threads without a ring, and appends their number.
fn append_unattached(arena: &Arena, out: &mut Output, summary: &mut DrainSummary) {
    let lost = arena.unattached_lost();
    summary.count_lost(lost);
    if lost > 0 {
        let end = PacketHead::about(PacketKind::LWP_END, arena.pid(), Ticks(clock::ticks()));
        append_words(PacketHead { lost, ..end }, &[u64::from(arena.is_out_of_memory())], out);
    }
}

fn append_words(head: PacketHead, words: &[u64], out: &mut Output) {
    let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    out.append(&head.encode(&payload));
}

fn append_clocks(pid: Pid, out: &mut Output) {
    let clocks = encode_clocks(&clock::snapshots());
    let head = PacketHead::about(PacketKind::CLOCKS, pid, Ticks(clock::ticks()));
    out.append(&head.encode(&clocks));
}
