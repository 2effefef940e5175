//! A listing, as people write it by hand.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (_file, path) = sigmund_fuzz::file_of(bytes);
    if let Ok((types, mut streams)) = sigmund_merge::read_listing(&path) {
        streams.iter_mut().for_each(|stream| sigmund_fuzz::read_stream(stream.events.as_mut(), &types));
    }
});
