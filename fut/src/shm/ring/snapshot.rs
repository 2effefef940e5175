//! Snapshots of a ring in overwrite mode, taken while its producer continues (rule 10).

use std::sync::atomic::Ordering;

use sigmund_model::{Pid, Ticks};

use super::{
    super::platform::{PACKET_HEAD_LEN, PACKET_LEN, fence},
    Ring, RingState, Taken,
};
use crate::trace::{PacketFlags, PacketHead, PacketKind};

/// How often a ring is copied, at most, if its producer overwrites all packets meanwhile.
const TRIES: usize = 4;

/// The result of copying one packet.
#[derive(Debug)]
enum Copied {
    Whole(Taken),
    /// A signal handler has overtaken the probe that claimed the packet: the packet has no records and will have none.
    Empty,
    /// The packet was overwritten by a newer one.
    Overwritten,
}

/// The last packets of a ring, copied.
#[derive(Debug, Default)]
pub(crate) struct SnapshotOfRing {
    /// The packets, oldest first and without a gap, including the current one. Each with the offset of its records in
    /// `bytes`.
    pub(crate) packets: Vec<(Taken, usize)>,
    /// The records.
    pub(crate) bytes: Vec<u8>,
    /// Number of packets of the LWP that were overwritten.
    pub(crate) overwritten: u64,
    /// Bytes of records that were in these packets.
    pub(crate) overwritten_bytes: u64,
    /// Number of records lost by then.
    pub(crate) lost: u64,
    /// Whether the LWP has ended.
    pub(crate) ended: bool,
}

impl Ring<'_> {
    /// Copies the current records. `None` if the ring is not in use, or was reassigned meanwhile.
    pub(crate) fn snapshot(&self) -> Option<SnapshotOfRing> {
        let state = self.state();
        if state != RingState::Live && state != RingState::Ended {
            return None;
        }
        let users = self.control().users.load(Ordering::Relaxed);
        let mut snapshot = self.copy_last(state == RingState::Ended);
        // This is needed if the copying thread was off its CPU while the producer wrote a whole ring.
        for _ in 1..TRIES {
            if !snapshot.packets.is_empty() {
                break;
            }
            snapshot = self.copy_last(state == RingState::Ended);
        }
        // Acquire: pairs with the Release fence in `reopen_packet`. If packets of a new LWP were copied, it is visible
        // here that this LWP uses the ring.
        fence(Ordering::Acquire);
        let same = matches!(self.state(), RingState::Live | RingState::Ended)
            && self.control().users.load(Ordering::Relaxed) == users;
        same.then_some(snapshot)
    }

    /// Copies backwards from the newest packet, so that the result has no gap: the producer overwrites the oldest
    /// first.
    fn copy_last(&self, ended: bool) -> SnapshotOfRing {
        let mut snapshot = SnapshotOfRing { ended, lost: self.lost(), ..SnapshotOfRing::default() };
        let (newest, _) = self.position();
        let mut first = newest + 1;
        let mut closed_bytes = 0;
        while first > 0 && newest + 1 - first < self.count {
            let at = snapshot.bytes.len();
            snapshot.bytes.resize(at + PACKET_LEN - PACKET_HEAD_LEN, 0);
            let taken = match self.snapshot_packet(first - 1, &mut snapshot.bytes[at..]) {
                Copied::Whole(taken) => taken,
                Copied::Empty => empty_before(snapshot.packets.last()),
                Copied::Overwritten => break,
            };
            snapshot.bytes.truncate(at + taken.head.length as usize);
            closed_bytes += if first > newest { 0 } else { taken.reserved };
            snapshot.packets.push((taken, at));
            first -= 1;
        }
        snapshot
            .bytes
            .truncate(snapshot.packets.last().map_or(0, |(taken, at)| at + taken.head.length as usize));
        snapshot.packets.reverse();
        snapshot.overwritten = first;
        let before = self.head(newest).bytes_before.load(Ordering::Relaxed);
        snapshot.overwritten_bytes = before.saturating_sub(closed_bytes);
        snapshot
    }

    /// Copies one packet, at or before the cursor.
    fn snapshot_packet(&self, sequence: u64, to: &mut [u8]) -> Copied {
        let label = &self.head(sequence).label;
        // Acquire: pairs with the Release in `write_head` and `reopen_packet`.
        if label.load(Ordering::Acquire) != sequence + 1 {
            let overwritten = self.control().claimed.load(Ordering::Relaxed) > sequence + self.count;
            return if overwritten { Copied::Overwritten } else { Copied::Empty };
        }
        let taken = self.copy_packet(sequence, self.last_end(sequence), to);
        // Acquire: pairs with the Release fence in `reopen_packet`. If a zero or a record of this packet's successor
        // was copied, the cleared label is visible.
        fence(Ordering::Acquire);
        if label.load(Ordering::Relaxed) == sequence + 1 { Copied::Whole(taken) } else { Copied::Overwritten }
    }
}

/// The empty packet before this one.
fn empty_before(next: Option<&(Taken, usize)>) -> Taken {
    let head = next.map_or(PacketHead::about(PacketKind::EVENTS, Pid(0), Ticks(0)), |(taken, _)| taken.head);
    let sequence = head.sequence.saturating_sub(1);
    let head = PacketHead { sequence, length: 0, last_tick: Ticks(0), flags: PacketFlags::default(), ..head };
    Taken { head, reserved: 0, records: 0, holes: 0 }
}
