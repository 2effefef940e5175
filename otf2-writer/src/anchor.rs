//! The anchor file, `traces.otf2`, which readers open.

use std::{
    fs::File,
    io::{self, Write},
};

use crate::encode;

/// Format of the anchor file; since 3 it contains the numbers of snapshots and thumbnails.
const ANCHOR_FORMAT: u8 = 3;
/// Format of the other files. libotf2 3.0 writes 2.
const TRACE_FORMAT: u8 = 2;
/// The version of libotf2 that defines the records.
const VERSION: [u8; 3] = [3, 0, 0];
const SUBSTRATE_POSIX: u8 = 1;
const COMPRESSION_NONE: u8 = 1;
/// First and last bytes of a file without chunks.
const HEADER: [u8; 2] = [3, 0x42];
const END: [u8; 3] = [2, 1, 0];

/// Contents of the anchor file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor<'a> {
    pub(crate) event_chunk: u64,
    pub(crate) definition_chunk: u64,
    pub(crate) locations: u64,
    pub(crate) definitions: u64,
    pub(crate) machine: &'a str,
    pub(crate) creator: &'a str,
    pub(crate) description: &'a str,
    /// Part of the trace id, which is a hash of the contents of this file.
    pub(crate) events: u64,
}

impl Anchor<'_> {
    pub(crate) fn write(&self, mut file: File) -> io::Result<()> {
        file.write_all(&self.encode())
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&HEADER);
        out.extend_from_slice(b"OTF2\0");
        out.extend_from_slice(&[ANCHOR_FORMAT, TRACE_FORMAT]);
        out.extend_from_slice(&VERSION);
        out.extend_from_slice(&self.event_chunk.to_le_bytes());
        out.extend_from_slice(&self.definition_chunk.to_le_bytes());
        out.extend_from_slice(&[SUBSTRATE_POSIX, COMPRESSION_NONE]);
        out.extend_from_slice(&self.locations.to_le_bytes());
        out.extend_from_slice(&self.definitions.to_le_bytes());
        for text in [self.machine, self.creator, self.description] {
            encode::text(&mut out, text);
        }
        out.extend_from_slice(&0u32.to_le_bytes()); // properties
        let trace_id = fnv1a(&[&out, &self.events.to_le_bytes()]);
        out.extend_from_slice(&trace_id.to_le_bytes());
        out.extend_from_slice(&0u32.to_le_bytes()); // snapshots
        out.extend_from_slice(&0u32.to_le_bytes()); // thumbnails
        out.extend_from_slice(&END);
        out
    }
}

/// Fowler, Noll and Vo's hash, in 64 bits.
fn fnv1a(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().copied().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
