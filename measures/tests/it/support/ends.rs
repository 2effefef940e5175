//! What ended the states of a random machine: it follows from the states before and after, and from the tick where there is
//! a choice.

use sigmund_model::{EndReason, LwpState, ThreadState};

use super::{Now, TICKS};

/// What ended the state of the LWP at a place that ends at `tick`.
pub(crate) fn lwp_end(ticks: &[Now], lwp: usize, tick: i64) -> EndReason {
    if tick >= TICKS {
        return EndReason::TraceEnd;
    }
    let [before, after] = [tick - 1, tick].map(|tick| ticks[tick as usize].lwps[lwp].state);
    match (before, after) {
        (LwpState::Running, LwpState::Runnable) => {
            [EndReason::Preempted, EndReason::SchedYield, EndReason::Runnable][(tick as usize + lwp) % 3]
        }
        (_, LwpState::Unknown) => EndReason::Lost,
        // A switch, or an event that shows it there.
        (LwpState::Unknown, LwpState::Running) => {
            [EndReason::Dispatched, EndReason::Resync][tick as usize % 2]
        }
        (LwpState::Unknown, _) => EndReason::Resync,
        (LwpState::Running, LwpState::Running) | (_, LwpState::Running) => EndReason::Dispatched,
        (LwpState::Running, _) => EndReason::Slept,
        _ => EndReason::Woken,
    }
}

/// What ended the state of the user thread at a place that ends at `tick`.
pub(crate) fn thread_end(ticks: &[Now], thread: usize, tick: i64) -> EndReason {
    if tick >= TICKS {
        return EndReason::TraceEnd;
    }
    let [before, after] = [tick - 1, tick].map(|tick| ticks[tick as usize].threads[thread]);
    match (before.lwp, after.lwp, after.state) {
        (_, _, ThreadState::Unknown) => EndReason::Lost,
        _ if before.state == ThreadState::Unknown && after.lwp.is_none() => EndReason::Resync,
        (Some(on), Some(to), _) if on == to => lwp_end(ticks, on, tick),
        (_, Some(_), _) => EndReason::Dispatched,
        (Some(_), None, ThreadState::Blocked) => EndReason::Block,
        (Some(_), None, _) => [EndReason::Yield, EndReason::Quantum][(tick as usize + thread) % 2],
        (None, None, _) => EndReason::Woken,
    }
}
