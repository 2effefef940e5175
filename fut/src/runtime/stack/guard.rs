//! The guard page below a stack.
//!
//! A page without access rights splits the mapping it is in, and a process has at most `vm.max_map_count` mappings
//! (65530): enough for some 30000 stacks. Linux 6.13 has guards that do not split (`MADV_GUARD_INSTALL`). Elsewhere
//! the first stacks get a page without rights, and those beyond are watched: their lowest bytes, which were zero,
//! must be so still when the thread has ended, else the process ends with a message.

use std::sync::atomic::{AtomicU32, Ordering};

/// Length of a guard, and the granularity of stacks.
pub(in crate::runtime) const GUARD_LEN: usize = 4096;
/// mm/madvise.c, since Linux 6.13.
const MADV_GUARD_INSTALL: i32 = 102;
/// Pages without rights that are made at most; each splits a mapping in two.
const MAX_PROTECTED: u32 = 16_000;

static PROTECTED: AtomicU32 = AtomicU32::new(0);

/// What protects a stack from growing into its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    /// A guard page: SIGSEGV at the first touch.
    Page,
    /// Nothing but a look at its end, afterwards.
    Watched,
}

/// Makes the page at `low` a guard.
///
/// # Safety
/// It is a page of a private mapping that nobody uses.
pub(super) unsafe fn install(low: usize) -> Guard {
    // SAFETY: as the caller vouches.
    let installed = unsafe { libc::madvise(low as *mut libc::c_void, GUARD_LEN, MADV_GUARD_INSTALL) };
    if installed == 0 {
        return Guard::Page;
    }
    if PROTECTED.fetch_add(1, Ordering::Relaxed) >= MAX_PROTECTED {
        return Guard::Watched;
    }
    // SAFETY: as the caller vouches.
    match unsafe { libc::mprotect(low as *mut libc::c_void, GUARD_LEN, libc::PROT_NONE) } {
        0 => Guard::Page,
        _ => Guard::Watched,
    }
}
