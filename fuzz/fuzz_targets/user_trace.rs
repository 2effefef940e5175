//! A user trace: unchanged, or as payloads that are put into complete packets. Packets have checksums, so mutated
//! packets alone would be refused.
#![no_main]

use fut::trace::{PacketHead, PacketKind, UserTrace, file_head};
use libfuzzer_sys::fuzz_target;
use sigmund_fuzz::Params;
use sigmund_model::{Lwp, Pid, Thread, Ticks};

fuzz_target!(|bytes: &[u8]| {
    let framed;
    let trace = if UserTrace::is_user_trace(bytes) {
        bytes
    } else {
        framed = in_packets(bytes);
        &framed
    };
    let (_file, path) = sigmund_fuzz::file_of(trace);
    sigmund_fuzz::bounded(|| {
        let Ok(trace) = UserTrace::open(&path) else { return };
        let types = trace.event_types();
        sigmund_fuzz::check_losses(trace.losses());
        sigmund_fuzz::check_losses(trace.notes());
        for mut stream in trace.streams() {
            sigmund_fuzz::read_stream(&mut stream, &types, Params::AsWritten);
        }
    });
});

/// `u8 kind | u8 LWP | u8 sequence | u8 first tick, u8 last tick | u16 length | payload`, repeated.
fn in_packets(mut bytes: &[u8]) -> Vec<u8> {
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
