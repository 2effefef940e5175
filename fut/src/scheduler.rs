//! What a scheduler of user threads records: every decision, with its reason.
//!
//! The runtime of this crate calls these functions; another runtime that wants to be seen by Sigmund can call them
//! as well. The merge knows the events by their names. The order matters where another LWP may act on what was
//! decided: **record first, then publish**, so that no consequence has an earlier tick than its cause.

use std::{ptr::NonNull, sync::atomic::Ordering};

use sigmund_model::{LeaveReason, Thread};

use crate::{keys, probe};

crate::events! {
    /// The LWP goes on with another user thread (0: with none); why the one before left, and what it waits for.
    fn USER_CONTEXT_SWITCH(next: Thread, reason: u8, on: *const ()) in keys::SCHEDULER
        => "next {next}, left because {reason}, on {on}";
    /// The current user thread created another.
    fn USER_THREAD_NEW(new: Thread, name: &str) in keys::SCHEDULER => "created {new} \"{name}\"";
    /// A user thread was unparked: it waits in the ready queue from now on.
    fn USER_THREAD_READY(ready: Thread) in keys::SCHEDULER => "unparked {ready}";
    /// A user thread that is about to be dispatched here ran on another LWP the time before.
    fn USER_THREAD_MIGRATE(migrated: Thread, from_lwp: u32) in keys::SCHEDULER
        => "{migrated} comes from LWP {from_lwp}";
}

/// The current LWP goes on with `next`, or with no user thread; `reason` is why the one before left, and `on` the
/// address of what it waits for (0: nothing).
#[inline]
pub fn switch(next: Option<Thread>, reason: LeaveReason, on: usize) {
    let next = next.unwrap_or(Thread(0));
    USER_CONTEXT_SWITCH(next, reason as u8, std::ptr::without_provenance(on));
    let control = probe::current();
    // All LWPs that do not record share the one that stands in for a ring: writing to it would cost them all.
    if control == NonNull::from(&probe::CURRENT_NONE) {
        return;
    }
    // SAFETY: `current` gives a control block that stays mapped while its LWP is attached.
    let control = unsafe { control.as_ref() };
    // Whatever the key mask says: the next packet's head names the thread.
    control.mounted.store(next.0, Ordering::Relaxed);
}

/// A user thread is created, by the one that is mounted here. It is not ready before this is recorded.
#[inline]
pub fn thread_new(new: Thread, name: &str) {
    USER_THREAD_NEW(new, name);
}

/// A user thread that was blocked becomes ready, by the one that is mounted here.
#[inline]
pub fn thread_ready(ready: Thread) {
    USER_THREAD_READY(ready);
}

/// The user thread that this LWP switches to next comes from another LWP.
#[inline]
pub fn thread_migrate(migrated: Thread, from_lwp: u32) {
    USER_THREAD_MIGRATE(migrated, from_lwp);
}
