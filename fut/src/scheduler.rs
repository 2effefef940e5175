//! The events of a scheduler of user threads: every decision, with its reason.
//!
//! The runtime of this crate calls these functions; other runtimes can call them to be traced by Sigmund. The merge
//! recognises the events by name. The order matters if another LWP may act on a decision: **record first, then
//! publish**, so that no consequence has an earlier tick than its cause.

use std::{ptr, sync::atomic::Ordering};

use sigmund_model::{LeaveReason, Thread, WaitKind};

use crate::{
    keys,
    probe::{self, Declared, is_on, only_others_are_on},
};

crate::__event!(
    // The LWP switches to the user thread `next` (0: to none). `reason`: why the previous one left; `on`: the address
    // of what it waits for; `blocked_for`: the number of the kind of that object (0: none).
    Switch, "USER_CONTEXT_SWITCH", (next: Thread, reason: u8, on: *const (), blocked_for: u8) in keys::SCHEDULER
        => "next {next}, left because {reason}, for {blocked_for} {on}",
    || switch(Some(Thread(1)), LeaveReason::Yield, 0, None)
);

crate::events! {
    /// The current user thread created another.
    fn USER_THREAD_NEW(new: Thread, name: &str) in keys::SCHEDULER => "created {new} \"{name}\"";
    /// A user thread was unparked: it waits in the ready queue from now on.
    fn USER_THREAD_READY(ready: Thread) in keys::SCHEDULER => "unparked {ready}";
    /// A user thread that is about to be dispatched here last ran on another LWP.
    fn USER_THREAD_MIGRATE(migrated: Thread, from_lwp: u32) in keys::SCHEDULER
        => "{migrated} comes from LWP {from_lwp}";
    /// The current user thread forks a team: user threads that all end before it continues. The number is unique.
    fn USER_TEAM_FORK(team: u64) in keys::SCHEDULER => "forks team {team}";
    /// A user thread was created for a team.
    fn USER_TEAM_MEMBER(team: u64, member: Thread) in keys::SCHEDULER => "{member} is of team {team}";
    /// All threads of a team have ended; the user thread that forked it continues.
    fn USER_TEAM_JOIN(team: u64) in keys::SCHEDULER => "team {team} has ended";
}

/// The current LWP switches to `next`, or to no user thread. `reason` is why the previous one left. `on` is the address
/// of the object for which it waits (0: none; see [`Wait`](sigmund_model::Wait)), and `blocked_for` the kind of that
/// object.
#[inline(always)]
pub fn switch(next: Option<Thread>, reason: LeaveReason, on: usize, blocked_for: Option<WaitKind>) {
    let next = next.unwrap_or(Thread(0));
    if is_on::<Switch>() {
        record_switch(next, reason, on, blocked_for);
    }
    // Packet headers contain the mounted thread, whether or not switches are recorded.
    if only_others_are_on::<Switch>() {
        note_switch(next);
    }
}

#[cold]
#[inline(never)]
fn record_switch(next: Thread, reason: LeaveReason, on: usize, blocked_for: Option<WaitKind>) {
    let kind = blocked_for.map_or(0, WaitKind::number);
    let params = (next, reason as u8, ptr::without_provenance::<()>(on), kind);
    probe::record_and(Switch::event(), params, |ring| ring.mounted.store(next.0, Ordering::Relaxed));
}

#[cold]
#[inline(never)]
fn note_switch(next: Thread) {
    if let Some(ring) = probe::ring() {
        ring.mounted.store(next.0, Ordering::Relaxed);
    }
}

/// The user thread mounted here creates another one. Record this before the new thread becomes ready.
#[inline]
pub fn thread_new(new: Thread, name: &str) {
    USER_THREAD_NEW(new, name);
}

/// The user thread mounted here makes a blocked one ready.
#[inline]
pub fn thread_ready(ready: Thread) {
    USER_THREAD_READY(ready);
}

/// The user thread to which this LWP switches next last ran on LWP `from_lwp`.
#[inline]
pub fn thread_migrate(migrated: Thread, from_lwp: u32) {
    USER_THREAD_MIGRATE(migrated, from_lwp);
}

/// The user thread mounted here forks a team. Its number is unique in the process.
#[inline]
pub fn team_fork(team: u64) {
    USER_TEAM_FORK(team);
}

/// A user thread, created but not ready yet, belongs to this team.
#[inline]
pub fn team_member(team: u64, member: Thread) {
    USER_TEAM_MEMBER(team, member);
}

/// All threads of a team have ended; the user thread that forked it, which is mounted here, continues.
#[inline]
pub fn team_join(team: u64) {
    USER_TEAM_JOIN(team);
}
