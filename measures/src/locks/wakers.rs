//! Who ended waits for futexes and for locks of the kernel: the waker, from `sched_waking`.

use super::lock::Lock;
use crate::{
    By, Context, Group, History, Interval, LockRequest, Slice, Wakeup, Word, culprit::OnCpu, map::Map,
};

/// What woke a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Waker {
    Who(OnCpu),
    /// An interrupt, usually of a timeout.
    Interrupt(Context),
}

impl Waker {
    fn of(wakeup: &Wakeup) -> Waker {
        let who = match (wakeup.waker_thread, wakeup.waker_lwp) {
            (Some(thread), _) => OnCpu::Thread(thread),
            (None, Some(0)) => OnCpu::Idle,
            (None, Some(lwp)) => OnCpu::Lwp(lwp),
            (None, None) => OnCpu::Unknown,
        };
        if wakeup.context.is_interrupt() { Waker::Interrupt(wakeup.context) } else { Waker::Who(who) }
    }

    /// `None` if it is not known.
    fn label(self, history: &History, by: By) -> Option<String> {
        match self {
            Waker::Who(OnCpu::Unknown) => None,
            Waker::Who(who) => Some(who.culprit(history, by).label(history)),
            Waker::Interrupt(context) => Some(context.name().to_string()),
        }
    }
}

/// The key of the row that a request is in.
pub(super) type RowOf = (Option<Group>, Lock, Word, Option<Word>);

/// A wait that has ended. Its wakeup is in this slice or an earlier one.
pub(super) struct Ended {
    pub(super) row: RowOf,
    lwp: u32,
    waiting: Interval,
    /// Its ticks in the window.
    pub(super) ticks: i64,
}

impl Ended {
    /// The wait of an LWP's request, in the slice in which the wait counts. `None` if it does not end in the window.
    pub(super) fn new(asked: &LockRequest, slice: Slice, row: impl FnOnce() -> RowOf) -> Option<Ended> {
        let (lwp, waiting) = (asked.lwp?, asked.waiting());
        let counts = asked.is_contended && waiting.to <= slice.window.to && slice.owns(waiting);
        let ticks = waiting.clipped(slice.window).filter(|_| counts)?.ticks();
        Some(Ended { row: row(), lwp, waiting, ticks })
    }

    /// The waker, if this slice has the wakeup that ended the wait. Of the wakeups during the wait, it is the one that led to
    /// the last dispatch before its end.
    pub(super) fn waker(&self, history: &History) -> Option<Waker> {
        let wakings = history.wakings.of(self.lwp.into());
        let begun = (0..wakings.count_from(self.waiting.to)).rev().filter_map(|place| wakings.get(place));
        let inside = begun.take_while(|(wakeup, _)| wakeup.from >= self.waiting.from);
        let dispatched = inside.filter_map(|(interval, place)| {
            let wakeup = history.wakeups.get(*place as usize)?;
            let led_to_it = wakeup.latency.is_some() && interval.to <= self.waiting.to;
            led_to_it.then_some((interval, wakeup))
        });
        let last = dispatched.max_by_key(|(interval, _)| (interval.to, interval.from));
        last.map(|(_, wakeup)| Waker::of(wakeup))
    }

    /// Whether the wakeup may be in an earlier slice.
    pub(super) fn is_open(&self, slice: Slice) -> bool {
        self.waiting.from < slice.interval.from
    }
}

/// Who ended most of the waits, and the ticks of these.
pub(super) fn most(history: &History, by: By, wakers: &Map<Waker, i64>) -> Option<(String, i64)> {
    let mut groups: Map<String, i64> = Map::default();
    for (waker, ticks) in wakers {
        if let Some(label) = waker.label(history, by) {
            *groups.entry(label).or_insert(0) += ticks;
        }
    }
    groups.into_iter().max_by(|(a, of_a), (b, of_b)| of_a.cmp(of_b).then_with(|| b.cmp(a)))
}
