//! Functions that call each other, four deep, of 64 threads; their active time is not given with them.

use sigmund_measures::{History, HistoryBuilder, Interval, Span, ThreadStay};
use sigmund_model::{EndReason, ThreadState};

const THREADS: i64 = 64;

pub(super) fn history(rows: i64) -> History {
    let mut builder = HistoryBuilder::default();
    let names = ["request", "parse", "find", "compare"].map(|name| builder.history().words.intern(name));
    let count = rows / 4;
    for call in 0..count {
        let (thread, at) = (1 + (call % THREADS) as u64, call / THREADS * 100);
        for (depth, name) in names.into_iter().enumerate() {
            let inset = 10 * depth as i64;
            builder.history().spans.push(Span {
                interval: Interval::new(at + inset, at + 90 - inset - call % 7),
                thread: Some(thread),
                lwp: None,
                is_function: true,
                name: Some(name),
                depth: depth as u32,
                active: None,
                source: None,
                end: EndReason::Returned,
            });
        }
        for (from, to, state) in [(0, 60, ThreadState::Active), (60, 100, ThreadState::Blocked)] {
            let stay = ThreadStay { state, lwp: None, waits_for: None, object: 0, end: None };
            builder.thread_state(thread, Interval::new(at + from, at + to), stay);
        }
    }
    builder.history().extent = Some(Interval::new(0, count / THREADS * 100 + 100));
    builder.build()
}
