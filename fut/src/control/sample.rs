//! How many records of each event are in the buffers: a sample, taken off the path of the probes, which count nothing.

use std::collections::HashMap;

use crate::shm::Arena;

/// By code, as it was declared.
pub(super) struct Counts(HashMap<u32, u64>);

/// Packets of each ring that are looked at, the newest: 1 ms of copying at most.
#[cfg(feature = "drain")]
const PACKETS: u64 = 64;

/// No program declares more; what else is there was read while its packet was changing.
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
