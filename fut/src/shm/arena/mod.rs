//! The arena: the shared memory that contains all rings of a process, and its metadata.
//!
//! ```text
//! arena  0      4 KiB                4 KiB + 16 KiB        1 MiB
//!        | header | states of the rings | metadata packets | ring 0 | …
//!
//! header 0          8         12    16              20      24           28     32             40
//!        | FUTARENA | version | pid | packets/ring  | rings | rings used | full | metadata len | unattached |
//!
//!        48     52         56              64                   72
//!        | mode | reported | overwritten LWPs | their packets | their bytes     | their lost     |
//! ```
//! The creator of the memory writes the version, the number of packets and rings, and the mode; the process writes the
//! rest. The magic word is written last, after the process and its metadata are described. Before that, the arena must
//! not be drained.
//!
//! A recorder does not trust what a process writes here. It stores the geometry and the mode before the process gets
//! the memory. Every other word is read atomically, only once for each decision, and bounded before it is used. Bytes
//! are copied out with atomic loads, and examined in the copy.

mod error;
mod geometry;
mod memory;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use sigmund_model::Pid;

pub use self::{
    error::ArenaError,
    geometry::{Geometry, Mode},
};
#[cfg(feature = "probes")]
use super::ring::Producer;
use super::{mapping::Mapping, platform::PACKET_LEN, ring::Ring};

const MAGIC: u64 = u64::from_le_bytes(*b"FUTARENA");
const VERSION: u32 = 3;
const STATES_START: usize = 4096;
pub(crate) const MAX_RINGS: u32 = 4096;
const METADATA_START: usize = STATES_START + 4 * MAX_RINGS as usize;
const RINGS_START: usize = 1 << 20;

#[repr(C)]
struct ArenaHeader {
    magic: AtomicU64,
    version: AtomicU32,
    pid: AtomicU32,
    packets: AtomicU32,
    rings: AtomicU32,
    rings_used: AtomicU32,
    /// 1 when there is no memory for more rings.
    full: AtomicU32,
    metadata_len: AtomicU64,
    unattached_lost: AtomicU64,
    /// 0 for `Mode::Discard`, 1 for `Mode::Overwrite`.
    mode: AtomicU32,
    /// 1 when a child of the process has reported that it (the child) is not recorded.
    child_reported: AtomicU32,
    overwritten_lwps: AtomicU64,
    overwritten_packets: AtomicU64,
    overwritten_bytes: AtomicU64,
    overwritten_lost: AtomicU64,
}

/// What was lost in overwrite mode because the rings of ended LWPs were reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverwrittenLwps {
    /// Number of LWPs whose rings were reused.
    pub lwps: u64,
    /// Packets that these LWPs had written.
    pub packets: u64,
    /// Bytes of records in these packets.
    pub bytes: u64,
    /// Records that these LWPs had lost before.
    pub lost: u64,
}

/// The mapped arena of a process.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    geometry: Geometry,
    mode: Mode,
    /// The process.
    pid: AtomicU32,
    /// Whether the arena was seen to be published.
    published: AtomicBool,
    path: PathBuf,
    /// Whether a drain has claimed the arena through this value.
    #[cfg_attr(not(feature = "drain"), expect(dead_code, reason = "only drains claim it"))]
    drained: AtomicBool,
}

impl Arena {
    fn header(&self) -> &ArenaHeader {
        header_of(&self.mapping)
    }

    /// The process that the arena belongs to.
    pub fn pid(&self) -> Pid {
        Pid(self.pid.load(Ordering::Relaxed))
    }

    /// The file of the arena, or a substitute for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(feature = "probes")]
    pub(crate) fn set_path(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// The size of the arena.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The mode of the rings.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The rings that have been used so far.
    pub fn rings(&self) -> impl Iterator<Item = Ring<'_>> {
        // Acquire: pairs with the AcqRel in `use_ring`.
        let used = self.header().rings_used.load(Ordering::Acquire).min(self.geometry.rings);
        (0..used).map(|index| self.ring(index))
    }

