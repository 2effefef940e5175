//! The input of a replay: rows of the tables of states and intervals, cut to the window.

use std::{
    cmp::{Ordering, Reverse},
    sync::Arc,
};

use crate::timeline::SliceKind;

/// The number of an LWP or a user thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ActorNumber {
    Lwp(i64),
    Thread(i64),
}

impl ActorNumber {
    /// The user thread if there is one, otherwise the LWP.
    pub(super) fn most_specific(thread: Option<i64>, lwp: Option<i64>) -> Option<ActorNumber> {
        thread.map(ActorNumber::Thread).or(lwp.map(ActorNumber::Lwp))
    }
}

/// The value for "unknown" in a column whose numbers are never negative.
pub(super) const UNKNOWN: i32 = -1;

/// The state of an LWP or of a user thread. The derived order is that of the replay: by begin, then by end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StateRow {
    /// Its first tick, within the window.
    pub(super) from: i64,
    /// Its last tick, within the window.
    pub(super) to: i64,
    /// Whether it is the state of a user thread.
    pub(super) of_thread: bool,
    /// The LWP's or the user thread's number.
    pub(super) actor: i64,
    /// Index of its state in [`LwpState::ALL`] or [`ThreadState::ALL`].
    pub(super) state: u8,
    /// The LWP that a thread is mounted on, or [`UNKNOWN`].
    pub(super) lwp: i32,
    /// The CPU, or [`UNKNOWN`].
    pub(super) cpu: i32,
    /// The object it waits for.
    pub(super) blocked_on: Option<i64>,
    /// The number of the kind of wait; 0 if it is not known.
    pub(super) blocked_for: u8,
}

/// A system call, an interrupt, a span or a function.
#[derive(Clone, Debug)]
pub(super) struct SliceRow {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) depth: i64,
    pub(super) kind: SliceKind,
    pub(super) track: SliceTrack,
    pub(super) name: Arc<str>,
    /// Whether its end was recorded.
    pub(super) is_complete: bool,
}

/// The track of a slice, by the number of the CPU, LWP or user thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SliceTrack {
    Cpu(i64),
    Actor(ActorNumber),
}

impl PartialEq for SliceRow {
    fn eq(&self, other: &SliceRow) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SliceRow {}

impl PartialOrd for SliceRow {
    fn partial_cmp(&self, other: &SliceRow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Sorts by begin; enclosing slices first.
impl Ord for SliceRow {
    fn cmp(&self, other: &SliceRow) -> Ordering {
        let key = |row: &SliceRow| (row.from, Reverse(row.to), row.depth, row.track);
        key(self).cmp(&key(other))
    }
}

/// A lock that is held, from its acquisition to its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HoldRow {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) owner: ActorNumber,
    pub(super) object: i64,
    /// The number of its [`WaitKind`].
    pub(super) kind: u8,
    pub(super) is_complete: bool,
}

/// A wakeup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WakeupRow {
    pub(super) at: i64,
    pub(super) woken: ActorNumber,
    /// Whether the waking CPU was in an interrupt, or idle.
    pub(super) in_interrupt: bool,
    pub(super) waker_lwp: Option<i64>,
    pub(super) waker_thread: Option<i64>,
    pub(super) cpu: Option<i64>,
}

/// A new value of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CounterRow {
    pub(super) at: i64,
    pub(super) queue: QueueNumber,
    pub(super) value: i64,
}

/// A queue, by the number of its CPU or process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueNumber {
    Run(i64),
    Ready(Option<i64>),
}
