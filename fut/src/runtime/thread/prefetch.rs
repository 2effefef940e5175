//! Prefetches the data of the threads that an LWP runs next.

use std::sync::atomic::Ordering;

use super::{ThreadRef, UserThread};

/// Prefetches the data of threads that wait in a queue: first the block, and one turn later the stack.
#[inline]
pub(in crate::runtime) fn prefetch(block_soon: *const UserThread, stack_next: *const UserThread) {
    prefetch_line(block_soon.cast());
    // SAFETY: the pointer is null, or to a block, which is never freed. It does not matter if the block belongs to
    // another thread by now.
    if let Some(next) = unsafe { stack_next.as_ref() } {
        let body = next.body.load(Ordering::Relaxed).cast::<u8>();
        // The body, and the frames of the suspended switch below it.
        for line in 0..5 {
            prefetch_line(body.wrapping_sub(64 * line));
        }
    }
}

impl ThreadRef {
    /// Prefetches its block.
    #[inline]
    pub(in crate::runtime) fn prefetch(self) {
        prefetch(self.0, std::ptr::null());
    }
}

#[inline(always)]
fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch accesses nothing and never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
