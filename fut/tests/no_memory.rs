//! Full shared memory: the program continues, and events that it could not record are counted.

#[path = "common/skipped.rs"]
mod skipped;

use std::{path::Path, process::Command};

use fut::{Init, drain::Drain, shm::Arena};

fut::events! {
    /// Something happened.
    fn happened(number: u64);
}

/// A tmpfs of so many bytes, unmounted when dropped; `None` for those who may not mount.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn of(bytes: u64) -> Option<Tmpfs> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(folder.path()).status();
        mount.is_ok_and(|status| status.success()).then_some(Tmpfs(folder))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn lost(arena: &Path) -> u64 {
    let trace = tempfile::tempdir().unwrap();
    Drain::new(Arena::open(arena).unwrap(), &trace.path().join("user.fut")).unwrap().finish().unwrap().lost
}

#[test]
fn a_program_outlives_shared_memory_that_is_too_small() {
    // Room for what an arena has at its start, and for no ring.
    let Some(full) = Tmpfs::of(3 << 20) else {
        return skipped::skipped("needs the right to mount a tmpfs");
    };
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe { std::env::set_var(fut::ENV_ARENA_DIR, full.0.path()) };
    assert!(matches!(fut::init(), Init::Recording));
    (0..100).for_each(happened);
    assert_eq!(lost(&full.0.path().join(format!("{}.arena", std::process::id()))), 100);
}
