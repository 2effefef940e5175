//! A listing, as people write it by hand.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sigmund_merge::Listing;

fuzz_target!(|bytes: &[u8]| {
    let (_file, path) = sigmund_fuzz::file_of(bytes);
    if let Ok(Some(mut listing)) = Listing::open(&path) {
        for stream in &mut listing.streams {
            sigmund_fuzz::read_stream(stream.events.as_mut(), &listing.types);
        }
    }
});
