//! Inspects a ring while its producer runs: how full it is, and a sample of its records.

use std::sync::atomic::Ordering;

use sigmund_model::Thread;

use super::Ring;

/// The fill level of a ring at the time of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    /// The mounted user thread.
    pub(crate) mounted: Option<Thread>,
    /// Number of packets with records that are not drained, including the current one.
    pub(crate) in_use: u64,
    /// Number of packets of the ring.
    pub(crate) capacity: u64,
    /// Number of packets begun so far by the LWP of the ring.
    pub(crate) packets: u64,
    /// Bytes of records written so far by the LWP of the ring.
    pub(crate) bytes: u64,
    /// Packets overwritten by newer ones; 0 in discard mode.
    pub(crate) overwritten: u64,
}

impl Ring<'_> {
    /// The fill level of the ring.
    pub(crate) fn fill(&self) -> Fill {
        let control = self.control();
        let (sequence, _) = self.position();
        let packets = sequence + 1;
        let overwrites = control.overwrites.load(Ordering::Relaxed) != 0;
        let taken = if overwrites {
            packets.saturating_sub(self.count)
        } else {
            control.released.load(Ordering::Relaxed)
        };
        Fill {
            mounted: Thread::from_switch(control.mounted.load(Ordering::Relaxed)),
            in_use: packets.saturating_sub(taken).min(self.count),
            capacity: self.count,
            packets,
            bytes: self.bytes(),
            overwritten: if overwrites { taken } else { 0 },
        }
    }

    /// Calls `code` with the code of each record in the last packets, at most `most` packets. A packet that is taken or
    /// overwritten meanwhile is left out. `place` is a buffer for one packet.
    #[cfg(feature = "drain")]
    pub(crate) fn sample(&self, most: u64, place: &mut [u8], mut code: impl FnMut(u32)) {
        use crate::trace::{RECORD_HEAD_LEN, RecordHead};

        use super::{super::platform::fence, RingState};

        if !matches!(self.state(), RingState::Live | RingState::Ended) {
            return;
        }
        let (newest, _) = self.position();
        let released = self.control().released.load(Ordering::Relaxed);
        let oldest = (newest + 1).saturating_sub(most.min(self.count)).max(released);
        for sequence in oldest..=newest {
            let label = &self.head(sequence).label;
            // Acquire: pairs with the Release in `write_head`.
            if label.load(Ordering::Acquire) != sequence + 1 {
                continue;
            }
            let len = self.copy_packet(sequence, self.last_end(sequence), place).head.length as usize;
            // Acquire: pairs with the Release fence in `reopen_packet`, as in `snapshot_packet`. In discard mode the
            // drain has no such fence. So a packet that the drain takes at the same time may be counted in part, which
            // is acceptable in a sample.
            fence(Ordering::Acquire);
            if label.load(Ordering::Relaxed) != sequence + 1 {
                continue;
            }
            let mut rest = &place[..len];
            while let Some((_, behind_tick)) = rest.split_first_chunk::<8>() {
                let Some(head) = behind_tick.first_chunk::<8>() else { break };
                let head = RecordHead::from_word(u64::from_le_bytes(*head));
                code(head.code);
                rest = rest.get(head.record_len().max(RECORD_HEAD_LEN)..).unwrap_or_default();
            }
        }
    }
}
