//! Probes executed before there is a session. Their events are counted and dropped.
//!
//! The probes of a Rust program are off until [`init`](super::init): they cost a nop and are not counted. The probes of
//! a C program are on from the start, so that events before the session are counted instead of silently lost. If no
//! session starts, they are switched off after [`MOST`] events. From then on they cost a load, a test and a branch.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::keys;

/// Maximum number of events that are counted.
const MOST: u64 = 1 << 16;

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Number of events that were dropped because recording had not begun, at most 65536. They are in no trace.
pub fn dropped_before_setup() -> u64 {
    DROPPED.load(Ordering::Relaxed).min(MOST)
}

/// Switches on the keys of C programs, to count events before the session.
#[doc(hidden)]
pub fn count_before_setup() {
    if !super::is_on() {
        keys::c_keys_before_session(true);
    }
}

/// Counts an event before the session. May run in a signal handler.
#[cold]
pub(super) fn count() {
    if DROPPED.fetch_add(1, Ordering::Relaxed) >= MOST && !super::is_on() {
        keys::c_keys_before_session(false);
    }
}
