//! A snapshot of an arena in overwrite mode: a user trace of the last packets of every LWP, taken while the LWPs
//! continue.

use std::{fs::File, io, path::Path};

use sigmund_model::Ticks;

use super::{DrainSummary, append_clocks, append_unattached, append_words, end_of, output::Output};
use crate::{
    clock,
    shm::{Arena, Mode, Ring, ring::SnapshotOfRing},
    trace::{PacketFlags, PacketHead, PacketKind, file_head},
};

#[cfg(all(feature = "probes", feature = "runtime"))]
use crate::trace::{Carried, CarriedOwner, encode_owners};

/// How often a ring is copied, at most, if its LWP changes it meanwhile.
const TRIES: usize = 4;

/// Writes the current contents of the rings of `arena` to a new user trace at `path`. The program continues
/// undisturbed. Any thread or process that has the arena mapped may call this.
///
/// # Errors
/// If the arena is in discard mode (then its drain writes the trace), if the file exists, or if the file cannot be
/// written. In the last case it is removed.
pub fn snapshot(arena: &Arena, path: &Path) -> io::Result<DrainSummary> {
    check_mode(arena)?;
    let written = snapshot_to(arena, File::create_new(path)?);
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}

/// Like [`snapshot`], to an open, empty file.
///
/// # Errors
/// If the arena is in discard mode, or the file cannot be written. In the latter case the file ends with a whole
/// packet.
pub fn snapshot_to(arena: &Arena, file: File) -> io::Result<DrainSummary> {
    check_mode(arena)?;
    write_all(arena, &mut Output::new(file), &[])
}

/// Like [`snapshot_to`], for the arena of this process. It adds the names of the live user threads, because the events
/// of their creation may be overwritten.
#[cfg(feature = "probes")]
pub(crate) fn snapshot_of_own(arena: &Arena, file: File) -> io::Result<DrainSummary> {
    check_mode(arena)?;
    // This comes before the rings are copied: for everything that is created or ends from here on, they have an event.
    let live = live_threads(arena);
    write_all(arena, &mut Output::new(file), &live)
}

/// The names of the live user threads, as packets.
#[cfg(all(feature = "probes", feature = "runtime"))]
pub(super) fn live_threads(arena: &Arena) -> Vec<u8> {
    let facts = |live: crate::LiveThread| {
        let facts = Carried { name: live.name.into_boxed_str(), ..Carried::default() };
        (CarriedOwner::Thread(live.thread), facts)
    };
    let live = crate::live_threads();
    encode_owners(arena.pid(), Ticks(clock::ticks()), live.into_iter().map(facts))
}

#[cfg(all(feature = "probes", not(feature = "runtime")))]
pub(super) fn live_threads(_: &Arena) -> Vec<u8> {
    Vec::new()
}

fn check_mode(arena: &Arena) -> io::Result<()> {
    if arena.mode() == Mode::Overwrite {
        return Ok(());
    }
    let why = "expected an arena in overwrite mode, found one in discard mode: its drain writes the trace";
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

fn write_all(arena: &Arena, out: &mut Output, live: &[u8]) -> io::Result<DrainSummary> {
    let mut summary = DrainSummary::default();
    out.append(&file_head());
    out.append(&arena.metadata(0));
    out.append(live);
    append_last(arena, out, &mut summary);
    append_unattached(arena, out, &mut summary);
    append_clocks(arena.pid(), out);
    out.flush();
    out.failure()?;
    Ok(DrainSummary { bytes: out.bytes(), ..summary })
}

/// Appends the last packets of all LWPs, and counts what was overwritten.
pub(super) fn append_last(arena: &Arena, out: &mut Output, summary: &mut DrainSummary) {
    for ring in arena.rings() {
        if let Some(last) = (0..TRIES).find_map(|_| ring.snapshot()) {
            append_ring(&ring, &last, out, summary);
        }
    }
    let gone = arena.overwritten_lwps();
    summary.count_overwritten(gone.packets, gone.bytes);
    summary.count_lost(gone.lost);
    if gone.lwps > 0 {
        let head = PacketHead::about(PacketKind::OVERWRITTEN, arena.pid(), Ticks(clock::ticks()));
        append_words(head, &[gone.lwps, gone.packets, gone.bytes, gone.lost], out);
    }
}

fn append_ring(ring: &Ring<'_>, last: &SnapshotOfRing, out: &mut Output, summary: &mut DrainSummary) {
    for (taken, at) in &last.packets {
        let records = &last.bytes[*at..][..taken.head.length as usize];
        out.payload()[..records.len()].copy_from_slice(records);
        out.push(&taken.head, taken.records);
        summary.add(taken);
    }
    summary.count_overwritten(last.overwritten, last.overwritten_bytes);
    summary.count_lost(last.lost);
    let flags = if last.ended { PacketFlags::default() } else { PacketFlags::SNAPSHOT };
    let end = PacketHead { flags, lost: last.lost, ..end_of(ring) };
    // By now the ring may belong to another LWP.
    let newest = last.packets.last().map_or(end, |(taken, _)| taken.head);
    let end = PacketHead { lwp: newest.lwp, sequence: newest.sequence, ..end };
    append_words(end, &[last.overwritten, last.overwritten_bytes], out);
}