    pub(crate) fn ring(&self, index: u32) -> Ring<'_> {
        assert!(index < self.geometry.rings);
        let start = RINGS_START + self.geometry.ring_len() * index as usize;
        let control = self.mapping.at(start).cast();
        let packets = self.mapping.at(start + PACKET_LEN).cast();
        let state = self.mapping.at(STATES_START + 4 * index as usize).cast();
        // SAFETY: the ring is inside the mapping, which is valid as long as `self`; it starts at a multiple of 64 KiB,
        // and its number of packets was checked to be a power of two.
        unsafe { Ring::from_raw(state, control, packets, u64::from(self.geometry.packets)) }
    }

    /// Returns `true` once, to the first drain.
    #[cfg(feature = "drain")]
    pub(crate) fn claim_for_drain(&self) -> bool {
        !self.drained.swap(true, Ordering::Relaxed)
    }

    /// Number of records emitted by LWPs for which there was no ring.
    pub fn unattached_lost(&self) -> u64 {
        self.header().unattached_lost.load(Ordering::Relaxed)
    }

    /// Whether an LWP got no ring because there was no memory for one.
    pub fn is_out_of_memory(&self) -> bool {
        self.header().full.load(Ordering::Relaxed) != 0
    }

    /// What was lost by reuse of rings, in overwrite mode.
    pub fn overwritten_lwps(&self) -> OverwrittenLwps {
        let header = self.header();
        OverwrittenLwps {
            lwps: header.overwritten_lwps.load(Ordering::Relaxed),
            packets: header.overwritten_packets.load(Ordering::Relaxed),
            bytes: header.overwritten_bytes.load(Ordering::Relaxed),
            lost: header.overwritten_lost.load(Ordering::Relaxed),
        }
    }

    /// The published metadata packets after the first `from` bytes.
    pub fn metadata(&self, from: usize) -> Vec<u8> {
        // Acquire: pairs with the Release in `push_metadata`.
        let len = self.header().metadata_len.load(Ordering::Acquire) as usize;
        let len = len.min(RINGS_START - METADATA_START);
        if from >= len {
            return Vec::new();
        }
        let mut bytes = vec![0; len - from];
        self.mapping.copy(METADATA_START + from, &mut bytes);
        bytes
    }

    /// Frees the memory of all records and metadata. The control blocks stay, because a forked process may still be
    /// about to use them.
    #[cfg(feature = "drain")]
    pub(crate) fn discard_records(&self) {
        self.mapping.discard(METADATA_START, RINGS_START - METADATA_START);
        for start in
            (0..self.geometry.rings as usize).map(|ring| RINGS_START + self.geometry.ring_len() * ring)
        {
            self.mapping.discard(start + PACKET_LEN, self.geometry.ring_len() - PACKET_LEN);
        }
    }
}

/// Operations of the traced process.
#[cfg(feature = "probes")]
impl Arena {
    /// Takes a free ring, and allocates its memory. Returns it in the state `Busy`, with its number.
    pub(crate) fn use_ring(&self) -> Option<(u32, Producer<'_>)> {
        use super::ring::RingState;

        let header = self.header();
        let full = header.full.load(Ordering::Relaxed) != 0;
        let tried = if full { header.rings_used.load(Ordering::Relaxed) } else { self.geometry.rings };
        for ring_index in 0..tried {
            let ring = self.ring(ring_index);
            if ring.state() != RingState::Free {
                continue;
            }
            let Some(producer) = ring.take_free() else { continue };
            let start = RINGS_START + self.geometry.ring_len() * ring_index as usize;
            if !self.mapping.prefault(start, self.geometry.ring_len()) {
                // Frees the part of the ring that was allocated.
                self.mapping.discard(start, self.geometry.ring_len());
                header.full.store(1, Ordering::Relaxed);
                producer.give_back();
                break;
            }
            // AcqRel: pairs with the Acquire in `rings`.
            header.rings_used.fetch_max(ring_index + 1, Ordering::AcqRel);
            return Some((ring_index, producer));
        }
        if self.mode == Mode::Overwrite { self.take_oldest_ended() } else { None }
    }

    /// Takes the ring of the LWP that ended first, in overwrite mode.
    fn take_oldest_ended(&self) -> Option<(u32, Producer<'_>)> {
        use super::ring::RingState;

        loop {
            let ended = (0..).zip(self.rings()).filter(|(_, ring)| ring.state() == RingState::Ended);
            let (number, oldest) = ended.min_by_key(|(_, ring)| ring.ended_at())?;
            // If another thread has taken it first, the next one is tried.
            if let Some(oldest) = oldest.take_ended() {
                let (header, (sequence, _)) = (self.header(), oldest.position());
                let bytes = oldest.bytes();
                header.overwritten_lwps.fetch_add(1, Ordering::Relaxed);
                header.overwritten_packets.fetch_add(sequence + 1, Ordering::Relaxed);
                header.overwritten_bytes.fetch_add(bytes, Ordering::Relaxed);
                header.overwritten_lost.fetch_add(oldest.lost(), Ordering::Relaxed);
                return Some((number, oldest));
            }
        }
    }

    /// Whether this is the first child of the process to report that it is not recorded.
    pub(crate) fn claim_child_report(&self) -> bool {
        self.header().child_reported.swap(1, Ordering::Relaxed) == 0
    }

    pub(crate) fn count_unattached(&self) {
        self.header().unattached_lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Publishes a packet of metadata. `false` if there is no room for it. There must be only one caller at a time.
    pub(crate) fn push_metadata(&self, packet: &[u8]) -> bool {
        let len = &self.header().metadata_len;
        let from = len.load(Ordering::Relaxed) as usize;
        if METADATA_START + from + packet.len() > RINGS_START {
            return false;
        }
        let to = self.mapping.at(METADATA_START + from).as_ptr();
        // SAFETY: the bytes are inside the metadata part by the check above, and after the published part, so nothing
        // reads them.
        unsafe { std::ptr::copy_nonoverlapping(packet.as_ptr(), to, packet.len()) };
        // Release: pairs with the Acquire in `metadata`.
        len.store((from + packet.len()) as u64, Ordering::Release);
        true
    }
}

fn header_of(mapping: &Mapping) -> &ArenaHeader {
    assert!(mapping.len() >= size_of::<ArenaHeader>());
    // SAFETY: a mapping is aligned to a page and longer than a header; all fields of the header are atomic.
    unsafe { mapping.at(0).cast::<ArenaHeader>().as_ref() }
}
