//! The drain's side of a ring: taking packets and releasing them.

use std::{ops::Deref, sync::atomic::Ordering};

use sigmund_model::{Thread, Ticks};

use super::{
    super::platform::{self, PACKET_HEAD_LEN, PACKET_LEN},
    Ring, RingState,
    records::{committed_prefix, keep_committed},
};
use crate::trace::{PacketFlags, PacketHead, PacketKind};

/// A packet taken by the drain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The header of the packet, as it is written to the file.
    pub(crate) head: PacketHead,
    /// Reserved bytes, including those of holes.
    pub(crate) reserved: u64,
    /// Committed records.
    pub(crate) records: u64,
    /// Records that were reserved and never committed.
    pub(crate) holes: u64,
}

/// The consumer of a ring in discard mode. Packets are taken in order, each once.
pub(crate) struct Consumer<'arena> {
    ring: Ring<'arena>,
}

impl<'arena> Deref for Consumer<'arena> {
    type Target = Ring<'arena>;

    fn deref(&self) -> &Ring<'arena> {
        &self.ring
    }
}

impl<'arena> Ring<'arena> {
    /// The consumer of this ring.
    ///
    /// # Safety
    /// As long as the consumer is used, the ring has no other consumer.
    pub(crate) unsafe fn consumer(self) -> Consumer<'arena> {
        Consumer { ring: self }
    }
}

impl Consumer<'_> {
    /// The number of the next packet to take.
    pub(crate) fn next_to_take(&self) -> u64 {
        self.control().released.load(Ordering::Relaxed)
    }

    /// Takes the next packet of a live producer, and copies its records to `to`. `None` if the packet cannot be taken
    /// yet (rule 7).
    pub(crate) fn take_closed(&mut self, to: &mut [u8]) -> Option<Taken> {
        let sequence = self.next_to_take();
        if sequence >= self.position().0 {
            return None;
        }
        let taken = self.copy_packet(sequence, self.closed_end(sequence)?, to);
        (taken.holes == 0).then_some(taken)
    }

    /// Takes the next packet of an ended producer (rule 8).
    pub(crate) fn take_left(&mut self, to: &mut [u8]) -> Taken {
        let sequence = self.next_to_take();
        self.copy_packet(sequence, self.last_end(sequence), to)
    }

    /// Copies the records of the next packet, up to the first one that is not committed. The packet is not taken, and
    /// its producer continues (rule 8a). When the packet is taken later, it begins with the same records, unchanged.
    pub(crate) fn copy_begun(&self, to: &mut [u8]) -> Option<Taken> {
        let sequence = self.next_to_take();
        if sequence > self.position().0 {
            return None;
        }
        let (head, to) = self.copy_words_of(sequence, self.last_end(sequence), to);
        let kept = committed_prefix(to);
        let head = PacketHead { length: kept.len as u32, last_tick: Ticks(kept.last_tick), ..head };
        Some(Taken { head, reserved: kept.len as u64, records: kept.records, holes: 0 })
    }

    /// Fills the taken packet with zeros, and releases it to the producer (rule 7).
    pub(crate) fn release(&mut self) {
        let sequence = self.next_to_take();
        self.head(sequence).label.store(0, Ordering::Relaxed);
        // SAFETY: rule 7: the producer has left the packet, or has ended, and this is the only consumer.
        unsafe { self.wipe(sequence) };
        // Release: pairs with the Acquire in `make_room`. The value was written by another process and is not trusted.
        self.control().released.store(sequence.wrapping_add(1), Ordering::Release);
    }

    /// Frees the ring, after all packets of an ended producer were taken.
    pub(crate) fn give_back(self) {
        self.set_state(RingState::Free);
    }
}

impl Ring<'_> {
    /// The end of the records in a packet that the cursor has left; `None` while it is not known (rule 4).
    fn closed_end(&self, sequence: u64) -> Option<usize> {
        // Acquire: pairs with the Release in `make_room`.
        let end = self.head(sequence).end.load(Ordering::Acquire) as usize;
        (PACKET_HEAD_LEN..=PACKET_LEN).contains(&end).then_some(end)
    }

    /// An offset after which nothing is reserved in a packet.
    pub(super) fn last_end(&self, sequence: u64) -> usize {
        let (current, offset) = self.position();
        let open = if current == sequence { offset as usize } else { PACKET_LEN };
        self.closed_end(sequence).unwrap_or(open).clamp(PACKET_HEAD_LEN, PACKET_LEN)
    }

    /// Copies the records of a packet up to `end`, and keeps the committed ones.
    pub(super) fn copy_packet(&self, sequence: u64, end: usize, to: &mut [u8]) -> Taken {
        let (head, to) = self.copy_words_of(sequence, end, to);
        let kept = keep_committed(to, head.first_tick.0);
        let flags = if kept.holes > 0 { PacketFlags::UNFINISHED } else { PacketFlags::default() };
        let head = PacketHead { flags, length: kept.len as u32, last_tick: Ticks(kept.last_tick), ..head };
        Taken { head, reserved: to.len() as u64, records: kept.records, holes: kept.holes }
    }

    /// Copies the words of a packet up to `end`, and its header, whose length and last tick are not filled in.
    fn copy_words_of<'t>(&self, sequence: u64, end: usize, to: &'t mut [u8]) -> (PacketHead, &'t mut [u8]) {
        // The value was written by another process and is not trusted.
        let to = &mut to[..(end - PACKET_HEAD_LEN) / 8 * 8];
        if !to.is_empty() {
            // SAFETY: `end` is inside the packet (`closed_end`, `last_end`), which is mapped.
            unsafe { platform::copy_words(self.word_at(sequence, PACKET_HEAD_LEN), to) };
        }
        let head = self.head(sequence);
        let head = PacketHead {
            kind: PacketKind::EVENTS,
            flags: PacketFlags::default(),
            length: 0,
            pid: self.pid(),
            lwp: self.lwp(),
            sequence,
            first_tick: Ticks(head.first_tick.load(Ordering::Relaxed)),
            thread: Thread::from_switch(head.thread.load(Ordering::Relaxed)),
            lost: head.lost.load(Ordering::Relaxed),
            last_tick: Ticks(0),
        };
        (head, to)
    }
}
