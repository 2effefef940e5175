//! The walk back: what the time before an instant was spent on, across both levels.
//!
//! From a user thread or LWP X at t1 back to t0, the pieces partition [t0, t1) exactly. At (X, t), with the state of X just
//! before t:
//!
//! 1. On a CPU: pieces of running and of interrupts, back to the start of the state.
//! 2. Runnable (stalled, ready, new): a piece of waiting for a CPU or for an LWP, back to the start of the state.
//! 3. A wait (blocked, in-kernel, asleep, stopped) that a wakeup ended at t: from the waking to the wakeup, where these
//!    differ, a piece of waiting for a CPU. At the waking:
//!    * by a user thread or an LWP Y: continues at (Y, waking); the wait itself is no piece. If Y is an LWP that carried a
//!      user thread at that tick, it continues with that thread. If X is a user thread that waited for an instant or a
//!      descriptor (sleep, io), the runtime has only noticed on Y that it came: a piece of being blocked, back to the start of
//!      the wait, of a sleep that came late after a piece of waiting for an LWP, back to when it was to end; continues with X;
//!    * by an interrupt: a piece of waiting for that, back to the start of the wait; continues with X. If no handler
//!      of that kind is known to have been running, the piece is named after the context;
//!    * if the waker is not known (an idle task, X itself): a piece of being blocked, back to the start of the wait.
//! 4. A wait that no wakeup is known to have ended, or in the middle of which t lies: a piece of being blocked.
//! 5. Anything else is an unknown piece: a state that does not show what X did, and time without a state.
//! 6. At the creation of X, if its creator is known: continues with the creator at the same tick.
//!
//! A wakeup ended the wait [s, e) of its target if it was in [s, e], if the dispatch that it led to was not before e, and if
//! the target was runnable or ran from e on. One whose dispatch is not known ended it if it was at e. Of several wakeups the
//! last counts; those with a known dispatch have priority.
//! Jumps keep the tick. After [`MOST_JUMPS`] at one tick the rest of the window is unknown: the trace contradicts itself.
//!
//! A walk goes back in time, and so do slices: it is suspended where it comes to the begin of a slice, and goes on in the
//! earlier one ([`Paused`]). What it does from an actor and a tick on does not depend on where it came from, so walks of which only
//! sums are asked go on as one from where they meet ([`Joint`]).

mod blame;
mod coverage;
mod joint;
mod labels;
mod many;
mod members;
mod paused;
mod piece;
mod ranking;
mod shares;
mod step;
mod sums;
mod totals;
mod unknown;
mod wait;
mod waits;
mod waits_for;

use crate::{History, Interval, Searches};

pub use blame::Blame;
pub(crate) use blame::object_label;
pub(crate) use joint::Joint;
pub(crate) use labels::Labels;
pub(crate) use many::Walking;
pub(crate) use members::{Many, Origin};
pub(crate) use paused::Paused;
pub use piece::{Actor, Link, Piece, Source, What};
pub(crate) use shares::Sum;
pub(crate) use totals::{Key, Pieces, Totals};
pub(crate) use unknown::ends_of_unknown;
pub(crate) use wait::{context as wait_context, interrupt_of};
pub(crate) use waits::{Culprits, Waits};
pub(crate) use waits_for::WaitsFor;

/// The most jumps at one tick.
const MOST_JUMPS: u32 = 64;

/// The pieces of the walk from `window.to` back to `window.from`, in the order of time.
pub fn walk_back(history: &History, actor: Actor, window: Interval) -> Vec<Piece> {
    let mut pieces = Vec::new();
    Walks::new(history).each_piece(actor, window, |piece| pieces.push(*piece));
    pieces.reverse();
    pieces
}

/// Walks one after the other: each is quick if it begins near the previous one.
pub(crate) struct Walks<'h> {
    searches: Searches<'h>,
}

impl<'h> Walks<'h> {
    pub(crate) fn new(history: &'h History) -> Walks<'h> {
        Walks { searches: Searches::new(history) }
    }

    /// When a user thread or LWP was created, and by which other user thread.
    fn created(&self, actor: Actor) -> Option<(i64, u64)> {
        let names = &self.searches.history.names;
        let life = match actor {
            Actor::Thread(thread) => names.threads.get(thread),
            Actor::Lwp(lwp) => names.lwps.get(lwp),
        }?;
        let creator = life.created_by.filter(|creator| Actor::Thread(*creator) != actor)?;
        Some((life.interval.from, creator))
    }

    /// Calls `each` with every piece, the last one first.
    pub(crate) fn each_piece(&mut self, actor: Actor, window: Interval, mut each: impl FnMut(&Piece)) {
        self.go_on(Paused::new(actor, window), i64::MIN, |piece, _| each(piece));
    }

    /// Goes on to the end of a walk, or to the begin of a slice. Calls `each` with every piece, the last one first, and
    /// whether it is a part of the piece before it, which the begin of the later slice cut.
    pub(crate) fn go_on(&mut self, at: Paused, begin: i64, each: impl FnMut(&Piece, bool)) -> Paused {
        step::Walk::new(self, at, begin, each).run()
    }

    /// Goes on to an earlier tick, unless the slice has no more of the walk; else as [`Walks::go_on`].
    fn step(&mut self, at: Paused, begin: i64, each: impl FnMut(&Piece, bool)) -> Paused {
        step::Walk::new(self, at, begin, each).run_to_earlier()
    }
}
