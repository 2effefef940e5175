//! Fixtures, decompressed; and whole traces read at once.

use std::path::{Path, PathBuf};

use fkt_ingest::TraceDat;
use sigmund_model::{Event, EventStream, Loss};

/// The bytes of `tests/fixtures/NAME.zst`.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.zst"));
    let compressed = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    zstd::decode_all(compressed.as_slice()).unwrap()
}

/// These bytes as a file.
pub(crate) fn file(dir: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// All events of a stream, in its order.
pub(crate) fn drain(stream: &mut impl EventStream) -> Vec<Event> {
    let mut events = Vec::new();
    let mut event = Event::default();
    while stream.next_into(&mut event).unwrap() {
        events.push(event.clone());
    }
    events
}

/// All events and losses of a trace, CPU by CPU, followed by the losses of the header.
pub(crate) fn drain_trace(trace: &TraceDat) -> (Vec<Vec<Event>>, Vec<Loss>) {
    let mut losses = Vec::new();
    let mut all = Vec::new();
    for mut stream in trace.streams() {
        all.push(drain(&mut stream));
        losses.extend(stream.take_losses());
    }
    losses.extend(trace.losses().iter().cloned());
    (all, losses)
}

/// xorshift64: the same flips in every run.
pub(crate) fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
