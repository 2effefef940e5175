//! The guard page below a stack: a touch of it is SIGSEGV, before the neighbour's stack is reached.
//!
//! Linux 6.13 has guards that cost nothing (`MADV_GUARD_INSTALL`). Elsewhere a guard is a page without access rights, which
//! splits the mapping it is in: two mappings more for each stack, and a process has at most `vm.max_map_count` of them
//! (65530), which also its allocator and its other threads need. So there are at most as many stacks as leave an eighth
//! of them: 28669. A stack without a guard is never given to anybody.
//!
//! One page is enough: code of Rust touches each page of a large frame in order (`probe-stack` of rustc), as does C
//! with `-fstack-clash-protection`.

use std::{
    fs, io,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Length of a guard, and the granularity of stacks.
pub(in crate::runtime) const GUARD_LEN: usize = 4096;
/// mm/madvise.c, since Linux 6.13.
const MADV_GUARD_INSTALL: i32 = 102;
/// Documentation/admin-guide/sysctl/vm.rst.
const USUAL_MAX_MAP_COUNT: usize = 65530;

/// Guards that are pages without rights.
#[derive(Debug)]
pub(super) struct SplitGuards {
    made: AtomicUsize,
    most: OnceLock<usize>,
}

/// Those of this process. They are never unmapped.
static SPLIT_GUARDS: SplitGuards = SplitGuards { made: AtomicUsize::new(0), most: OnceLock::new() };

/// Makes the page at `low` a guard.
///
/// # Errors
/// When the process can have no more of them.
///
/// # Safety
/// It is a page of a private mapping that nobody uses.
pub(super) unsafe fn install(low: usize) -> io::Result<()> {
    // SAFETY: as the caller vouches.
    let installed = unsafe { libc::madvise(low as *mut libc::c_void, GUARD_LEN, MADV_GUARD_INSTALL) };
    if installed == 0 {
        return Ok(());
    }
    // SAFETY: as the caller vouches.
    unsafe { SPLIT_GUARDS.install(low) }
}

impl SplitGuards {
    /// # Errors
    /// As [`install`].
    ///
    /// # Safety
    /// As for [`install`].
    unsafe fn install(&self, low: usize) -> io::Result<()> {
        let most = *self.most.get_or_init(|| most_guards(max_map_count()));
        if self.made.fetch_add(1, Ordering::Relaxed) >= most {
            self.made.fetch_sub(1, Ordering::Relaxed);
            return Err(too_many(most));
        }
        // SAFETY: as the caller vouches.
        match unsafe { libc::mprotect(low as *mut libc::c_void, GUARD_LEN, libc::PROT_NONE) } {
            0 => Ok(()),
            _ => {
                self.made.fetch_sub(1, Ordering::Relaxed);
                Err(io::Error::last_os_error())
            }
        }
    }
}

fn max_map_count() -> usize {
    let text = fs::read_to_string("/proc/sys/vm/max_map_count");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL_MAX_MAP_COUNT)
}

/// An eighth is left to others.
fn most_guards(max_map_count: usize) -> usize {
    (max_map_count - max_map_count / 8) / 2
}

fn too_many(most: usize) -> io::Error {
    io::Error::other(format!(
        "{most} stacks have a guard page, each of which takes two mappings of the {} that vm.max_map_count allows; \
         Linux 6.13 and later need none",
        max_map_count()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_that_split_mappings_leave_some_to_others() {
        assert_eq!(most_guards(USUAL_MAX_MAP_COUNT), 28669);
        let guards = SplitGuards { made: AtomicUsize::new(0), most: OnceLock::from(3) };
        let len = 8 * GUARD_LEN;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh mapping at a place that the kernel chooses touches no memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        for n in 0..4 {
            // SAFETY: a page of the mapping, which nobody uses.
            let installed = unsafe { guards.install(start.addr() + 2 * n * GUARD_LEN) };
            assert_eq!(installed.is_ok(), n < 3);
            let Err(error) = installed else { continue };
            assert!(error.to_string().starts_with("3 stacks have a guard page"), "{error}");
        }
        // SAFETY: our own mapping, which nobody uses.
        unsafe { libc::munmap(start, len) };
    }
}
