//! Additions that are atomic with respect to signal handlers on the same LWP: one instruction, without a lock prefix.

use std::sync::atomic::AtomicU64;

/// Adds `n`, and returns the previous value. Atomic for this LWP and its signal handlers, and for no other thread.
///
/// It is a Release, like every store of x86-64: pairs with the Acquire in `Ring::position`. A reader that sees a
/// reservation also sees the records committed before it. So a snapshot has no gaps except those that the program
/// caused.
#[inline(always)]
pub(crate) fn local_fetch_add(word: &AtomicU64, n: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut before = n;
        // SAFETY: one instruction on a word that is valid and aligned because it is borrowed. Other threads only load
        // it, so no update of theirs is lost without a lock prefix.
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
