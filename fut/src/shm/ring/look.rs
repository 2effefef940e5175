//! Inspects a ring while its producer runs: how full it is, and a sample of its records.

use std::sync::atomic::Ordering;

use sigmund_model::Thread;

use super::Ring;

/// How full a ring is, a moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    /// The user thread that is mounted.
    pub(crate) mounted: Option<Thread>,
    /// Packets with records that are not drained, including the one that is being filled.
    pub(crate) in_use: u64,
    /// Packets that there are.
    pub(crate) capacity: u64,
    /// Packets that its LWP has begun so far.
    pub(crate) packets: u64,
    /// Bytes of records that it has written so far.
    pub(crate) bytes: u64,
    /// Packets that newer ones have taken the place of; none in discard mode.
    pub(crate) overwritten: u64,
}

impl Ring<'_> {
    /// How full it is.
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

    /// Gives the codes of the records in the last packets, at most `most` of them. A packet that is taken or overwritten
    /// meanwhile is left out; `place` is room for one.
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
            // Acquire: pairs with the Release fence in `reopen_packet`, as in `snapshot_packet`. In discard mode the drain
            // has none, and a packet that it takes just now may be counted in part: this is a sample.
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
