//! A perf.data of any version, compression and byte order.
#![no_main]

use fkt_ingest::PerfData;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if PerfData::is_perf_data(bytes) {
        sigmund_fuzz::read_bytes(bytes);
    }
});
