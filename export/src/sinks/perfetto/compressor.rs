//! Compresses batches on another thread while the next batch is filled. Compression takes a fifth to a third of the
//! time.

use std::{
    io::{self, Write},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use flate2::{Compress, Compression, FlushCompress, Status};

use super::{
    schema::{packet, trace},
    wire::Wire,
};

/// The largest number of pending batches. With only one, the two threads would often wait for each other.
const AHEAD: usize = 4;

/// A thread that compresses one batch at a time. It ends when this is dropped.
pub(super) struct Compressor {
    batches: SyncSender<Vec<u8>>,
    compressed: Receiver<io::Result<Compressed>>,
    /// The number of batches that were sent to the thread, and whose packets are not yet written.
    pending: usize,
}

/// A packet with a compressed batch.
struct Compressed {
    packet: Vec<u8>,
    /// The memory of the batch, without contents.
    emptied: Vec<u8>,
}

impl Compressor {
    /// Starts the thread. It compresses with this zlib level.
    pub(super) fn start(level: u32) -> io::Result<Compressor> {
        let (batches, to_compress) = sync_channel::<Vec<u8>>(AHEAD);
        let (done, compressed) = sync_channel(AHEAD);
        let mut deflate = Compress::new(Compression::new(level), true);
        let compress_all = move || {
            for batch in to_compress {
                if done.send(compress(&mut deflate, batch)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("compressor".into()).spawn(compress_all)?;
        Ok(Compressor { batches, compressed, pending: 0 })
    }

    /// Sends a batch to the thread, and replaces it by an empty one. If too many batches are pending, it first writes
    /// the packet of the earliest one.
    pub(super) fn send(&mut self, batch: &mut Vec<u8>, out: &mut impl Write) -> io::Result<()> {
        let emptied = if self.pending == AHEAD { self.write_next(out)? } else { Vec::new() };
        self.batches.send(std::mem::replace(batch, emptied)).map_err(|_| has_ended())?;
        self.pending += 1;
        Ok(())
    }

    /// Writes the packets of the last batches.
    pub(super) fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        while self.pending > 0 {
            self.write_next(out)?;
        }
        Ok(())
    }

    /// Writes the packet of the earliest batch that is pending, and returns its memory.
    fn write_next(&mut self, out: &mut impl Write) -> io::Result<Vec<u8>> {
        self.pending -= 1;
        let Compressed { packet, emptied } = self.compressed.recv().map_err(|_| has_ended())??;
        out.write_all(&packet)?;
        Ok(emptied)
    }
}

fn has_ended() -> io::Error {
    io::Error::other("the thread that compresses has ended")
}

/// Compresses a batch to one packet with a complete zlib stream.
fn compress(deflate: &mut Compress, mut batch: Vec<u8>) -> io::Result<Compressed> {
    let (mut deflated, mut written) = (Vec::new(), Vec::new());
    deflate_all(deflate, &batch, &mut deflated)?;
    batch.clear();
    written.message(trace::PACKET, |inner| inner.counted(packet::COMPRESSED_PACKETS, &deflated));
    Ok(Compressed { packet: written, emptied: batch })
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
