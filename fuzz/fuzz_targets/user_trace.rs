//! A user trace: unchanged, or as payloads that are put into complete packets. Packets have checksums, so mutated
//! packets alone would be refused.
#![no_main]

use fut::trace::UserTrace;
use libfuzzer_sys::fuzz_target;
use sigmund_fuzz::Params;

fuzz_target!(|bytes: &[u8]| {
    let framed;
    let trace = if UserTrace::is_user_trace(bytes) {
        bytes
    } else {
        framed = sigmund_fuzz::in_packets(bytes);
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
