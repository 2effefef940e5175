//! The drain's side of a ring: what can be taken, and giving packets back.

use std::sync::atomic::Ordering;

use sigmund_model::{Thread, Ticks};

use super::{
    super::platform::{self, PACKET_HEAD_LEN, PACKET_LEN},
    Ring,
    records::keep_committed,
};
use crate::trace::{PacketFlags, PacketHead, PacketKind};

/// What the drain took out of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// As it will stand in the file.
    pub(crate) head: PacketHead,
    /// Bytes that were reserved, those of holes included.
    pub(crate) reserved: u64,
    /// Committed records.
    pub(crate) records: u64,
    /// Records that were begun and never committed.
    pub(crate) holes: u64,
}

impl Ring<'_> {
    /// The next packet to take.
    pub(crate) fn next_to_take(&self) -> u64 {
        self.control().released.load(Ordering::Relaxed)
    }

    /// Takes packet `sequence` of a live producer, its records to `to`, if it can be taken yet (rule 7).
    pub(crate) fn take_closed(&self, sequence: u64, to: &mut [u8]) -> Option<Taken> {
        if sequence >= self.position().0 {
            return None;
        }
        let taken = self.copy_packet(sequence, self.closed_end(sequence)?, to);
        (taken.holes == 0).then_some(taken)
    }

    /// Takes packet `sequence` of a producer that is dead (rule 8).
    pub(crate) fn take_left(&self, sequence: u64, to: &mut [u8]) -> Taken {
        self.copy_packet(sequence, self.last_end(sequence), to)
    }

    /// Where the records of a packet that the cursor has left end, if that is known (rule 4).
    fn closed_end(&self, sequence: u64) -> Option<usize> {
        // Acquire: pairs with the Release in `make_room`.
        let end = self.head(sequence).end.load(Ordering::Acquire) as usize;
        (PACKET_HEAD_LEN..=PACKET_LEN).contains(&end).then_some(end)
    }

    /// Behind which nothing is reserved in a packet.
    pub(super) fn last_end(&self, sequence: u64) -> usize {
        let (current, offset) = self.position();
        let open = if current == sequence { offset as usize } else { PACKET_LEN };
        self.closed_end(sequence).unwrap_or(open).clamp(PACKET_HEAD_LEN, PACKET_LEN)
    }

    /// Copies the records of a packet up to `end`, and keeps the committed ones.
    pub(super) fn copy_packet(&self, sequence: u64, end: usize, to: &mut [u8]) -> Taken {
        // What a foreign process wrote there is not trusted.
        let to = &mut to[..(end - PACKET_HEAD_LEN) / 8 * 8];
        if !to.is_empty() {
            // SAFETY: `end` is inside the packet (`closed_end`, `last_end`), which is mapped.
            unsafe { platform::copy_words(self.word_at(sequence, PACKET_HEAD_LEN), to) };
        }
        let head = self.head(sequence);
        let kept = keep_committed(to, head.first_tick.load(Ordering::Relaxed));
        let head = PacketHead {
            kind: PacketKind::EVENTS,
            flags: if kept.holes > 0 { PacketFlags::UNFINISHED } else { PacketFlags::default() },
            length: kept.len as u32,
            pid: self.pid(),
            lwp: self.lwp(),
            sequence,
            first_tick: Ticks(head.first_tick.load(Ordering::Relaxed)),
            thread: Thread::from_switch(head.thread.load(Ordering::Relaxed)),
            lost: head.lost.load(Ordering::Relaxed),
            last_tick: Ticks(kept.last_tick),
        };
        Taken { head, reserved: to.len() as u64, records: kept.records, holes: kept.holes }
    }

    /// Fills a packet that was taken with zeros, and gives it back to the producer (rule 7).
    pub(crate) fn release(&self, sequence: u64) {
        self.clear(sequence);
        // Release: pairs with the Acquire in `make_room`.
        self.control().released.store(sequence + 1, Ordering::Release);
    }

    /// Fills a packet with zeros, for the next user of the ring.
    pub(crate) fn clear(&self, sequence: u64) {
        self.head(sequence).label.store(0, Ordering::Relaxed);
        self.wipe(sequence);
    }
}
