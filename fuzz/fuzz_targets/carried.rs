//! What is carried over from the parts of a recording that were removed: `u16 length | a file of what was carried before | a part`,
//! both as payloads that are put into complete packets. What is written then must be read again, as it was counted.
#![no_main]

use std::{fs::File, io::Seek, path::PathBuf};

use fut::trace::{CarriedFile, carry_over};
use libfuzzer_sys::fuzz_target;
use sigmund_fuzz::{file_of, in_packets};

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let (before, part) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*length))));
    let (before, part) = (file_of(&in_packets(before)), file_of(&in_packets(part)));
    let opened = |path: &PathBuf| File::open(path).expect("a file in memory");
    sigmund_fuzz::bounded(|| {
        if let Ok(mut file) = CarriedFile::open(&before.1, opened(&before.1)) {
            while let Ok(Some(_)) = file.next_owner() {}
        }
        let (mut out, path) = file_of(&[]);
        let file = CarriedFile::open(&before.1, opened(&before.1)).ok();
        let parts = vec![(part.1.clone(), opened(&part.1))];
        let Ok(summary) = carry_over(file, parts, out.try_clone().expect("a descriptor"), 1 << 20) else {
            return;
        };
        assert_eq!(out.stream_position().expect("a position"), summary.bytes);
        let mut written = CarriedFile::open(&path, opened(&path)).expect("what was written");
        let mut owners = 0;
        while written.next_owner().expect("what was written").is_some() {
            owners += 1;
        }
        assert_eq!((owners, written.left_out()), (summary.owners, summary.left_out));
    });
});
