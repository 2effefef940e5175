//! The header of a packet, and the header of a file.

use sigmund_model::{Lwp, Pid, Thread, Ticks};

use super::wire::{Cut, TraceError};

/// First bytes of a user trace.
pub const FILE_MAGIC: &[u8; 8] = b"FUTTRACE";
/// Version of the layout. A reader refuses all other versions.
pub const VERSION: u32 = 1;
/// Length of the header of a file.
pub const FILE_HEAD_LEN: usize = 16;
/// First bytes of a packet.
pub const PACKET_MAGIC: [u8; 4] = *b"FUTP";
/// Length of the header of a packet.
pub const PACKET_HEAD_LEN: usize = 64;

/// The header of a file.
pub fn file_head() -> [u8; FILE_HEAD_LEN] {
    let mut head = [0; FILE_HEAD_LEN];
    head[..8].copy_from_slice(FILE_MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head
}

/// The kind of a packet's contents. This is a number with names, not a closed list: unknown kinds are skipped and
/// counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketKind(pub u16);

impl PacketKind {
    /// Records of one LWP.
    pub const EVENTS: PacketKind = PacketKind(1);
    /// Declarations of events; see [`encode_declarations`](super::encode_declarations).
    pub const DECLARATIONS: PacketKind = PacketKind(2);
    /// Clock snapshots: `{u32 length, name} {u64 before, u64 after, u64 ns}`, repeated.
    pub const CLOCKS: PacketKind = PacketKind(3);
    /// The process: its command name as a text.
    pub const PROCESS: PacketKind = PacketKind(4);
    /// The end of an LWP's packets. The header has the final count of lost records. If there is a payload, it is two
    /// words: the number of packets that a flight recorder has overwritten, and the bytes of records in them.
    ///
    /// With LWP 0, which no LWP has: the final count of records lost by threads that had no buffer. The payload is a
    /// word that is 1 if a buffer could not be created for lack of memory.
    pub const LWP_END: PacketKind = PacketKind(5);
    /// The addresses of the process's code; see [`encode_modules`](super::encode_modules).
    pub const MODULES: PacketKind = PacketKind(6);
    /// LWPs of which a flight recorder has overwritten everything. Four words: the numbers of LWPs, of packets, of
    /// bytes of records, and of records that these LWPs had lost.
    pub const OVERWRITTEN: PacketKind = PacketKind(7);
    /// Spans and traced functions by name; see [`encode_places`](super::encode_places).
    pub const PLACES: PacketKind = PacketKind(8);
    /// The costs of recording, measured at its start; see [`encode_costs`](super::encode_costs).
    pub const COSTS: PacketKind = PacketKind(9);
    /// The LWPs, in the file of facts from removed parts ([`carry_over`](super::carry_over)).
    pub const CARRIED_LWPS: PacketKind = PacketKind(10);
    /// User threads: in that file, those of the removed parts that still live; in a snapshot, those that lived when it
    /// was taken; in a program's own recording, those that lived when it started.
    pub const CARRIED_THREADS: PacketKind = PacketKind(11);
    /// The end of that file.
    pub const CARRIED_END: PacketKind = PacketKind(12);
}

/// Flags of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFlags(pub u16);

impl PacketFlags {
    /// The writer of the packet ended before it was finished. Records that were reserved and not committed are left
    /// out.
    pub const UNFINISHED: PacketFlags = PacketFlags(1);
    /// For an `LWP_END`: this is the end of a snapshot, and the LWP continued.
    pub const SNAPSHOT: PacketFlags = PacketFlags(2);
    /// The rest of a packet whose first records are in the previous part of the trace. Both have the same sequence
    /// number.
    pub const CONTINUED: PacketFlags = PacketFlags(4);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: PacketFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The parsed header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHead {
    /// The kind of the contents.
    pub kind: PacketKind,
    /// Its flags.
    pub flags: PacketFlags,
    /// Bytes of payload after the header.
    pub length: u32,
    /// The process that wrote the packet.
    pub pid: Pid,
    /// The LWP that wrote the packet; 0 for packets about the whole process.
    pub lwp: Lwp,
    /// The sequence number of the packet among those of the LWP, from 0.
    pub sequence: u64,
    /// When the packet was begun.
    pub first_tick: Ticks,
    /// The user thread that was mounted then.
    pub thread: Option<Thread>,
    /// Number of records that the LWP had lost from its start until then.
    pub lost: u64,
    /// The largest tick in the packet.
    pub last_tick: Ticks,
}

impl PacketHead {
    /// The header of a packet about the whole process, written at this tick.
    pub fn about(kind: PacketKind, pid: Pid, now: Ticks) -> PacketHead {
        PacketHead {
            kind,
            flags: PacketFlags::default(),
            length: 0,
            pid,
            lwp: Lwp(0),
            sequence: 0,
            first_tick: now,
            thread: None,
            lost: 0,
            last_tick: now,
        }
    }

    /// The bytes of a packet with this header and payload. `length` and the checksum are filled in.
    pub fn encode(&self, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; PACKET_HEAD_LEN];
        packet.extend_from_slice(payload);
        self.encode_before(&mut packet);
        packet
    }

    /// Writes this header to the first 64 bytes of `packet`, which already contains the payload.
    ///
    /// # Panics
    /// If there are fewer than 64 bytes.
    pub(crate) fn encode_before(&self, packet: &mut [u8]) {
        let length = (packet.len() - PACKET_HEAD_LEN) as u32;
        let thread = self.thread.map_or(0, |t| t.0);
        let words = [self.sequence, self.first_tick.0, thread, self.lost, self.last_tick.0];
        packet[..4].copy_from_slice(&PACKET_MAGIC);
        packet[4..6].copy_from_slice(&self.kind.0.to_le_bytes());
        packet[6..8].copy_from_slice(&self.flags.0.to_le_bytes());
        for (place, number) in [(8, length), (12, 0), (16, self.pid.0), (20, self.lwp.0)] {
            packet[place..place + 4].copy_from_slice(&number.to_le_bytes());
        }
        for (place, word) in (24..).step_by(8).zip(words) {
            packet[place..place + 8].copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32fast::hash(packet);
        packet[12..16].copy_from_slice(&crc.to_le_bytes());
    }

    /// Parses the header at the start of `bytes`, which are at offset `at` in their file. Also returns the checksum.
    ///
    /// # Errors
    /// If there are fewer than 64 bytes, or they do not begin with `FUTP`.
    pub fn parse(bytes: &[u8], at: u64) -> Result<(PacketHead, u32), TraceError> {
        let mut cut = Cut::new(bytes, at);
        let magic = cut.bytes(4, "packet head")?;
        if magic != PACKET_MAGIC {
            return Err(Cut::new(bytes, at).bad("a packet (\"FUTP\")".into(), format!("{magic:02x?}")));
        }
        let kind_and_flags = cut.u32("packet head")?;
        let length = cut.u32("packet head")?;
        let crc = cut.u32("packet head")?;
        let head = PacketHead {
            kind: PacketKind(kind_and_flags as u16),
            flags: PacketFlags((kind_and_flags >> 16) as u16),
            length,
            pid: Pid(cut.u32("packet head")?),
            lwp: Lwp(cut.u32("packet head")?),
            sequence: cut.u64("packet head")?,
            first_tick: Ticks(cut.u64("packet head")?),
            thread: Thread::from_switch(cut.u64("packet head")?),
            lost: cut.u64("packet head")?,
            last_tick: Ticks(cut.u64("packet head")?),
        };
        Ok((head, crc))
    }

    /// Whether `packet`, header and payload, has the checksum `crc`.
    pub fn checks(packet: &[u8], crc: u32) -> bool {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&packet[..12]);
        hasher.update(&[0; 4]);
        hasher.update(&packet[16..]);
        hasher.finalize() == crc
    }
}
