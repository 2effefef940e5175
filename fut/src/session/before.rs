//! Probes that were fired before there was a session: counted, and dropped.
//!
//! A Rust program's probes are off until [`init`](super::init); they cost nothing and are not counted. A C program's
//! are on from the start, so that those which come too early are counted, and not lost in silence. If nothing is set
//! up, they are switched off after [`MOST`]: from then on they cost a load, a test and a branch.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::keys;

/// As many are counted, and no more.
const MOST: u64 = 1 << 16;

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Probes that were fired and dropped because recording had not begun, 65536 at most. They are in no trace.
pub fn dropped_before_setup() -> u64 {
    DROPPED.load(Ordering::Relaxed).min(MOST)
}

/// Switches the keys of C programs on, to count what comes before the session.
#[doc(hidden)]
pub fn count_before_setup() {
    if !super::is_on() {
        keys::c_keys_before_session(true);
    }
}

/// One came too early. It may be a signal handler's.
#[cold]
pub(super) fn count() {
    if DROPPED.fetch_add(1, Ordering::Relaxed) >= MOST && !super::is_on() {
        keys::c_keys_before_session(false);
    }
}
