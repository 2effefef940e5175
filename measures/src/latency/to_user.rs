//! How long after its event a user thread runs. It may wait for a CPU, for an LWP, or for both in turn.

use sigmund_model::{EndReason, ThreadState};

use super::{
    rows::{At, Since},
    waits::{Kind, Wait},
};
use crate::ThreadStay;

/// A user thread that was woken and is not active yet.
struct Woken {
    /// When it, its LWP or its poller was woken.
    from: Since,
    /// It is known not to have been active until this tick.
    to: i64,
    /// Whether its LWP was woken; otherwise it was unparked.
    by_kernel: bool,
}

/// Calls `each` with every wait of a user thread, from its wakeup to the first instant at which it is active. Calls it
/// with `None` if it is unknown when the thread ran. (But if it was unparked and no dispatch is known, it has no ready
/// latency either, and is counted there.) The beginning of a wait is passed beside it.
pub(super) fn of_thread(
    mut before: Option<(i64, EndReason)>,
    states: &[At<ThreadStay>],
    each: &mut dyn FnMut(Option<(Wait, Since)>, i64),
) {
    let mut woken: Option<Woken> = None;
    for At { interval, stay, cpu, unparked, carrier, is_doubted, .. } in states.iter().copied() {
        let ended = before.filter(|(at, _)| *at == interval.from).map(|(_, end)| end);
        let (open, lost) = match woken.take() {
            // A mounted thread may be active.
            Some(open)
                if open.to == interval.from
                    && !matches!(stay.state, ThreadState::Unknown | ThreadState::Mounted) =>
            {
                (Some(open), None)
            }
            lost => (None, lost),
        };
        let is_dispatched = |lost: &Woken| is_doubted && lost.to == interval.from;
        if let Some(lost) = lost.filter(|lost| lost.by_kernel || is_dispatched(lost)) {
            each(None, lost.to);
        }
        let begins = |from, by_kernel| Some(Woken { from, to: interval.to, by_kernel });
        woken = match (stay.state, ended) {
            (ThreadState::Active, _) => {
                let to = interval.from;
                let since = carrier.map(Since::Tick).or(open.map(|open| open.from));
                if let Some(since) = since {
                    let (from, kind) = (to, Kind::ToUser);
                    let wait = Wait { from, to, kind, wakeup: None, lwp: stay.lwp, cpu, queue: None };
                    each(Some((wait, since)), to);
                }
                None
            }
            _ if open.is_some() => open.map(|open| Woken { to: interval.to, ..open }),
            // A thread that blocks and is ready at once was unparked before it left its LWP. If the trace begins with
            // this state, the state may have begun with an unpark.
            (ThreadState::Ready, Some(EndReason::Woken | EndReason::Block) | None) => {
                let since = unparked.or(ended.map(|_| Since::Tick(interval.from)));
                since.and_then(|since| begins(since, false))
            }
            (ThreadState::Stalled, Some(EndReason::Woken)) => begins(Since::Tick(interval.from), true),
            _ => None,
        };
        // A wait that lasts to the end of the trace does not count.
        woken = woken.filter(|_| stay.end != Some(EndReason::TraceEnd));
        before = stay.end.map(|end| (interval.to, end));
    }
    if let Some(lost) = woken.filter(|lost| lost.by_kernel) {
        each(None, lost.to);
    }
}
