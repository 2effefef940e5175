//! The waits of one LWP or user thread, from its states and from the wakeups that led to its dispatches.

use sigmund_model::{EndReason, LwpState, ThreadState};

use super::rows::At;
use crate::{History, Interval, LwpStay, ThreadStay, Track, Wakeup};

/// How a wait began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Wakeup,
    Voluntary,
    Involuntary,
    Unknown,
    Unpark,
    Yield,
    Quantum,
    Creation,
    ToUser,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Wakeup => "wakeup",
            Kind::Voluntary => "voluntary",
            Kind::Involuntary => "involuntary",
            Kind::Unknown => "unknown",
            Kind::Unpark => "unpark",
            Kind::Yield => "yield",
            Kind::Quantum => "quantum",
            Kind::Creation => "creation",
            Kind::ToUser => "wakeup-to-user",
        }
    }
}

/// A wait that ended with a dispatch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) from: i64,
    /// The tick of the dispatch.
    pub(super) to: i64,
    pub(super) kind: Kind,
    /// The wakeup that it began with.
    pub(super) wakeup: Option<Wakeup>,
    /// The LWP that was dispatched, or that a user thread was put on.
    pub(super) lwp: Option<u32>,
    /// The CPU of that LWP at the dispatch.
    pub(super) cpu: Option<u32>,
    /// For an LWP: the CPU in whose run queue it was.
    pub(super) queue: Option<u32>,
}

/// A stretch of waiting.
struct Stretch {
    from: i64,
    to: i64,
    /// `None` if it is unknown how it began.
    kind: Option<Kind>,
    cpu: Option<u32>,
    is_over: bool,
    is_asked: bool,
}

/// Calls `each` with every wait of an LWP, and the tick at which it ended. `None` for a wait whose beginning or end is
/// unknown.
pub(super) fn of_lwp(
    lwp: u32,
    mut before: Option<(i64, EndReason)>,
    states: &[At<LwpStay>],
    each: &mut dyn FnMut(Option<Wait>, i64),
) {
    let mut waiting: Option<Stretch> = None;
    for At { interval, stay, is_asked, wake: wakeup, .. } in states.iter().copied() {
        let ended = before.filter(|(at, _)| *at == interval.from).map(|(_, end)| end);
        let open = waiting.take().filter(|stretch| {
            let is_adjacent = stretch.to == interval.from;
            if !is_adjacent && stretch.is_asked {
                each(None, stretch.to);
            }
            is_adjacent
        });
        match stay.state {
            LwpState::Runnable => {
                let kind = match ended {
                    Some(EndReason::Woken) => Some(Kind::Wakeup),
                    Some(EndReason::SchedYield) => Some(Kind::Voluntary),
                    Some(EndReason::Preempted) => Some(Kind::Involuntary),
                    Some(EndReason::Runnable) => Some(Kind::Unknown),
                    _ => None,
                };
                let Interval { from, to } = interval;
                let begun = Stretch { from, to, kind, cpu: stay.cpu, is_over: false, is_asked };
                let stretch = open.unwrap_or(begun);
                let is_over = stay.end == Some(EndReason::TraceEnd);
                waiting = Some(Stretch { to: interval.to, is_over, ..stretch });
            }
            LwpState::Running if !is_asked => {}
            LwpState::Running => {
                let queue = wakeup.and_then(|wakeup| wakeup.target_cpu);
                let queue = queue.or(open.as_ref().and_then(|stretch| stretch.cpu)).or(stay.cpu);
                let begun = match (wakeup, &open) {
                    (Some(wakeup), _) => Some((wakeup.tick, Kind::Wakeup)),
                    (None, Some(stretch)) => stretch.kind.map(|kind| (stretch.from, kind)),
                    (None, None) => None,
                };
                let (to, lwp, cpu) = (interval.from, Some(lwp), stay.cpu);
                match begun {
                    Some((from, kind)) => each(Some(Wait { from, to, kind, wakeup, lwp, cpu, queue }), to),
                    None if open.is_some() || ended == Some(EndReason::Dispatched) => each(None, to),
                    None => {}
                }
            }
            _ => unseen_end(open, each),
        }
        before = stay.end.map(|end| (interval.to, end));
    }
    unseen_end(waiting, each);
}

