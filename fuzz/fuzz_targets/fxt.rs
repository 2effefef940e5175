//! An FxT trace, of either byte order and word size.
#![no_main]

use fkt_ingest::Fxt;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if Fxt::is_fxt(bytes) {
        sigmund_fuzz::read_bytes(bytes);
    }
});
