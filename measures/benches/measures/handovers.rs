//! Two threads that hand over to each other: walks jump at each turn.

use sigmund_measures::{Context, History, HistoryBuilder, Interval, LwpStay, Mark, Span, ThreadStay, Wakeup};
use sigmund_model::{EndReason, LwpState, ThreadState};

/// A round of 10 ticks: 1 runs 5, unparks 2 and blocks, 2 runs 5 and unparks 1. Nine rows for each.
pub(super) fn history(rows: i64) -> History {
    let rounds = rows / 9;
    let mut builder = HistoryBuilder::default();
    let name = builder.history().words.intern("request");
    let stay = |state, lwp| ThreadStay { state, lwp, waits_for: None, object: 0, end: None };
    for round in 0..rounds {
        let start = round * 10;
        let (first, second) = (Interval::new(start, start + 5), Interval::new(start + 5, start + 10));
        for (thread, lwp, active, blocked) in [(1, 100, first, second), (2, 101, second, first)] {
            builder.thread_state(thread, active, stay(ThreadState::Active, Some(lwp)));
            builder.thread_state(thread, blocked, stay(ThreadState::Blocked, None));
            let history = builder.history();
            history.wakeups.push(Wakeup {
                tick: active.to,
                is_unpark: true,
                context: Context::Task,
                waker_lwp: Some(lwp),
                waker_thread: Some(thread),
                lwp: None,
                thread: Some(3 - thread),
                cpu: Some(lwp - 100),
                target_cpu: None,
                latency: Some(0),
            });
            history.marks.push(Mark {
                tick: active.from + 1,
                cpu: Some(lwp - 100),
                context: Context::Task,
                lwp: Some(lwp),
                thread: Some(thread),
                target_lwp: None,
                target_thread: None,
                key: 0,
                is_from: thread == 1,
                is_to: thread == 2,
            });
        }
        builder.history().spans.push(Span {
            interval: Interval::new(start, start + 13),
            thread: Some(1),
            lwp: Some(100),
            is_function: false,
            name: Some(name),
            depth: 0,
            active: None,
            source: None,
            end: EndReason::Returned,
        });
    }
    let extent = Interval::new(0, rounds * 10);
    for lwp in [100, 101] {
        let stay = LwpStay { state: LwpState::Running, cpu: Some(lwp - 100), end: None };
        builder.lwp_state(lwp, extent, stay);
    }
    builder.history().extent = Some(extent);
    builder.build()
}
