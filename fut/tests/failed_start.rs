//! A recording that cannot start leaves nothing behind: no file, and a process that can still record.

mod common;
#[path = "common/skipped.rs"]
mod skipped;

use std::{path::Path, process::Command};

use fut::{Recording, shm::Geometry};

fut::events! {
    fn happened(number: u64);
}

/// A file of at most `bytes`, for this process.
fn limit(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is valid.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

struct Unmounted<'a>(&'a Path);

impl Drop for Unmounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

fn refused_on_a_full_disk(disk: &Path) {
    std::fs::create_dir(disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4k", "none"]).arg(disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return skipped::skipped("needs the right to mount a tmpfs");
    }
    let _unmounted = Unmounted(disk);
    std::fs::write(disk.join("full"), [0; 4096]).unwrap();
    let path = disk.join("user.fut");
    let refused = Recording::start(&path, Geometry::default()).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC), "{refused}");
    assert!(!fut::is_recording());
    assert!(!path.exists());
}

#[test]
fn a_process_whose_recording_could_not_start_can_start_another() {
    let folder = tempfile::tempdir().unwrap();
    refused_on_a_full_disk(&folder.path().join("disk"));
    let path = folder.path().join("user.fut");
    // Not even the header of the file can be written.
    limit(8);
    let refused = Recording::start(&path, Geometry::default()).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EFBIG), "{refused}");
    assert!(!fut::is_recording());
    assert!(!path.exists());
    limit(1 << 20);
    // There is no room for the rings.
    Recording::start(&path, Geometry::default()).unwrap_err();
    assert!(!fut::is_recording());
    assert!(!path.exists());
    limit(libc::RLIM_INFINITY);
    happened(0);
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    happened(1);
    recording.finish().unwrap();
    let trace = common::opened(&path);
    assert_eq!(common::words(&trace, common::code(&trace, "happened")), [(1, 0)]);
}
