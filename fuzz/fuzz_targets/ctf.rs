//! A CTF trace: metadata and the bytes of one stream.
#![no_main]

use fkt_ingest::CtfTrace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // `u16 length | metadata | stream`
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let (metadata, stream) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*length))));
    let streams = vec![("stream".to_owned(), stream.to_vec())];
    if let Ok(trace) = CtfTrace::from_bytes("fuzz", metadata, streams) {
        sigmund_fuzz::read_trace(&trace);
    }
});
