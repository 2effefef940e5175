//! The drain: takes finished packets out of an arena, and appends them to a user trace.
//!
//! It runs outside of the traced program, or on a thread of its own in it. Probes never wait for it: when it is too
//! slow, they count what they lose.

use std::{
    borrow::Borrow,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use sigmund_model::{Pid, Ticks};

use crate::{
    clock,
    shm::{Arena, Ring, RingState},
    trace::{PACKET_HEAD_LEN, PacketHead, PacketKind, encode_clocks, file_head},
};

/// Takes packets out of one arena. `A` is the arena, or a way to it.
#[derive(Debug)]
pub struct Drain<A: Borrow<Arena>> {
    arena: A,
    out: BufWriter<File>,
    path: PathBuf,
    metadata_taken: usize,
    summary: DrainSummary,
}

/// What a drain has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainSummary {
    /// Packets of events written.
    pub packets: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Records that found no room.
    pub lost: u64,
    /// Records that were begun and never committed, because their LWP was killed in them.
    pub unfinished: u64,
}

impl<A: Borrow<Arena>> Drain<A> {
    /// Begins a user trace at `path` for the packets of `arena`.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn new(arena: A, path: &Path) -> io::Result<Drain<A>> {
        let mut out = BufWriter::with_capacity(1 << 18, File::create_new(path)?);
        out.write_all(&file_head())?;
        let summary = DrainSummary { bytes: file_head().len() as u64, ..DrainSummary::default() };
        Ok(Drain { arena, out, path: path.to_path_buf(), metadata_taken: 0, summary })
    }

    /// The process that writes the arena.
    pub fn pid(&self) -> Pid {
        self.arena.borrow().pid()
    }

    /// The user trace.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was done so far.
    pub fn summary(&self) -> DrainSummary {
        self.summary
    }

    /// Takes what is finished, and gives the number of packets that was. Call it again soon if it is not 0.
    ///
    /// # Errors
    /// When the trace cannot be written. Packets that were not written are not released.
    pub fn poll(&mut self) -> io::Result<usize> {
        self.take_metadata()?;
        let Drain { arena, out, summary, .. } = self;
        let arena: &Arena = (*arena).borrow();
        let mut taken = 0;
        for ring in arena.rings() {
            taken += match ring.state() {
                RingState::Live => take_closed(&ring, out, summary, false)?,
                RingState::Ended => take_ended(&ring, out, summary)?,
                RingState::Free | RingState::Busy => 0,
            };
        }
        Ok(taken)
    }

    /// Takes everything, the packets that are not full included. Only when the process is dead, or records no more.
    ///
    /// # Errors
    /// When the trace cannot be written.
    pub fn finish(mut self) -> io::Result<DrainSummary> {
        self.take_metadata()?;
        let Drain { arena, out, summary, .. } = &mut self;
        let arena: &Arena = (*arena).borrow();
        for ring in arena.rings() {
            if ring.state() == RingState::Live || ring.state() == RingState::Ended {
                take_ended(&ring, out, summary)?;
            }
        }
        let clocks = encode_clocks(&clock::snapshots());
        let head = PacketHead::about(PacketKind::CLOCKS, arena.pid(), Ticks(clock::ticks()));
        write_packet(out, &head, &clocks, summary)?;
        summary.lost += arena.unattached_lost();
        out.flush()?;
        Ok(self.summary)
    }

    fn take_metadata(&mut self) -> io::Result<()> {
        let packets = self.arena.borrow().metadata(self.metadata_taken);
        self.metadata_taken += packets.len();
        self.summary.bytes += packets.len() as u64;
        self.out.write_all(&packets)
    }
}

/// Rule 7 of the ring: what the producer has left behind and committed.
fn take_closed(
    ring: &Ring<'_>,
    out: &mut impl Write,
    summary: &mut DrainSummary,
    dead: bool,
) -> io::Result<usize> {
    let mut taken = 0;
    while ring.next_to_take() < ring.cursor_sequence() {
        let sequence = ring.next_to_take();
        let end = if dead { Some(ring.last_end(sequence)) } else { ring.closed_end(sequence) };
        let Some(packet) = end.and_then(|end| ring.copy_packet(sequence, end, dead)) else { break };
        summary.unfinished += packet.holes;
        summary.packets += 1;
        write_packet(out, &packet.head, &packet.payload, summary)?;
        ring.release(sequence);
        taken += 1;
    }
    Ok(taken)
}

/// Rule 8: everything of a producer that is gone. The ring is free afterwards.
fn take_ended(ring: &Ring<'_>, out: &mut impl Write, summary: &mut DrainSummary) -> io::Result<usize> {
    let mut taken = take_closed(ring, out, summary, true)?;
    let sequence = ring.next_to_take();
    if let Some(packet) = ring.copy_packet(sequence, ring.last_end(sequence), true)
        && !packet.payload.is_empty()
    {
        summary.unfinished += packet.holes;
        summary.packets += 1;
        write_packet(out, &packet.head, &packet.payload, summary)?;
        taken += 1;
    }
    summary.lost += ring.lost();
    let end = PacketHead::about(PacketKind::LWP_END, ring.pid(), Ticks(clock::ticks()));
    let end = PacketHead { lwp: ring.lwp(), lost: ring.lost(), sequence, ..end };
    write_packet(out, &end, &[], summary)?;
    ring.set_state(RingState::Busy);
    ring.clear(sequence);
    ring.set_state(RingState::Free);
    Ok(taken)
}

fn write_packet(
    out: &mut impl Write,
    head: &PacketHead,
    payload: &[u8],
    summary: &mut DrainSummary,
) -> io::Result<()> {
    summary.bytes += (PACKET_HEAD_LEN + payload.len()) as u64;
    out.write_all(&head.encode(payload))
}
