//! Additions that only signal handlers on the same LWP can come between: one instruction, no lock prefix.

use std::sync::atomic::AtomicU64;

/// Adds `n`, and gives what was there before. Atomic for this LWP and its signal handlers, and for no other thread.
///
/// Release, as every store of x86-64 is: pairs with the Acquire in `Ring::position`. Who sees a reservation sees the records
/// that were committed before it, so a snapshot has no gap that the program did not make.
#[inline(always)]
pub(crate) fn local_fetch_add(word: &AtomicU64, n: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut before = n;
        // SAFETY: one instruction on a word that is valid and aligned because it is borrowed. Other threads only
        // load it, so a missing lock prefix loses no update of theirs.
        unsafe {
            std::arch::asm!(
                "xadd qword ptr [{word}], {before}",
                word = in(reg) word.as_ptr(),
                before = inout(reg) before,
                options(nostack),
            );
        }
        before
    }
    #[cfg(not(target_arch = "x86_64"))]
    word.fetch_add(n, std::sync::atomic::Ordering::Release)
}
