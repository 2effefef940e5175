//! The walk back: what the time before an instant was spent on, across both levels.
//!
//! A walk goes from a user thread or LWP X at t1 back to t0. Its pieces partition [t0, t1) exactly. At (X, t), the
//! state of X just before t decides the next step:
//!
//! 1. On a CPU: pieces of running and of interrupts, back to the start of the state.
//! 2. Runnable (stalled, ready, new): a piece of waiting for a CPU or for an LWP, back to the start of the state.
//! 3. A wait (blocked, in-kernel, asleep, stopped) that a wakeup ended at t. If the waking was before t, there is first a
//!    piece of waiting for a CPU (for an LWP, if a user thread was woken), from the waking to t. Then, at the waking:
//!    * The waker is a user thread or an LWP Y: the walk continues at (Y, waking); the wait itself is no piece. If Y is
//!      an LWP that carried a user thread at that tick, it continues with that thread. One exception: if X is a user
//!      thread that waited for an instant or a descriptor (sleep, io), then Y has only noticed that the instant or
//!      descriptor was ready. Then there is a piece of being blocked, back to the start of the wait, and the walk
//!      continues with X. If a sleep ended late, the time from its requested end on is a piece of waiting for an LWP.
//!    * The waker is an interrupt: a piece of waiting for that interrupt, back to the start of the wait; the walk
//!      continues with X. If no handler of that kind is known to have been running, the piece is named after the
//!      context.
//!    * The waker is unknown (an idle task, X itself): a piece of being blocked, back to the start of the wait.
//! 4. A wait that no wakeup is known to have ended, or that contains t: a piece of being blocked.
//! 5. Anything else is an unknown piece: a state that does not show what X did, or time without a state.
//! 6. At the creation of X, if its creator is known: the walk continues with the creator at the same tick.
//!
//! A wakeup ended the wait [s, e) of its target if it was in [s, e], if the dispatch that it led to was not before e,
//! and if the target was runnable or running from e on. A wakeup with an unknown dispatch ended the wait if it was at
//! e. If several wakeups qualify, those with a known dispatch have priority, and among these the last one counts. Jumps
//! keep the tick. After [`MOST_JUMPS`] jumps at one tick, the rest of the window is unknown, because the trace
//! contradicts itself.
//!
//! A walk goes back in time, and so do slices. A walk is suspended where it reaches the beginning of a slice, and
//! continues in the earlier slice ([`Paused`]). From an actor and a tick on, a walk does not depend on how it got
//! there. So if only sums are needed, walks continue as one from where they meet ([`Joint`]).

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

/// Makes walks one after the other. A walk is fast if it begins near the previous one.
pub(crate) struct Walks<'h> {
    searches: Searches<'h>,
}

impl<'h> Walks<'h> {
    pub(crate) fn new(history: &'h History) -> Walks<'h> {
        Walks { searches: Searches::new(history) }
    }

    /// Calls `each` with every piece, the last one first.
    pub(crate) fn each_piece(&mut self, actor: Actor, window: Interval, mut each: impl FnMut(&Piece)) {
        self.go_on(Paused::new(actor, window), i64::MIN, |piece, _| each(piece));
    }

    /// Continues a walk to its end, or to the beginning of a slice. Calls `each` with every piece, the last one first,
    /// and with whether the piece continues the previous one, which was cut at the beginning of the later slice.
    pub(crate) fn go_on(&mut self, at: Paused, begin: i64, each: impl FnMut(&Piece, bool)) -> Paused {
        step::Walk::new(self, at, begin, each).run()
    }

    /// Continues a walk to an earlier tick, or as far as the slice goes. Otherwise as [`Walks::go_on`].
    fn step(&mut self, at: Paused, begin: i64, each: impl FnMut(&Piece, bool)) -> Paused {
        step::Walk::new(self, at, begin, each).run_to_earlier()
    }
}
