//! Identifies the super-trace of an index: by the names, sizes, times and inodes of its files.

use std::{fmt::Write, fs, os::unix::fs::MetadataExt, path::Path};

/// A line for each file of a super-trace.
pub(super) fn of(path: &Path) -> String {
    let mut lines = Vec::new();
    let mut list = |folder: &Path| {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_file() {
                let (name, size) = (entry.path(), meta.len());
                let (seconds, nanos) = (meta.mtime(), meta.mtime_nsec());
                lines.push(format!("{name:?} {size} {seconds}.{nanos:09} {}:{}", meta.dev(), meta.ino()));
            }
        }
    };
    let folder = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    for table in fs::read_dir(&folder).into_iter().flatten().flatten() {
        list(&table.path());
    }
    lines.sort();
    lines.join("\n")
}

/// A file name for a fingerprint: its FNV-1a hash, 128 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>). The file
/// contains the whole fingerprint.
pub(super) fn name(fingerprint: &str) -> String {
    const PRIME: u128 = (1 << 88) + 0x13b;
    let hash = fingerprint.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    let mut name = String::new();
    // Writing to a String does not fail.
    let _ = write!(name, "{hash:032x}");
    name
}
