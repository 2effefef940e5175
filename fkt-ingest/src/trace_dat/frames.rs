//! Decompresses one frame into a buffer that grows with the actual output, not with the size in the file.

use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};
use zstd::bulk::Decompressor;

/// Initial size of the buffer: trace-cmd's chunks are 40 KiB.
const FIRST: usize = 1 << 20;
/// Larger than any section or chunk in real files; kallsyms are 10 MB.
const MOST: usize = 32 << 20;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Compression {
    #[default]
    None,
    Zlib,
    Zstd,
}

impl Compression {
    /// From the name in the file's header.
    pub(super) fn from_name(name: &str) -> Option<Compression> {
        Some(match name {
            "none" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Zlib => "zlib",
            Compression::Zstd => "zstd",
        }
    }
}

/// Decompresses frames, one after the other.
pub(super) enum Frames {
    /// Of an uncompressed file.
    None,
    Zlib(Box<Decompress>),
    Zstd(Decompressor<'static>),
}

impl Frames {
    pub(super) fn new(compression: Compression) -> Frames {
        match compression {
            Compression::None => Frames::None,
            Compression::Zlib => Frames::Zlib(Box::new(Decompress::new(true))),
            Compression::Zstd => Frames::Zstd(Decompressor::default()),
        }
    }

    /// Decompresses `frame` into `out`, replacing its content. `Err` is what was found instead.
    pub(super) fn decompress(&mut self, frame: &[u8], size: u32, out: &mut Vec<u8>) -> Result<(), String> {
        let size = size as usize;
        out.clear();
        if size > MOST {
            return Err(format!("a stated size of {size} bytes"));
        }
        let decompressed = match self {
            Frames::None => return Err("a frame in a file without compression".to_owned()),
            Frames::Zlib(zlib) => inflate(zlib, frame, size, out),
            Frames::Zstd(zstd) => unpack(zstd, frame, size, out),
        };
        match decompressed? {
            n if n == size => Ok(()),
            n => Err(format!("{n} bytes")),
        }
    }
}

fn unpack(
    zstd: &mut Decompressor<'_>,
    frame: &[u8],
    size: usize,
    out: &mut Vec<u8>,
) -> Result<usize, String> {
    let mut room = size.min(FIRST);
    loop {
        out.clear();
        out.reserve_exact(room);
        match zstd.decompress_to_buffer(frame, out) {
            Ok(n) => return Ok(n),
            Err(_) if room < size => room = size.min(room * 2),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn inflate(zlib: &mut Decompress, frame: &[u8], size: usize, out: &mut Vec<u8>) -> Result<usize, String> {
    zlib.reset(true);
    loop {
        // One byte more than stated, so that a longer frame is noticed.
        let room = (size + 1).min(FIRST.max(2 * out.len()));
        out.reserve_exact(room.saturating_sub(out.len()));
        let rest = frame.get(zlib.total_in() as usize..).unwrap_or_default();
        match zlib.decompress_vec(rest, out, FlushDecompress::None) {
            Ok(Status::StreamEnd) => return Ok(out.len()),
            Ok(_) if out.len() <= size && out.len() == out.capacity() => {}
            Ok(_) if out.len() > size => return Ok(out.len()),
            Ok(_) => return Err(format!("a frame that ends after {} bytes", out.len())),
            Err(error) => return Err(error.to_string()),
        }
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Frames")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_frame_of_either_kind_gives_its_bytes_and_no_others() {
        for size in [0, 1, 5000, FIRST, FIRST + 1, 3 * FIRST] {
            let bytes: Vec<u8> = (0..size).map(|i| (i / 7) as u8).collect();
            let zstd = zstd::bulk::compress(&bytes, 1).unwrap();
            for (compression, frame) in [(Compression::Zlib, zlib(&bytes)), (Compression::Zstd, zstd)] {
                let mut frames = Frames::new(compression);
                let mut out = Vec::new();
                for _ in 0..2 {
                    frames.decompress(&frame, size as u32, &mut out).unwrap();
                    assert!(out == bytes, "{compression:?} of {size}");
                }
                assert!(frames.decompress(&frame, size as u32 + 1, &mut out).is_err());
                assert!(size == 0 || frames.decompress(&frame, size as u32 - 1, &mut out).is_err());
                let half = &frame[..frame.len() / 2];
                assert!(frames.decompress(half, size as u32, &mut out).is_err(), "{compression:?} of {size}");
            }
        }
    }

    #[test]
    fn a_promise_of_gigabytes_allocates_nothing() {
        let mut out = Vec::new();
        let mut frames = Frames::new(Compression::Zstd);
        assert!(frames.decompress(b"x", u32::MAX, &mut out).unwrap_err().contains("stated size"));
        assert_eq!(out.capacity(), 0);
    }
}
