//! A listing, as people write it by hand.
#![no_main]

use std::path::Path;

use fkt_ingest::Listing;
use libfuzzer_sys::fuzz_target;
use sigmund_fuzz::Params;

fuzz_target!(|bytes: &[u8]| {
    if !Listing::is_listing(bytes) {
        return;
    }
    sigmund_fuzz::bounded(|| {
        if let Ok(listing) = Listing::from_bytes(Path::new("fuzz"), bytes) {
            sigmund_fuzz::check_losses(&listing.losses);
            sigmund_fuzz::read_streams(listing.streams, &listing.types, Params::AsWritten);
        }
    });
});
