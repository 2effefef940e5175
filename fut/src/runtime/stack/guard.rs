//! The guard page below a stack: an access to it raises SIGSEGV before the adjacent stack is reached.
//!
//! Linux 6.13 has guards that need no mapping (`MADV_GUARD_INSTALL`). On older kernels a guard is a page without access
//! rights. It splits its mapping, so each stack takes two more mappings. A process has at most `vm.max_map_count`
//! mappings (65530), which its allocator and its other threads also need. So the number of stacks is limited to 28669,
//! which leaves an eighth of the mappings to these. A stack without a guard is never used.
//!
//! One page is enough: Rust code touches each page of a large frame in order (`probe-stack` of rustc), as does C code
//! compiled with `-fstack-clash-protection`.

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

/// Counts guards that are pages without access rights, and limits their number.
#[derive(Debug)]
pub(super) struct SplitGuards {
    made: AtomicUsize,
    most: OnceLock<usize>,
}

/// These guards of this process. They are never unmapped.
static SPLIT_GUARDS: SplitGuards = SplitGuards { made: AtomicUsize::new(0), most: OnceLock::new() };

/// Makes the page at `low` a guard.
///
/// # Errors
/// If the limit of guards is reached.
///
/// # Safety
/// `low` is the address of an unused page of a private mapping.
pub(super) unsafe fn install(low: usize) -> io::Result<()> {
    // SAFETY: the caller guarantees it.
    let installed = unsafe { libc::madvise(low as *mut libc::c_void, GUARD_LEN, MADV_GUARD_INSTALL) };
    if installed == 0 {
        return Ok(());
    }
    // SAFETY: the caller guarantees it.
    unsafe { SPLIT_GUARDS.install(low) }
}

impl SplitGuards {
    /// # Errors
    /// Like [`install`].
    ///
    /// # Safety
    /// As for [`install`].
    unsafe fn install(&self, low: usize) -> io::Result<()> {
        let most = *self.most.get_or_init(|| most_guards(max_map_count()));
        if self.made.fetch_add(1, Ordering::Relaxed) >= most {
            self.made.fetch_sub(1, Ordering::Relaxed);
            return Err(too_many(most));
        }
        // SAFETY: the caller guarantees it.
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

/// The limit of guards; an eighth of the mappings is left to other uses.
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
    fn guards_that_split_mappings_leave_some_for_other_uses() {
        assert_eq!(most_guards(USUAL_MAX_MAP_COUNT), 28669);
        let guards = SplitGuards { made: AtomicUsize::new(0), most: OnceLock::from(3) };
        let len = 8 * GUARD_LEN;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address chosen by the kernel affects no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        for n in 0..4 {
            // SAFETY: an unused page of the mapping.
            let installed = unsafe { guards.install(start.addr() + 2 * n * GUARD_LEN) };
            assert_eq!(installed.is_ok(), n < 3);
            let Err(error) = installed else { continue };
            assert!(error.to_string().starts_with("3 stacks have a guard page"), "{error}");
        }
        // SAFETY: the mapping made above, which is unused.
        unsafe { libc::munmap(start, len) };
    }
}
