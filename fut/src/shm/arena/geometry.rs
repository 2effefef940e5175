//! The size of an arena, and the mode of its rings when they are full.

use super::{MAX_RINGS, RINGS_START};
use crate::shm::platform::PACKET_LEN;

/// The size of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of packets of 64 KiB in each ring; a power of two, 2 to 65536.
    pub packets: u32,
    /// Number of rings. This is the maximum number of LWPs at a time; 1 to 4096.
    pub rings: u32,
}

/// What a full ring does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It loses the newest records and counts them. A drain writes the trace while the program runs.
    #[default]
    Discard,
    /// It loses the oldest records (flight recorder). There is no drain; a snapshot copies the contents.
    Overwrite,
}

impl Mode {
    pub(super) fn to_number(self) -> u32 {
        u32::from(self == Mode::Overwrite)
    }

    pub(super) fn from_number(number: u32) -> Option<Mode> {
        match number {
            0 => Some(Mode::Discard),
            1 => Some(Mode::Overwrite),
            _ => None,
        }
    }
}

impl Default for Geometry {
    /// 4 MiB for each of up to 512 LWPs. The fastest probes fill this in 4 ms. Only rings in use take memory.
    fn default() -> Geometry {
        Geometry { packets: 64, rings: 512 }
    }
}

impl Geometry {
    /// The minimum number of packets. In overwrite mode, rule 11 of the ring requires a few more.
    fn least_packets(mode: Mode) -> u32 {
        match mode {
            Mode::Discard => 2,
            Mode::Overwrite => 4,
        }
    }

    pub(super) fn is_valid(self, mode: Mode) -> bool {
        self.packets.is_power_of_two()
            && (Geometry::least_packets(mode)..=65536).contains(&self.packets)
            && (1..=MAX_RINGS).contains(&self.rings)
    }

    /// The valid range, for messages.
    pub(super) fn bounds(mode: Mode) -> String {
        let least = Geometry::least_packets(mode);
        format!("{least} to 65536 packets (a power of two) and 1 to 4096 rings")
    }

    pub(super) fn ring_len(self) -> usize {
        PACKET_LEN * (1 + self.packets as usize)
    }

    /// Bytes of an arena of this size.
    pub(super) fn arena_len(self) -> usize {
        RINGS_START + self.ring_len() * self.rings as usize
    }
}