/// Calls `each` with every wait of a user thread, as [`of_lwp`] does.
pub(super) fn of_thread(
    mut before: Option<(i64, EndReason)>,
    states: &[At<ThreadStay>],
    each: &mut dyn FnMut(Option<Wait>, i64),
) {
    let mut waiting: Option<Stretch> = None;
    for At { interval, stay, wake: wakeup, cpu, .. } in states.iter().copied() {
        let ended = before.filter(|(at, _)| *at == interval.from).map(|(_, end)| end);
        let open = waiting.take().filter(|stretch| {
            let is_adjacent = stretch.to == interval.from;
            if !is_adjacent {
                each(None, stretch.to);
            }
            is_adjacent
        });
        match (stay.state, stay.lwp) {
            (ThreadState::New | ThreadState::Ready, _) => {
                let kind = match ended {
                    _ if stay.state == ThreadState::New => Some(Kind::Creation),
                    // A thread that blocks and is ready at once was unparked before it left its LWP.
                    Some(EndReason::Woken | EndReason::Block) => Some(Kind::Unpark),
                    Some(EndReason::Yield) => Some(Kind::Yield),
                    Some(EndReason::Quantum) => Some(Kind::Quantum),
                    _ => None,
                };
                let Interval { from, to } = interval;
                let begun = Stretch { from, to, kind, cpu: None, is_over: false, is_asked: true };
                let stretch = open.unwrap_or(begun);
                let is_over = stay.end == Some(EndReason::TraceEnd);
                waiting = Some(Stretch { to: interval.to, is_over, ..stretch });
            }
            (state, Some(lwp)) if !matches!(state, ThreadState::Unknown | ThreadState::Exited) => {
                let Some(stretch) = open else {
                    before = stay.end.map(|end| (interval.to, end));
                    continue;
                };
                let (from, to) = (stretch.from, interval.from);
                // The trace begins with this state, and the state began with an unpark.
                let is_unparked = wakeup.is_some_and(|wakeup| wakeup.tick == from);
                let kind = stretch.kind.or(is_unparked.then_some(Kind::Unpark));
                let wakeup = wakeup.filter(|_| kind == Some(Kind::Unpark));
                let lwp = Some(lwp);
                each(kind.map(|kind| Wait { from, to, kind, wakeup, lwp, cpu, queue: None }), to);
            }
            _ => unseen_end(open, each),
        }
        before = stay.end.map(|end| (interval.to, end));
    }
    unseen_end(waiting, each);
}

/// A wait that no dispatch ended is not counted. A wait that only the end of the trace cut is no wait.
fn unseen_end(waiting: Option<Stretch>, each: &mut dyn FnMut(Option<Wait>, i64)) {
    if let Some(stretch) = waiting.filter(|stretch| !stretch.is_over && stretch.is_asked) {
        each(None, stretch.to);
    }
}

/// The wakeups of one LWP or user thread. Queries have to come in time order.
pub(super) struct Wakes<'w> {
    track: Track<'w, u32>,
    next: usize,
}

impl<'w> Wakes<'w> {
    pub(super) fn new(track: Track<'w, u32>) -> Wakes<'w> {
        Wakes { track, next: 0 }
    }

    /// The wakeup that ended with a dispatch at this tick.
    pub(super) fn ending_at(&mut self, history: &History, tick: i64) -> Option<Wakeup> {
        while let Some((interval, place)) = self.track.get(self.next) {
            if interval.to > tick {
                return None;
            }
            self.next += 1;
            if interval.to == tick {
                return history.wakeups.get(*place as usize).copied();
            }
        }
        None
    }
}
