//! One stream of events: packets that are filled in memory and appended to a file.
//!
//! ```text
//!   0        4          20          24                   32
//!   | magic  | uuid[16] | stream_id | stream_instance_id |                            packet header
//!   32                40              48             56            64               72                 80
//!   | timestamp_begin | timestamp_end | content_size | packet_size | packet_seq_num | events_discarded | packet context
//!   80                 (of streams of a CPU: cpu_id u32; of a process: pid i32)
//!   | event | event | …
//! ```
//!
//! Little endian, sizes in bits, no padding: a packet is as long as its content. A file is open only while a packet is
//! written, so any number of streams needs one descriptor.

use std::io::{self, Seek, SeekFrom, Write};

use sigmund_files::Folder;
use sigmund_model::Ticks;

/// A packet is written when it reaches this size, in bytes. Events are not divided, so a packet may be longer.
pub(super) const PACKET: usize = 256 * 1024;

/// `magic` of every packet of events.
const MAGIC: u32 = 0xc1fc_1fc1;
const CONTEXT_AT: usize = 32;
const HEAD: usize = 80;

/// The classes of streams, which differ in the contexts of their packets and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StreamClass {
    /// Kernel events of one CPU.
    Kernel,
    /// User events of one process.
    User,
    /// Kernel events whose CPU is not known.
    Unplaced,
}

impl StreamClass {
    pub(super) const ALL: [StreamClass; 3] = [StreamClass::Kernel, StreamClass::User, StreamClass::Unplaced];

    /// `stream.id` in the metadata.
    pub(super) fn id(self) -> u32 {
        self as u32
    }
}

/// One stream.
#[derive(Debug)]
pub(super) struct PacketStream {
    name: String,
    class: StreamClass,
    /// Number of the stream in its class.
    instance: u64,
    /// The number of the CPU, or the pid of the process.
    owner: Option<i32>,
    /// The packet in progress; empty if there is none.
    packet: Vec<u8>,
    begin: Ticks,
    end: Ticks,
    written: u64,
}

impl PacketStream {
    pub(super) fn new(name: String, class: StreamClass, instance: u64, owner: Option<i32>) -> PacketStream {
        let (begin, end) = (Ticks(0), Ticks(0));
        PacketStream { name, class, instance, owner, packet: Vec::new(), begin, end, written: 0 }
    }

    /// The buffer to which an event at this instant is appended.
    pub(super) fn event(&mut self, tick: Ticks) -> &mut Vec<u8> {
        if self.packet.is_empty() {
            self.packet.resize(HEAD, 0);
            self.packet.extend(self.owner.map(i32::to_le_bytes).iter().flatten());
            self.begin = tick;
        }
        self.end = tick;
        &mut self.packet
    }

    /// Bytes that are buffered.
    pub(super) fn len(&self) -> usize {
        self.packet.len()
    }

    /// Appends the packet to the file, if there is one.
    pub(super) fn flush(&mut self, folder: &Folder, uuid: [u8; 16]) -> io::Result<()> {
        if self.packet.is_empty() {
            return Ok(());
        }
        self.fill_head(uuid);
        // The first packet creates the file; an existing file is an error.
        let made =
            if self.written == 0 { folder.create_file(&self.name) } else { folder.reopen_file(&self.name) };
        let mut file = made?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(&self.packet)?;
        self.written += 1;
        self.packet.clear();
        Ok(())
    }

    fn fill_head(&mut self, uuid: [u8; 16]) {
        let bits = self.packet.len() as u64 * 8;
        let head = &mut self.packet[..HEAD];
        head[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        head[4..20].copy_from_slice(&uuid);
        head[20..24].copy_from_slice(&self.class.id().to_le_bytes());
        head[24..32].copy_from_slice(&self.instance.to_le_bytes());
        // `events_discarded` is 0: a timeline does not contain lost events.
        let context = [self.begin.0, self.end.0, bits, bits, self.written, 0];
        for (slot, number) in head[CONTEXT_AT..].chunks_exact_mut(8).zip(context) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
    }
}
