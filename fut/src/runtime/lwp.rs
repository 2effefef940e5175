//! What an LWP does: take a ready thread, run it until it leaves, take the next.
//!
//! The order of things at a switch, which the merge relies on: the next thread is chosen first, then the switch is
//! recorded, and only then the thread that left is made available to other LWPs. So no LWP can record that it goes
//! on with a thread before the one it left has recorded that.

use std::{cell::Cell, ptr, sync::Arc};

use sigmund_model::LeaveReason;

use super::{
    pool::Shared,
    user_thread::{Leave, SwitchedOut, UserThread},
};
use crate::{scheduler, session};

thread_local! {
    /// The user thread that is mounted on this LWP. Not read directly: a user thread may be on another LWP after
    /// each call that switches, so it goes through functions that are never inlined.
    static MOUNTED: Cell<*const UserThread> = const { Cell::new(ptr::null()) };
}

/// The user thread that calls this, if it is one.
#[inline(never)]
pub(super) fn mounted() -> Option<Arc<UserThread>> {
    let thread = MOUNTED.get();
    if thread.is_null() {
        return None;
    }
    // SAFETY: set by `run`, whose `Arc` lives as long as the thread is mounted.
    unsafe { Arc::increment_strong_count(thread) };
    // SAFETY: the count was taken just now, for this `Arc`.
    Some(unsafe { Arc::from_raw(thread) })
}

#[inline(never)]
fn set_mounted(thread: Option<&Arc<UserThread>>) {
    MOUNTED.set(thread.map_or(ptr::null(), Arc::as_ptr));
}

/// The life of an LWP.
pub(super) fn run(shared: &Shared) {
    session::attach_now();
    // SAFETY: takes no argument and cannot fail.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    while let Some(thread) = shared.ready.pop() {
        dispatch(&thread, tid, LeaveReason::Unknown, 0);
        run_from(thread, shared, tid);
    }
}

/// Runs `thread`, and one after the other without a pause, until none is ready.
fn run_from(mut thread: Arc<UserThread>, shared: &Shared, tid: u32) {
    loop {
        set_mounted(Some(&thread));
        // SAFETY: it was taken out of the ready queue, here or by the caller.
        let left = unsafe { thread.resume() };
        set_mounted(None);
        let next = if shared.ready.is_shut_down() { None } else { shared.ready.try_pop() };
        let (reason, on) = left.map_or((LeaveReason::Exit, 0), Leave::reason);
        match next {
            // Nobody else wants the LWP: the thread that yielded goes on, which is no switch.
            None if matches!(left, Some(Leave::Yield)) && !shared.ready.is_shut_down() => continue,
            None => {
                scheduler::switch(None, reason, on);
                make_available(&thread, left, shared);
                return;
            }
            Some(next) => {
                dispatch(&next, tid, reason, on);
                make_available(&thread, left, shared);
                thread = next;
            }
        }
    }
}

fn dispatch(next: &UserThread, tid: u32, reason: LeaveReason, on: usize) {
    if let Some(from) = next.carried_by(tid) {
        scheduler::thread_migrate(next.id(), from);
    }
    scheduler::switch(Some(next.id()), reason, on);
}

fn make_available(thread: &Arc<UserThread>, left: Option<Leave>, shared: &Shared) {
    let Some(leave) = left else { return };
    match thread.switched_out(leave) {
        SwitchedOut::Parked => {}
        SwitchedOut::Queue => shared.ready.push(Arc::clone(thread)),
    }
}
