//! Additions that only signal handlers on the same LWP can come between: one instruction, no lock prefix.

use std::sync::atomic::AtomicU64;

/// Adds `n`, and gives what was there before. Atomic for this LWP and its signal handlers, and for nobody else.
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
    word.fetch_add(n, std::sync::atomic::Ordering::Relaxed)
}
