//! A process that is to be recorded but cannot record continues unrecorded, and reports this once.

use std::{
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

use super::{Session, StartError};
use crate::warning::warn;

/// Whether this process, or the process that forked it, has reported it.
static REPORTED: AtomicBool = AtomicBool::new(false);
/// In a forked child: the session of its parent. Otherwise null.
static PARENT: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());

/// Called in a child. Of all children of this session, only one reports.
pub(super) fn is_child_of(parent: *mut Session) {
    PARENT.store(parent, Ordering::Relaxed);
}

/// Writes one line to standard error, unless it was already written.
pub(super) fn report_once(error: &StartError) {
    if REPORTED.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the pointer is null, or to a session, which is never freed; the child has inherited its memory.
    let parent = unsafe { PARENT.load(Ordering::Relaxed).as_ref() };
    if parent.is_some_and(|parent| !parent.arena.claim_child_report()) {
        return;
    }
    warn(format_args!("this program is not recorded: {error}"));
}
