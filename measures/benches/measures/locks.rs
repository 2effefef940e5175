//! Requests for locks: free, contended, of one lock or of many, by readers that overlap, and by a thread that has it.

use sigmund_measures::{History, HistoryBuilder, Interval, LockRequest, LwpStay, ThreadStay};
use sigmund_model::{EndReason, LwpState, ThreadState};

const THREADS: i64 = 64;

/// Rounds in which each thread asks once, for one of many locks, and has it at once.
pub(super) fn free(rows: i64) -> History {
    history(rows, |_, thread, at| (at + thread, 0, 5, thread * 8, false))
}

/// Sixteen locks, each of four threads that wait for each other.
pub(super) fn contended(rows: i64) -> History {
    history(rows, |_, thread, at| (at + thread % 4, thread % 4 * 20, 20, thread / 4, thread % 4 > 0))
}

/// One lock, for which all wait.
pub(super) fn one(rows: i64) -> History {
    history(rows, |_, thread, at| (at, thread, 1, 1, thread > 0))
}

/// One lock that 63 readers have together, over many rounds; in each round another waits.
pub(super) fn readers(rows: i64) -> History {
    let hold = 100 * (rows / THREADS).max(1);
    history(rows, move |round, thread, at| match thread {
        0 => (at, 50, 1, 1, true),
        _ if round % 100 == 0 => (at, 0, hold, 1, false),
        _ => (at, 5, 20, 1, true),
    })
}

/// One thread asks again and again for a lock that it does not give back before the end, and another waits.
pub(super) fn recursive(rows: i64) -> History {
    let end = 100 * (rows / THREADS).max(1);
    history(rows, move |_, thread, at| match thread {
        0 => (at, 50, 1, 1, true),
        _ => (at, 0, (end - at).max(1), 1, false),
    })
}

/// `rows` requests: of a round, a thread and the round's begin the tick, the wait, the hold and the lock, and whether it
/// had to wait. A thread is active for 60 of 100 ticks and stalled for 40, with another's LWP on its CPU.
fn history(rows: i64, request: impl Fn(i64, i64, i64) -> (i64, i64, i64, i64, bool)) -> History {
    let mut builder = HistoryBuilder::default();
    let kind = builder.history().words.intern("mutex");
    for row in 0..rows {
        let (round, thread) = (row / THREADS, row % THREADS);
        let (tick, wait, hold, object, is_contended) = request(round, thread, round * 100);
        builder.history().locks.push(LockRequest {
            tick,
            wait: Some(wait),
            hold: Some(hold),
            thread: Some(1 + thread as u64),
            lwp: Some(100 + thread as u32),
            cpu: None,
            object,
            kind,
            holder: None,
            holder_lwp: None,
            is_contended,
            call_site: None,
            end: EndReason::Returned,
        });
        // States of one round in eight, so that there are not more of them than requests.
        if round % 8 == 0 {
            let (at, lwp, cpu) = (round * 100, 100 + thread as u32, (thread / 2) as u32);
            let first = if thread % 2 == 0 { (0, 480) } else { (480, 800) };
            for (from, to) in [(0, 480), (480, 800)] {
                let is_first = (from, to) == first;
                let interval = Interval::new(at + from, at + to);
                let state = if is_first { ThreadState::Active } else { ThreadState::Stalled };
                let stay = ThreadStay { state, lwp: Some(lwp), waits_for: None, object: 0, end: None };
                builder.thread_state(1 + thread as u64, interval, stay);
                let state = if is_first { LwpState::Running } else { LwpState::Runnable };
                let end = Some(EndReason::Preempted);
                builder.lwp_state(lwp, interval, LwpStay { state, cpu: Some(cpu), end });
            }
        }
    }
    builder.history().extent = Some(Interval::new(0, rows / THREADS * 100 + 100));
    builder.build()
}
