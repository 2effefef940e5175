//! A walk that has come to a tick: it begins there, or was suspended there at the begin of a slice of time.

use super::{Actor, Link, WaitsFor, What};
use crate::{Interval, Wakeup};

/// Where a walk is. All values are the same in the histories of all slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paused {
    /// Where it ends.
    pub(super) until: i64,
    pub(super) actor: Actor,
    pub(super) tick: i64,
    pub(super) link: Option<Link>,
    /// Jumps at this tick.
    pub(super) jumps: u32,
    /// The kind of the last piece, if the begin of the slice cut it.
    pub(super) cut: Option<Cut>,
    /// The wait that it is in, if what woke the actor is in this slice.
    pub(super) woken: Option<Woken>,
}

/// Where walks meet.
pub(super) type Place = (Actor, i64, Option<Cut>, Option<WaitsFor>);

/// A piece whose begin only the earlier slice has. Others are never cut, since rows are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cut {
    Running,
    Interrupt,
    Unknown,
}

/// A wait and the wakeup that ended it. The walk is at the wakeup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Woken {
    pub(super) wakeup: Wakeup,
    /// Whose wakeup it is.
    pub(super) target: Actor,
    /// When the wait began.
    pub(super) since: i64,
    pub(super) lwp: Option<u32>,
    pub(super) cpu: Option<u32>,
    /// What the wait is if the waker is not known.
    pub(super) what: What,
}

impl Paused {
    /// A walk that begins.
    pub(crate) fn new(actor: Actor, window: Interval) -> Paused {
        Paused { until: window.from, actor, tick: window.to, link: None, jumps: 0, cut: None, woken: None }
    }

    /// What it will do from here on depends on this and its end alone; `None` if on more. If it is told what was waited for
    /// meanwhile, that is a part of it.
    pub(super) fn place(&self, tells_waits: bool) -> Option<Place> {
        let Paused { actor, tick, jumps, cut, link, ref woken, .. } = *self;
        let waits_for = if tells_waits { WaitsFor::of_link(link) } else { None };
        (jumps == 0 && woken.is_none()).then_some((actor, tick, cut, waits_for))
    }

    /// Goes on to where both end.
    pub(super) fn go_on_until(&mut self, other: Paused) {
        self.until = self.until.min(other.until);
    }

    /// Whether a slice that begins at this tick has some of it.
    pub(super) fn is_in_slice(&self, begin: i64) -> bool {
        self.tick > begin || self.woken.is_some_and(|woken| woken.wakeup.tick >= begin)
    }

    /// Whether it has come to its end.
    pub(crate) fn is_over(&self) -> bool {
        self.tick <= self.until
    }
}
