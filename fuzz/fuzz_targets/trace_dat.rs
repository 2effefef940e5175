//! A trace.dat of any version, compression and byte order.
#![no_main]

use fkt_ingest::TraceDat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if TraceDat::is_trace_dat(bytes) {
        sigmund_fuzz::read_bytes(bytes);
    }
});
