//! Checks of every fuzz target for any input: no panic, memory and time within limits, and events and losses with the
//! properties that the merge relies on.

mod bounds;

use std::{fs::File, io::Write, path::PathBuf};

use fkt_ingest::{TraceFile, TraceStream};
use fut::trace::{PacketHead, PacketKind, file_head};
use rustix::fs::{MemfdFlags, memfd_create};
use sigmund_model::{Event, EventStream, EventType, Loss, Lwp, Pid, Thread, Ticks};

/// Largest number of events of a stream: more than a small file can unpack to.
const MOST_EVENTS: u64 = 1 << 24;

/// Reads all of a trace of any format, as a merge does.
pub fn read_bytes(bytes: &[u8]) {
    bounds::bounded(|| {
        if let Ok(trace) = fkt_ingest::from_bytes("fuzz", bytes.to_vec()) {
            read_trace(trace.as_ref());
        }
    });
}

/// Reads the trace that `open` returns.
pub fn read<T: TraceFile, E>(open: impl FnOnce() -> Result<T, E>) {
    bounds::bounded(|| {
        if let Ok(trace) = open() {
            read_trace(&trace);
        }
    });
}

/// Runs `read` within the limits of memory and time for one input.
pub fn bounded(read: impl FnOnce()) {
    bounds::bounded(read);
}

fn read_trace(trace: &dyn TraceFile) {
    assert!(!trace.format().is_empty());
    let _ = (trace.lwp_names(), trace.snapshots(), trace.clock_pairs(), trace.tick_hz(), trace.facts());
    check_losses(trace.losses());
    read_streams(trace.streams(), trace.event_types(), Params::AsDeclared);
}

/// Reads streams that are all open at once, as in a merge.
///
/// # Panics
/// As [`read_stream`].
pub fn read_streams(mut streams: Vec<TraceStream>, types: &[EventType], params: Params) {
    for stream in &mut streams {
        read_stream(stream.events.as_mut(), types, params);
    }
}

/// Reads a stream to its end and checks that its events have declared types and the right number of parameters, that
/// time decreases only with a loss, and that the losses are valid.
///
/// # Panics
/// When one of these does not hold.
pub fn read_stream(stream: &mut dyn EventStream, types: &[EventType], params: Params) {
    let mut event = Event::default();
    let (mut last, mut went_back) = (Ticks(0), false);
    for number in 0_u64.. {
        assert!(number < MOST_EVENTS, "an endless stream");
        match stream.next_into(&mut event) {
            Ok(true) => {}
            Ok(false) | Err(_) => break,
        }
        let ty = types.get(event.kind as usize).expect("an event of a declared type");
        let (found, declared) = (event.params.len(), ty.fields.len());
        let fits = match params {
            Params::AsDeclared => found == declared,
            Params::AsWritten => true,
        };
        assert!(fits, "{} has {found} parameters instead of {declared}", ty.name);
        went_back |= event.tick < last;
        last = event.tick;
    }
    let losses = stream.take_losses();
    check_losses(&losses);
    assert!(!went_back || !losses.is_empty(), "time decreases without a loss");
}

/// The number of an event's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Params {
    /// One for each field of its type.
    AsDeclared,
    /// As in its line or record.
    AsWritten,
}

/// Checks that losses end after their beginning, and have a text.
///
/// # Panics
/// When they do not.
pub fn check_losses(losses: &[Loss]) {
    for loss in losses {
        assert!(!loss.detail.is_empty(), "{loss:?}");
        if let (Some(from), Some(to)) = (loss.from, loss.to) {
            assert!(from <= to, "{loss:?}");
        }
    }
}

/// A file in memory with these bytes, and its path, for readers that need one. It is deleted when the file is dropped.
pub fn file_of(bytes: &[u8]) -> (File, PathBuf) {
    use std::os::fd::AsRawFd;

    let mut file = File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("memory for a file"));
    file.write_all(bytes).expect("memory for a file");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    (file, path)
}

/// A user trace of these payloads: `u8 kind | u8 LWP | u8 sequence | u8 first tick, u8 last tick | u16 length | payload`, repeated.
pub fn in_packets(mut bytes: &[u8]) -> Vec<u8> {
    let mut trace = file_head().to_vec();
    while let Some((&[kind, lwp, sequence, first, last, low, high], rest)) = bytes.split_first_chunk() {
        let length = rest.len().min(usize::from(u16::from_le_bytes([low, high])));
        let (payload, rest) = rest.split_at(length);
        bytes = rest;
        let mut head = PacketHead::about(PacketKind(kind.into()), Pid(1), Ticks(first.into()));
        (head.lwp, head.sequence, head.last_tick) = (Lwp(lwp.into()), sequence.into(), Ticks(last.into()));
        head.thread = Some(Thread(7)).filter(|_| lwp & 1 == 1);
        trace.extend(head.encode(payload));
    }
    trace
}
