//! A CTF trace: metadata and the bytes of two streams.
#![no_main]

use fkt_ingest::CtfTrace;
use libfuzzer_sys::fuzz_target;

// `u16 length, u16 length | metadata | stream | other stream`
fuzz_target!(|bytes: &[u8]| {
    let Some((&[m0, m1, s0, s1], rest)) = bytes.split_first_chunk() else { return };
    let (metadata, rest) = rest.split_at(rest.len().min(u16::from_le_bytes([m0, m1]).into()));
    let (one, other) = rest.split_at(rest.len().min(u16::from_le_bytes([s0, s1]).into()));
    let streams = vec![("one".to_owned(), one.to_vec()), ("other".to_owned(), other.to_vec())];
    sigmund_fuzz::read(|| CtfTrace::from_bytes("fuzz", metadata, streams));
});
