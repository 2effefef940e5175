//! The key mask: switches groups of events while the program runs.

use std::sync::atomic::Ordering;

use super::{
    SwitchError,
    switch::{MASK, change_mask},
};

/// Scheduling decisions of a runtime.
pub const SCHEDULER: u64 = 1;
/// Begin and end of recording of each LWP. Without these events, the merge does not know which user threads an LWP
/// carries.
pub const LWP: u64 = 1 << 1;
/// Synchronisation: which thread blocks on what.
pub const SYNC: u64 = 1 << 2;
/// Locks acquired and released. The only key that is off by default.
pub const LOCKS: u64 = 1 << 3;
/// Spans that the program names.
pub const SPANS: u64 = 1 << 7;
/// Events of the program, unless declared with other keys.
pub const PROGRAM: u64 = 1 << 8;
/// Function entry and exit: `FUT_KEYMASK29` of C programs.
pub const FUNCTIONS: u64 = 1 << 61;
/// The keys of C programs, `FUT_KEYMASK0` to `FUT_KEYMASK31`: the upper half of the mask.
pub const C_PROGRAM: u64 = 0xffff_ffff << 32;
/// Everything.
pub const ALL: u64 = u64::MAX;
/// The default: everything but [`LOCKS`]. Lock operations may outnumber all other events, and recording an uncontended
/// lock costs more than taking it. Waits for locks are in [`SCHEDULER`].
pub const DEFAULT: u64 = ALL & !LOCKS;

/// Whether events of this key are recorded now, except single events that were [switched off](super::switch_events).
/// Costs a load, a test and a branch. For programs that prepare data to record; the probes themselves do not call it.
#[inline(always)]
pub fn enabled(key: u64) -> bool {
    mask() & key != 0
}

/// Switches groups of events: on those in `mask`, off all others. Has no effect while the process does not record.
///
/// After it returns, no thread begins to record an event that was switched off. A record that was begun before may
/// still be finished. It takes a lock and makes system calls, so it must not be called in signal handlers.
///
/// # Errors
/// If the kernel does not allow the code to be modified. Then nothing is switched.
pub fn set(mask: u64) -> Result<(), SwitchError> {
    replace(mask).map(|_| ())
}

/// Switches the groups in `on` on, and those in `off` off; the others stay as they are, also if other threads switch
/// them at the same time. Otherwise like [`set`].
///
/// # Errors
/// Like [`set`].
pub fn change(on: u64, off: u64) -> Result<(), SwitchError> {
    change_mask(|mask| mask & !off | on).map(|_| ())
}

/// Like [`set`]. Returns the mask before; `None` if the process does not record.
pub(crate) fn replace(mask: u64) -> Result<Option<u64>, SwitchError> {
    Ok(change_mask(|_| mask)?.map(|(before, _)| before))
}

/// The current mask; 0 when nothing is recorded. C programs are an exception: their own keys are on before the
/// recording, so that probes that run too early are counted.
#[inline(always)]
pub fn mask() -> u64 {
    MASK.load(Ordering::Relaxed)
}

/// Switches the keys of C programs before there is a session. May be called from any context, because only the mask is
/// changed. A mask that a session has set meanwhile stays as it is.
pub(crate) fn c_keys_before_session(on: bool) {
    let (from, to) = if on { (0, C_PROGRAM) } else { (C_PROGRAM, 0) };
    let _ = MASK.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
}
