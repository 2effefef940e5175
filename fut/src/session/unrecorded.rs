//! A process that is to be recorded but cannot record continues unrecorded, and reports this once.

use std::{
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

use super::{Session, StartError};
use crate::warning::warn;

/// Whether this process, or the one that forked it, has reported it.
static REPORTED: AtomicBool = AtomicBool::new(false);
/// In a forked child: the session of its parent.
static PARENT: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());

/// Called in a child: only one of all children of this session reports.
pub(super) fn is_child_of(parent: *mut Session) {
    PARENT.store(parent, Ordering::Relaxed);
}

/// Writes one line to standard error, unless it was already written.
pub(super) fn report_once(error: &StartError) {
    if REPORTED.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: null, or a session, which is never freed; the child has inherited its memory.
    let parent = unsafe { PARENT.load(Ordering::Relaxed).as_ref() };
    if parent.is_some_and(|parent| !parent.arena.claim_child_report()) {
        return;
    }
    warn(format_args!("this program is not recorded: {error}"));
}
