//! The file that is opened: `traces.otf2`.

use std::{fs::File, io, io::Write};

use super::encode;

/// Of the anchor file; 3 says how many snapshots and thumbnails there are.
const ANCHOR_FORMAT: u8 = 3;
/// Of the other files. libotf2 3.0 writes 2.
const TRACE_FORMAT: u8 = 2;
/// Of libotf2 that the records are of.
const VERSION: [u8; 3] = [3, 0, 0];
const SUBSTRATE_POSIX: u8 = 1;
const COMPRESSION_NONE: u8 = 1;
/// The header of a file without chunks, and how it ends.
const HEADER: [u8; 2] = [3, 0x42];
const END: [u8; 3] = [2, 1, 0];

/// What it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anchor<'a> {
    pub(super) event_chunk: u64,
    pub(super) definition_chunk: u64,
    pub(super) locations: u64,
    pub(super) definitions: u64,
    pub(super) machine: &'a str,
    pub(super) creator: &'a str,
    pub(super) description: &'a str,
    /// Goes into the trace's own number, which is a hash of all that this file says.
    pub(super) events: u64,
}

impl Anchor<'_> {
    pub(super) fn write(&self, mut file: File) -> io::Result<()> {
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
