//! The states of user threads and LWPs.

use sigmund_measures::{HistoryBuilder, Interval, LwpStay, ThreadStay};
use sigmund_model::{
    EndReason, LwpState, ThreadState, WaitKind,
    tables::{LWP_STATES, THREAD_STATES},
};
use sigmund_sql::SuperTrace;

use super::cells::{Small, Wide, Words, interval, read};
use crate::Error;

/// The end reason with this word; `None` if it is unknown, as a later version may have written it.
pub(super) fn end_reason(word: &str) -> Option<EndReason> {
    EndReason::ALL.iter().copied().find(|reason| reason.name() == word)
}

pub(super) async fn of_threads(
    trace: &SuperTrace,
    window: Option<Interval>,
    last: i64,
    builder: &mut HistoryBuilder,
) -> Result<(), Error> {
    let columns =
        ["ts_tick", "dur_tick", "thread", "state", "lwp", "blocked_on", "blocked_for", "end_reason"];
    read(trace, &THREAD_STATES, &columns, window, |batch| {
        let (from, length, thread) = (Wide::of(batch, 0), Wide::of(batch, 1), Wide::of(batch, 2));
        let state = |word: &str| ThreadState::ALL.iter().copied().find(|state| state.name() == word);
        let state = Words::of(batch, 3, state);
        let (lwp, object) = (Small::of(batch, 4), Wide::of(batch, 5));
        let waits_for = Words::of(batch, 6, WaitKind::from_name);
        let end = Words::of(batch, 7, end_reason);
        for row in 0..batch.num_rows() {
            let stay = ThreadStay {
                state: state.get(row).flatten().unwrap_or(ThreadState::Unknown),
                lwp: lwp.get(row),
                waits_for: waits_for.get(row).flatten(),
                object: object.or_zero(row),
                end: end.get(row).flatten(),
            };
            let interval = interval(from.or_zero(row), length.get(row), last);
            builder.thread_state(thread.or_zero(row) as u64, interval, stay);
        }
    })
    .await
}

pub(super) async fn of_lwps(
    trace: &SuperTrace,
    window: Option<Interval>,
    last: i64,
    builder: &mut HistoryBuilder,
) -> Result<(), Error> {
    let columns = ["ts_tick", "dur_tick", "lwp", "state", "cpu", "end_reason"];
    read(trace, &LWP_STATES, &columns, window, |batch| {
        let (from, length, lwp) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
        let state = |word: &str| LwpState::ALL.iter().copied().find(|state| state.name() == word);
        let state = Words::of(batch, 3, state);
        let cpu = Small::of(batch, 4);
        let end = Words::of(batch, 5, end_reason);
        for row in 0..batch.num_rows() {
            let stay = LwpStay {
                state: state.get(row).flatten().unwrap_or(LwpState::Unknown),
                cpu: cpu.get(row),
                end: end.get(row).flatten(),
            };
            let interval = interval(from.or_zero(row), length.get(row), last);
            builder.lwp_state(lwp.or_zero(row), interval, stay);
        }
    })
    .await
}
