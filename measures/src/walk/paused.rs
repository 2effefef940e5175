//! A walk that is at a tick: it begins there, or was suspended there at the beginning of a slice.

use super::{Actor, Link, WaitsFor, What};
use crate::{Interval, Wakeup};

/// The position of a walk. All values are valid in the histories of all slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paused {
    /// The tick at which the walk ends.
    pub(super) until: i64,
    pub(super) actor: Actor,
    pub(super) tick: i64,
    pub(super) link: Option<Link>,
    /// The number of jumps at this tick.
    pub(super) jumps: u32,
    /// The kind of the last piece, if it was cut at the beginning of the slice.
    pub(super) cut: Option<Cut>,
    /// The wait that the walk is in, if the waking that ended it is before the slice.
    pub(super) woken: Option<Woken>,
}

/// A position at which walks can meet.
pub(super) type Place = (Actor, i64, Option<Cut>, Option<WaitsFor>);

/// A piece whose beginning is only in an earlier slice. Other pieces are never cut, because rows are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cut {
    Running,
    Interrupt,
    Unknown,
}

/// A wait, and the wakeup that ended it. The walk is at the wakeup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Woken {
    pub(super) wakeup: Wakeup,
    /// The target of the wakeup.
    pub(super) target: Actor,
    /// When the wait began.
    pub(super) since: i64,
    pub(super) lwp: Option<u32>,
    pub(super) cpu: Option<u32>,
    /// What the wait counts as if the waker is unknown.
    pub(super) what: What,
}

impl Paused {
    /// A walk that begins.
    pub(crate) fn new(actor: Actor, window: Interval) -> Paused {
        Paused { until: window.from, actor, tick: window.to, link: None, jumps: 0, cut: None, woken: None }
    }

    /// The position, if the rest of the walk depends only on it and on the walk's end; otherwise `None`. With
    /// `tells_waits`, it includes what was waited for in the meantime.
    pub(super) fn place(&self, tells_waits: bool) -> Option<Place> {
        let Paused { actor, tick, jumps, cut, link, ref woken, .. } = *self;
        let waits_for = if tells_waits { WaitsFor::of_link(link) } else { None };
        (jumps == 0 && woken.is_none()).then_some((actor, tick, cut, waits_for))
    }

    /// Extends the walk to the earlier of both ends.
    pub(super) fn go_on_until(&mut self, other: Paused) {
        self.until = self.until.min(other.until);
    }

    /// Whether a slice that begins at this tick contains some of the walk.
    pub(super) fn is_in_slice(&self, begin: i64) -> bool {
        self.tick > begin || self.woken.is_some_and(|woken| woken.wakeup.tick >= begin)
    }

    /// Whether it has reached its end.
    pub(crate) fn is_over(&self) -> bool {
        self.tick <= self.until
    }
}
