//! Packets that are not yet written; they are compressed in batches.

use std::io::{self, Write};

use super::{compressor::Compressor, schema::trace, wire::Wire};

/// Size of a batch before compression, in bytes. The viewer decompresses a batch in memory.
pub(super) const BATCH: usize = 256 << 10;

/// Packets that are not yet written.
pub(super) struct Batch {
    packets: Vec<u8>,
    compressor: Option<Compressor>,
}

impl Batch {
    /// Compresses with this zlib level; `None`: uncompressed.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn new(level: Option<u32>) -> io::Result<Batch> {
        let compressor = level.map(Compressor::start).transpose()?;
        Ok(Batch { packets: Vec::with_capacity(BATCH + (BATCH >> 2)), compressor })
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

    /// Writes the buffered packets. If they are compressed, they are written with a later batch, or when it
    /// [finishes](Self::finish).
    pub(super) fn send(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.packets.is_empty() {
            return Ok(());
        }
        if let Some(compressor) = &mut self.compressor {
            return compressor.send(&mut self.packets, out);
        }
        out.write_all(&self.packets)?;
        self.packets.clear();
        Ok(())
    }

    /// Writes the batches that are still being compressed.
    pub(super) fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.compressor.as_mut().map_or(Ok(()), |compressor| compressor.finish(out))
    }
}
