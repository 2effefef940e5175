//! Wakings: an LWP is about to become runnable (`sched_waking`). The wakeup itself (`sched_wakeup`) comes a little
//! later; from then on the LWP is runnable. But traces of `perf sched record` have only wakings and no wakeups.
//!
//! So a waking is remembered until a wakeup, a dispatch or a departure of its LWP. If the LWP is dispatched without a
//! wakeup, it was runnable from the waking on. If no wakeup has ever followed a waking in the trace, the same applies
//! to LWPs whose waiting ends in another way. As in perf (`timehist_sched_change_event`, tools/perf/builtin-sched.c,
//! v6.12), a waking before the LWP has left its CPU does not count.

use sigmund_model::{EndReason, Lwp, LwpState, Thread, Ticks};

use super::{
    Intervals, Machine,
    lwp::{LwpEntry, Place},
    roster::Roster,
    thread::ThreadEntry,
};
use crate::error::Error;

impl Machine {
    /// An LWP is about to be woken.
    pub(super) fn waking(&mut self, lwp: Lwp, tick: Ticks) {
        if lwp == Lwp::IDLE {
            return;
        }
        let entry = self.lwp(lwp, tick);
        let sleeps = matches!(entry.place, Place::Off(state) if state != LwpState::Runnable);
        if (sleeps || entry.place == Place::Unknown) && entry.waking.is_none() {
            entry.waking = Some(tick);
        }
    }
}

/// An LWP changes its place. If a waking of it is remembered and `counts` is set, the LWP was runnable from the waking
/// on.
pub(super) fn settle(
    intervals: &mut Intervals,
    threads: &mut Roster<Thread, ThreadEntry>,
    entry: &mut LwpEntry,
    counts: bool,
) -> Result<(), Error> {
    let Some(waking) = entry.waking.take().filter(|_| counts) else { return Ok(()) };
    match entry.place {
        Place::Unknown => entry.heard_of(waking),
        Place::Off(state) if !matches!(state, LwpState::Runnable | LwpState::Exited) => {
            runnable_since(intervals, threads, entry, waking)?;
        }
        Place::Off(_) | Place::On(..) | Place::Lost => {}
    }
    Ok(())
}

/// Makes the LWP runnable from `waking` on. Nothing else about the LWP has changed since then.
fn runnable_since(
    intervals: &mut Intervals,
    threads: &mut Roster<Thread, ThreadEntry>,
    entry: &mut LwpEntry,
    waking: Ticks,
) -> Result<(), Error> {
    let thread = entry.mounted.thread().and_then(|thread| threads.get_mut(thread));
    let thread_since = thread.as_ref().map_or(Ticks(0), |thread| thread.state_since);
    let tick = waking.max(entry.place_since).max(thread_since);
    let place = Place::Off(LwpState::Runnable);
    intervals.close_place(entry, tick, EndReason::Woken)?;
    entry.place = place;
    entry.place_since = tick;
    entry.waits_in = entry.queue;
    match thread {
        Some(thread) => {
            intervals.enter_thread_state(thread, place.thread_state(), Some(entry), tick, EndReason::Woken)
        }
        None => Ok(()),
    }
}
