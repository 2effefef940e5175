//! A text of ftrace: `trace`, `trace_pipe`, or a report of trace-cmd.
#![no_main]

use fkt_ingest::FtraceText;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if FtraceText::is_ftrace_text(bytes) {
        sigmund_fuzz::read_bytes(bytes);
    }
});
