//! A process that is to be recorded and cannot be: it continues unrecorded, and reports it once.

use std::{
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

use super::{Session, StartError};
use crate::warning::warn;

/// This process, or the one that forked it, has reported it.
static SAID: AtomicBool = AtomicBool::new(false);
/// In a child that `fork` made: the session of its parent.
static PARENT: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());

/// In a child: of all children of this session, one speaks for all.
pub(super) fn is_child_of(parent: *mut Session) {
    PARENT.store(parent, Ordering::Relaxed);
}

/// One line on standard error, unless it was written already.
pub(super) fn say_once(error: &StartError) {
    if SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: null, or a session, which is never freed; the child has inherited its memory.
    let parent = unsafe { PARENT.load(Ordering::Relaxed).as_ref() };
    if parent.is_some_and(|parent| !parent.arena.tell()) {
        return;
    }
    warn(format_args!("this program is not recorded: {error}"));
}
