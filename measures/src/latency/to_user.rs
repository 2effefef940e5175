//! How long after its event a user thread runs: the wait for a CPU, the wait for an LWP, or both in turn.

use sigmund_model::{EndReason, LwpState, ThreadState};

use super::waits::{Kind, Wait};
use crate::{History, Interval, Series, Track, map::Map};

/// The wakeups in the kernel.
pub(super) struct Kernel<'w> {
    /// Those of each LWP that led to its dispatch, up to the dispatch.
    lwps: &'w Series<u32>,
    /// When an LWP that carried a user thread was woken; by that user thread and the tick of the LWP's dispatch.
    carriers: Map<(u64, i64), i64>,
}

impl<'w> Kernel<'w> {
    pub(super) fn new(history: &History, lwps: &'w Series<u32>) -> Kernel<'w> {
        let mut carriers = Map::default();
        for wakeup in history.wakeups.iter().filter(|wakeup| !wakeup.is_unpark) {
            if let (Some(thread), Some(latency)) = (wakeup.thread, wakeup.latency) {
                carriers.insert((thread, wakeup.tick.saturating_add(latency)), wakeup.tick);
            }
        }
        Kernel { lwps, carriers }
    }

    /// When the LWP was woken that made an unpark outside of any user thread: a poller that the kernel had just
    /// woken for the event. `None` if it has slept, or carried a user thread, since.
    fn of_poller(&self, history: &History, unpark: u32) -> Option<i64> {
        let unpark = history.wakeups.get(unpark as usize)?;
        let lwp = u64::from(unpark.waker_lwp.filter(|_| unpark.waker_thread.is_none())?);
        let wakes = self.lwps.of(lwp);
        let last = wakes.count_to(unpark.tick).checked_sub(1)?;
        let (woken, _) = wakes.get(last)?;
        let since = Interval::new(woken.to, unpark.tick);
        let mut states = history.lwps.of(lwp).partition(since);
        let is_awake = states.all(|(_, stay)| {
            stay.is_some_and(|stay| matches!(stay.state, LwpState::Running | LwpState::Runnable))
        });
        let has_carried = history.mounted.of(lwp).within(since).any(|(part, _)| part.ticks() > 0);
        (is_awake && !has_carried).then_some(woken.from)
    }
}

/// A user thread that was woken and is not active yet.
struct Woken {
    /// When it, its LWP or its poller was woken.
    from: i64,
    /// Until when it is known not to have been active.
    to: i64,
    /// Its LWP was woken; else it was unparked.
    by_kernel: bool,
}

/// Calls `each` with every wait of a user thread from its wakeup to the first instant at which it is active; with `None` if
/// its LWP was woken and it is not known when it ran. One that was unparked and of which that is not known has no ready
/// latency either, and is counted there.
pub(super) fn of_thread(
    history: &History,
    thread: u64,
    unparks: Track<'_, u32>,
    kernel: &Kernel<'_>,
    each: &mut dyn FnMut(Option<Wait>, i64),
) {
    let mut before: Option<(i64, EndReason)> = None;
    let mut woken: Option<Woken> = None;
    for (interval, stay) in history.threads.of(thread).iter() {
        let ended = before.filter(|(at, _)| *at == interval.from).map(|(_, end)| end);
        let (open, lost) = match woken.take() {
            Some(open) if open.to == interval.from && stay.state != ThreadState::Unknown => {
                (Some(open), None)
            }
            lost => (None, lost),
        };
        if let Some(lost) = lost.filter(|lost| lost.by_kernel) {
            each(None, lost.to);
        }
        let begins = |from, by_kernel| Some(Woken { from, to: interval.to, by_kernel });
        woken = match (stay.state, ended) {
            (ThreadState::Active, _) => {
                let to = interval.from;
                let carrier = kernel.carriers.get(&(thread, to)).copied();
                let from = carrier.or(open.map(|open| open.from));
                if let Some(from) = from {
                    let cpu = stay.lwp.and_then(|lwp| history.lwps.of(lwp.into()).at(to));
                    let cpu = cpu.and_then(|(_, stay)| stay.cpu);
                    let kind = Kind::ToUser;
                    each(Some(Wait { from, to, kind, wakeup: None, lwp: stay.lwp, cpu, queue: None }), to);
                }
                None
            }
            _ if open.is_some() => open.map(|open| Woken { to: interval.to, ..open }),
            // One that blocks and is ready at once was unparked before it had left; the first that is seen of one may
            // be its unpark.
            (ThreadState::Ready, Some(EndReason::Woken | EndReason::Block) | None) => {
                let unpark = unparks.at(interval.from).filter(|(unpark, _)| unpark.from == interval.from);
                let poller = unpark.and_then(|(_, place)| kernel.of_poller(history, *place));
                let is_woken = ended.is_some() || unpark.is_some();
                is_woken.then_some(poller.unwrap_or(interval.from)).and_then(|from| begins(from, false))
            }
            (ThreadState::Stalled, Some(EndReason::Woken)) => begins(interval.from, true),
            _ => None,
        };
        // What still waits at the end of the trace is none yet.
        woken = woken.filter(|_| stay.end != Some(EndReason::TraceEnd));
        before = stay.end.map(|end| (interval.to, end));
    }
    if let Some(lost) = woken.filter(|lost| lost.by_kernel) {
        each(None, lost.to);
    }
}
