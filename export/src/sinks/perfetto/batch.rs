//! Packets that are not yet written; they are compressed in batches.

use std::io::{self, Write};

use flate2::{Compress, Compression, FlushCompress, Status};

use super::{
    schema::{packet, trace},
    wire::Wire,
};

/// Size of a batch before compression, in bytes. The viewer decompresses a batch in memory.
pub(super) const BATCH: usize = 256 << 10;

/// Packets that are not yet written.
pub(super) struct Batch {
    packets: Vec<u8>,
    deflate: Option<Compress>,
    deflated: Vec<u8>,
    written: Vec<u8>,
}

impl Batch {
    /// Compresses with this zlib level; `None`: uncompressed.
    pub(super) fn new(level: Option<u32>) -> Batch {
        Batch {
            packets: Vec::with_capacity(BATCH + (BATCH >> 2)),
            deflate: level.map(|level| Compress::new(Compression::new(level), true)),
            deflated: Vec::new(),
            written: Vec::new(),
        }
    }

    /// Adds a packet.
    #[inline]
    pub(super) fn packet(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        self.packets.message(trace::PACKET, fill);
    }

    /// Bytes that are buffered.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Writes the buffered packets.
    pub(super) fn send(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.packets.is_empty() {
            return Ok(());
        }
        let Some(deflate) = &mut self.deflate else {
            out.write_all(&self.packets)?;
            self.packets.clear();
            return Ok(());
        };
        self.deflated.clear();
        deflate_all(deflate, &self.packets, &mut self.deflated)?;
        self.packets.clear();
        self.written.clear();
        let deflated = &self.deflated;
        self.written.message(trace::PACKET, |inner| inner.counted(packet::COMPRESSED_PACKETS, deflated));
        out.write_all(&self.written)
    }
}

/// Appends one complete zlib stream.
fn deflate_all(deflate: &mut Compress, bytes: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
    deflate.reset();
    loop {
        to.reserve(bytes.len() / 2 + 1024);
        let rest = &bytes[deflate.total_in() as usize..];
        let status = deflate.compress_vec(rest, to, FlushCompress::Finish).map_err(io::Error::other)?;
        if status == Status::StreamEnd {
            return Ok(());
        }
    }
}
