//! What every fuzz target checks, whatever bytes it was given: no panic, and what was read keeps the promises that the
//! merge relies on.

#![forbid(unsafe_code)]

use std::{fs::File, io::Write, path::PathBuf};

use fkt_ingest::TraceFile;
use rustix::fs::{MemfdFlags, memfd_create};
use sigmund_model::{Event, EventStream, EventType, Ticks};

/// Events of one stream that are looked at: a small file must not be able to claim more.
const MOST_EVENTS: u64 = 1 << 20;

/// Reads all of a trace of whatever format.
pub fn read_bytes(bytes: &[u8]) {
    if let Ok(trace) = fkt_ingest::from_bytes("fuzz", bytes.to_vec()) {
        read_trace(trace.as_ref());
    }
}

/// Reads all of an open trace.
pub fn read_trace(trace: &dyn TraceFile) {
    assert!(!trace.format().is_empty());
    let _ = (trace.lwp_names(), trace.losses(), trace.snapshots(), trace.tick_hz(), trace.facts());
    for mut stream in trace.streams() {
        read_stream(stream.events.as_mut(), trace.event_types());
    }
}

/// Reads a stream to its end: its events are of declared types and have a parameter for each field, its losses have an
/// end behind their beginning.
///
/// # Panics
/// When one of these does not hold.
pub fn read_stream(stream: &mut dyn EventStream, types: &[EventType]) {
    let mut event = Event::default();
    let mut last = Ticks(0);
    for number in 0_u64.. {
        assert!(number < MOST_EVENTS, "a stream without an end");
        match stream.next_into(&mut event) {
            Ok(true) => {}
            Ok(false) | Err(_) => break,
        }
        let ty = types.get(event.kind as usize).expect("an event of a declared type");
        assert_eq!(event.params.len(), ty.fields.len(), "{}", ty.name);
        assert!(event.tick >= last, "{} goes back to {}", ty.name, event.tick.0);
        last = event.tick;
    }
    for loss in stream.take_losses() {
        if let (Some(from), Some(to)) = (loss.from, loss.to) {
            assert!(from <= to, "{loss:?}");
        }
    }
}

/// A file in memory with these bytes, and its path, for readers that want one. It is gone when the file is dropped.
pub fn file_of(bytes: &[u8]) -> (File, PathBuf) {
    use std::os::fd::AsRawFd;

    let mut file = File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("memory for a file"));
    file.write_all(bytes).expect("memory for a file");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    (file, path)
}
