//! How many records of each event are in the buffers: a sample, taken off the path of the probes, which count nothing.

use crate::{EventInfo, shm::Arena};

/// By code.
pub(super) struct Counts(Vec<u64>);

/// Packets of each ring that are looked at, the newest: 1 ms of copying at most.
#[cfg(feature = "drain")]
const PACKETS: u64 = 64;

/// A code that no program declares is one that was read while its packet was changing.
#[cfg(feature = "drain")]
const MOST_CODES: usize = 1 << 16;

#[cfg(feature = "drain")]
pub(super) fn records_in_buffers(arena: &Arena) -> Option<Counts> {
    let mut counts = Vec::new();
    let mut place = vec![0; crate::shm::PACKET_LEN];
    for ring in arena.rings() {
        ring.sample(PACKETS, &mut place, |code| {
            let code = code as usize;
            if code >= counts.len() && code < MOST_CODES {
                counts.resize(code + 1, 0);
            }
            if let Some(count) = counts.get_mut(code) {
                *count += 1;
            }
        });
    }
    Some(Counts(counts))
}

#[cfg(not(feature = "drain"))]
pub(super) fn records_in_buffers(_: &Arena) -> Option<Counts> {
    None
}

impl Counts {
    pub(super) fn of(&self, event: &EventInfo) -> u64 {
        self.0.get(event.code() as usize).copied().unwrap_or(0)
    }
}
