//! Number of records of each event in the buffers. Probes do not count their records. They are counted when this is
//! requested, in a sample of the packets.

use std::collections::HashMap;

use crate::shm::Arena;

/// Records by event code.
pub(super) struct Counts(HashMap<u32, u64>);

/// Number of the newest packets of each ring that are sampled, at most. Copying them takes 1 ms at most.
#[cfg(feature = "drain")]
const PACKETS: u64 = 64;

/// Limit of distinct codes. No program declares more. Packets that change while they are read can have any codes,
/// though.
#[cfg(feature = "drain")]
const MOST_CODES: usize = 1 << 16;

#[cfg(feature = "drain")]
pub(super) fn records_in_buffers(arena: &Arena) -> Option<Counts> {
    let mut counts = HashMap::new();
    let mut place = vec![0; crate::shm::PACKET_LEN];
    for ring in arena.rings() {
        ring.sample(PACKETS, &mut place, |code| {
            let (code, _) = crate::trace::split_code(code);
            if counts.len() < MOST_CODES || counts.contains_key(&code) {
                *counts.entry(code).or_default() += 1;
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
    pub(super) fn of(&self, code: u32) -> u64 {
        self.0.get(&code).copied().unwrap_or(0)
    }
}
