//! One zstd frame into a buffer that grows with what really comes out, not with what the file promises.

use std::fmt;

use zstd::bulk::Decompressor;

/// The buffer's first size: trace-cmd's chunks are 40 KiB.
const FIRST: usize = 1 << 20;
/// More than any writer makes of one section or chunk; kallsyms are 10 MB.
const MOST: usize = 256 << 20;

/// Decompresses frames, one after the other.
#[derive(Default)]
pub(super) struct ZstdFrames(Decompressor<'static>);

impl ZstdFrames {
    /// Decompresses `frame` into `out`, replacing what was there. `Err` says what was found instead.
    pub(super) fn decompress(&mut self, frame: &[u8], size: u32, out: &mut Vec<u8>) -> Result<(), String> {
        let size = size as usize;
        if size > MOST {
            return Err(format!("a promise of {size} bytes"));
        }
        let mut room = size.min(FIRST);
        loop {
            out.clear();
            out.reserve_exact(room);
            match self.0.decompress_to_buffer(frame, out) {
                Ok(n) if n == size => return Ok(()),
                Ok(n) => return Err(format!("{n} bytes")),
                Err(_) if room < size => room = size.min(room * 2),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

impl fmt::Debug for ZstdFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ZstdFrames")
    }
}
