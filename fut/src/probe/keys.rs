//! The key mask: groups of events that are switched together, while the program runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Scheduling decisions of a runtime.
pub const SCHEDULER: u64 = 1;
/// LWPs that begin and stop recording. Without them the merge cannot tell whose user threads an LWP carries.
pub const LWP: u64 = 1 << 1;
/// Synchronisation: who blocks on what.
pub const SYNC: u64 = 1 << 2;
/// Spans that the program names.
pub const SPANS: u64 = 1 << 7;
/// What the program declares itself, unless it says otherwise.
pub const PROGRAM: u64 = 1 << 8;
/// Functions that are entered and left: `FUT_KEYMASK29` of C programs.
pub const FUNCTIONS: u64 = 1 << 61;
/// The keys of C programs: `FUT_KEYMASK0` to `FUT_KEYMASK31` are the upper half.
pub const C_PROGRAM: u64 = 0xffff_ffff << 32;
/// Everything.
pub const ALL: u64 = u64::MAX;

/// 0 as long as nothing is recorded: then a probe is a load, a test and a branch.
/// C programs test its upper half (`fut_keys`, fut.h).
#[unsafe(export_name = "fut_keys")]
static MASK: AtomicU64 = AtomicU64::new(0);

/// Whether events of this key are recorded now.
#[inline(always)]
pub fn enabled(key: u64) -> bool {
    MASK.load(Ordering::Relaxed) & key != 0
}

/// Switches groups of events: those in `mask` on, all others off. Without a session this records nothing still.
pub fn set(mask: u64) {
    if crate::session::is_on() {
        MASK.store(mask, Ordering::Relaxed);
    }
}

/// The mask that is set now.
pub fn mask() -> u64 {
    MASK.load(Ordering::Relaxed)
}

/// Switches the keys of C programs before there is a session, from any context: nothing but the mask is changed.
pub(crate) fn c_keys_before_session(on: bool) {
    if on {
        MASK.fetch_or(C_PROGRAM, Ordering::Relaxed);
    } else {
        MASK.fetch_and(!C_PROGRAM, Ordering::Relaxed);
    }
}

pub(crate) fn switch(mask: u64) {
    MASK.store(mask, Ordering::Relaxed);
}
