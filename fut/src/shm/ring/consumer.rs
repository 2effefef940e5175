//! The drain's side of a ring: what can be taken, and giving packets back.

use std::sync::atomic::Ordering;

use sigmund_model::{Thread, Ticks};

use super::{OFFSET_MASK, PACKET_LEN, Ring};
use crate::trace::{PACKET_HEAD_LEN, PacketFlags, PacketHead, PacketKind, RECORD_HEAD_LEN, RecordHead};

/// What the drain took out of a packet.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) head: PacketHead,
    pub(crate) payload: Vec<u8>,
    /// Records that were begun and never committed.
    pub(crate) holes: u64,
}

impl Ring<'_> {
    /// The packet that is filled now.
    pub(crate) fn cursor_sequence(&self) -> u64 {
        // Acquire: pairs with the Release in `make_room`.
        self.control().cursor.load(Ordering::Acquire) >> 32
    }

    /// The next packet to take.
    pub(crate) fn next_to_take(&self) -> u64 {
        self.control().released.load(Ordering::Relaxed)
    }

    /// Where the records of a packet that the cursor has left end, if that is known (rule 7).
    pub(crate) fn closed_end(&self, sequence: u64) -> Option<usize> {
        // Acquire: pairs with the Release in `make_room`.
        let end = self.head(sequence).end.load(Ordering::Acquire) as usize;
        (PACKET_HEAD_LEN..=PACKET_LEN).contains(&end).then_some(end)
    }

    /// Where records may stand in the packet of a producer that is dead (rule 8).
    pub(crate) fn last_end(&self, sequence: u64) -> usize {
        let cursor = self.control().cursor.load(Ordering::Acquire);
        let open = if cursor >> 32 == sequence { (cursor & OFFSET_MASK) as usize } else { PACKET_LEN };
        self.closed_end(sequence).unwrap_or(open).min(PACKET_LEN)
    }

    /// Copies the committed records of a packet up to `end`. Without `final_`, `None` if one is not committed yet.
    pub(crate) fn copy_packet(&self, sequence: u64, end: usize, final_: bool) -> Option<Taken> {
        let mut payload = Vec::with_capacity(end.saturating_sub(PACKET_HEAD_LEN));
        let (mut at, mut holes, mut last_tick) = (PACKET_HEAD_LEN, 0, 0);
        while at + RECORD_HEAD_LEN <= end {
            // Acquire: pairs with the Release of the tick in `probe::emit`; the rest of the record is seen.
            let tick = self.word(sequence, at).load(Ordering::Acquire);
            let head = self.word(sequence, at + 8).load(Ordering::Relaxed);
            if tick == 0 && !final_ {
                return None;
            }
            if tick == 0 && head == 0 {
                // Reserved and nothing written: how long it is, only the next thing that is not zero can say.
                holes += u64::from(at == PACKET_HEAD_LEN || !self.was_zero(sequence, at - 8));
                at += 8;
                continue;
            }
            let len = RecordHead::from_word(head).record_len();
            if at + len > end {
                holes += 1;
                break;
            }
            if tick == 0 {
                holes += 1;
            } else {
                last_tick = last_tick.max(tick);
                for offset in (at..at + len).step_by(8) {
                    payload.extend_from_slice(
                        &self.word(sequence, offset).load(Ordering::Relaxed).to_le_bytes(),
                    );
                }
            }
            at += len;
        }
        let head = self.head(sequence);
        let head = PacketHead {
            kind: PacketKind::EVENTS,
            flags: if holes > 0 { PacketFlags::UNFINISHED } else { PacketFlags::default() },
            length: payload.len() as u32,
            pid: self.pid(),
            lwp: self.lwp(),
            sequence,
            first_tick: Ticks(head.first_tick.load(Ordering::Relaxed)),
            thread: Thread::from_switch(head.thread.load(Ordering::Relaxed)),
            lost: head.lost.load(Ordering::Relaxed),
            last_tick: Ticks(last_tick),
        };
        Some(Taken { head, payload, holes })
    }

    /// Fills a packet that was taken with zeros, and gives it back to the producer (rule 7).
    pub(crate) fn release(&self, sequence: u64) {
        self.clear(sequence);
        // Release: pairs with the Acquire in `make_room`.
        self.control().released.store(sequence + 1, Ordering::Release);
    }

    /// Fills a packet with zeros, for the next user of the ring.
    pub(crate) fn clear(&self, sequence: u64) {
        // SAFETY: the packet is mapped and by rule 7 (or because its producer is dead) nobody else uses it.
        unsafe { self.packet(sequence).write_bytes(0, PACKET_LEN) };
    }

    fn was_zero(&self, sequence: u64, at: usize) -> bool {
        self.word(sequence, at).load(Ordering::Relaxed) == 0
    }
}
