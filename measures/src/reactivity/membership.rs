//! When a thread or LWP stops being a **member**, that is, running because an event caused it to: at its next wait, or
//! where its state is unknown.

use sigmund_model::{LwpState, ThreadState};

use crate::{Actor, History, Interval, LwpStay, Searches, ThreadStay, Track};

/// What a state means for a thread or LWP that becomes or is a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stays {
    In,
    /// A member leaves when this state begins. One that is woken from this state enters.
    Waits,
    /// A member leaves, and none enters.
    Unknown,
}

/// Membership of an actor at a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// Whether one that is woken at this tick is a member after it.
    pub(super) enters: bool,
    /// Whether one that was a member before leaves at this tick.
    pub(super) leaves: bool,
}

impl At {
    pub(super) fn new(searches: &mut Searches<'_>, actor: Actor, tick: i64) -> At {
        match actor {
            Actor::Thread(thread) => {
                let cursor = searches.threads.of(thread);
                let count = cursor.count_from(tick);
                at(cursor.track, count, tick, of_thread)
            }
            Actor::Lwp(lwp) => {
                let cursor = searches.lwps.of(lwp.into());
                let count = cursor.count_from(tick);
                at(cursor.track, count, tick, of_lwp)
            }
        }
    }
}

/// Whether a member leaves at a tick inside of `between`. Its first and last tick do not count.
pub(super) fn leaves_between(searches: &mut Searches<'_>, actor: Actor, between: Interval) -> bool {
    match actor {
        Actor::Thread(thread) => {
            let cursor = searches.threads.of(thread);
            let first = cursor.count_from(between.from);
            leaves(cursor.track, first, between.to, of_thread)
        }
        Actor::Lwp(lwp) => {
            let cursor = searches.lwps.of(lwp.into());
            let first = cursor.count_from(between.from);
            leaves(cursor.track, first, between.to, of_lwp)
        }
    }
}

/// Whether a member leaves at a tick of a slice before `tick`.
pub(super) fn leaves_in(history: &History, actor: Actor, slice: Interval, tick: i64) -> bool {
    let until = tick.min(slice.to);
    match actor {
        Actor::Thread(thread) => {
            let track = history.threads.of(thread);
            leaves(track, track.count_before(slice.from), until, of_thread)
        }
        Actor::Lwp(lwp) => {
            let track = history.lwps.of(lwp.into());
            leaves(track, track.count_before(slice.from), until, of_lwp)
        }
    }
}

/// `count` is the number of states that begin at the tick or before.
fn at<T>(track: Track<'_, T>, count: usize, tick: i64, stays: impl Fn(&T) -> Stays) -> At {
    let begun = (0..count).rev().map_while(|place| track.get(place));
    let leaves = begun.take_while(|(stay, _)| stay.from == tick).any(|(_, stay)| stays(stay) != Stays::In);
    let last = count.checked_sub(1).and_then(|place| track.get(place));
    let enters = match last.filter(|(stay, _)| stay.to > tick || stay.from == tick) {
        Some((interval, stay)) => match stays(stay) {
            Stays::In => true,
            Stays::Waits => interval.from < tick,
            Stays::Unknown => false,
        },
        None => true,
    };
    At { enters, leaves }
}

/// Whether one of the states from `first` on that begin before `until` makes a member leave.
fn leaves<T>(track: Track<'_, T>, first: usize, until: i64, stays: impl Fn(&T) -> Stays) -> bool {
    let later = (first..track.len()).map_while(|place| track.get(place));
    later.take_while(|(stay, _)| stay.from < until).any(|(_, stay)| stays(stay) != Stays::In)
}

/// Whether a thread stops being a member when it enters a state.
pub fn ends_membership(state: ThreadState) -> bool {
    of_state(state) != Stays::In
}

fn of_thread(stay: &ThreadStay) -> Stays {
    of_state(stay.state)
}

fn of_state(state: ThreadState) -> Stays {
    use ThreadState::{Active, Blocked, InKernel, Mounted, New, Ready, Stalled, Stopped};
    match state {
        Active | Stalled | Ready | New | Mounted => Stays::In,
        Blocked | InKernel | Stopped => Stays::Waits,
        _ => Stays::Unknown,
    }
}

fn of_lwp(stay: &LwpStay) -> Stays {
    match stay.state {
        LwpState::Running | LwpState::Runnable => Stays::In,
        LwpState::Exited | LwpState::OffCpu | LwpState::Unknown => Stays::Unknown,
        _ => Stays::Waits,
    }
}
