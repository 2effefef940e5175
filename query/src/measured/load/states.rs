//! The states of user threads and LWPs.

use arrow::array::RecordBatch;
use sigmund_measures::{LwpRow, LwpStay, ThreadRow, ThreadStay};
use sigmund_model::{EndReason, Hertz, LwpState, ThreadState, WaitKind};

use super::{
    cells::{Small, Wide, Words, interval},
    leaving::Leaving,
    reader::Decoded,
};

/// The end reason with this word. `None` if it is unknown, for example because a later version wrote it.
pub(super) fn end_reason(word: &str) -> Option<EndReason> {
    EndReason::ALL.iter().copied().find(|reason| reason.name() == word)
}

/// The state of a thread with this word.
pub(super) fn thread_state(word: &str) -> ThreadState {
    ThreadState::ALL.iter().copied().find(|state| state.name() == word).unwrap_or(ThreadState::Unknown)
}

/// Columns of `thread_states`.
pub(super) const OF_THREADS: &[&str] =
    &["ts_tick", "dur_tick", "thread", "state", "lwp", "blocked_on", "blocked_for", "end_reason"];

/// Decodes these columns. Rows without an end last to the end of the trace.
pub(super) fn of_threads(batch: &RecordBatch, last: i64, hz: Option<Hertz>) -> Decoded<ThreadRow> {
    let (from, length, thread) = (Wide::of(batch, 0), Wide::of(batch, 1), Wide::of(batch, 2));
    let state = Words::of(batch, 3, thread_state);
    let (lwp, object) = (Small::of(batch, 4), Wide::of(batch, 5));
    let waits_for = Words::of(batch, 6, WaitKind::from_name);
    let end = Words::of(batch, 7, end_reason);
    let mut decoded = Decoded::new(batch);
    for row in 0..batch.num_rows() {
        let waits_for = waits_for.get(row).flatten();
        let object = object.or_zero(row);
        let stay = ThreadStay {
            state: state.get(row).unwrap_or(ThreadState::Unknown),
            lwp: lwp.get(row),
            waits_for,
            object: match waits_for {
                Some(WaitKind::Sleep) => end_of_sleep(from.or_zero(row), object, hz),
                _ => object,
            },
            end: end.get(row).flatten(),
        };
        let length = length.get(row);
        let interval = interval(from.or_zero(row), length, last);
        decoded.push((thread.or_zero(row) as u64, interval, stay), length.map(|_| interval.to));
    }
    decoded
}

/// Columns of `thread_states` for [`leaving`].
pub(super) const OF_LEAVING: &[&str] = &["ts_tick", "dur_tick", "thread", "state", "lwp"];

/// Decodes these columns. Keeps only the rows that the search for pairs needs, without what a thread waited for and how it ended.
pub(super) fn leaving(batch: &RecordBatch, last: i64, leaving: &Leaving) -> Decoded<ThreadRow> {
    let (from, length, thread) = (Wide::of(batch, 0), Wide::of(batch, 1), Wide::of(batch, 2));
    let (state, lwp) = (Words::of(batch, 3, thread_state), Small::of(batch, 4));
    let mut decoded = Decoded::of_few();
    for row in 0..batch.num_rows() {
        let state = state.get(row).unwrap_or(ThreadState::Unknown);
        let stay = ThreadStay { state, lwp: lwp.get(row), waits_for: None, object: 0, end: None };
        let length = length.get(row);
        let interval = interval(from.or_zero(row), length, last);
        let row = (thread.or_zero(row) as u64, interval, stay);
        decoded.push_if(leaving.is_needed(&row), row, length.map(|_| interval.to));
    }
    decoded
}

/// The tick at which a sleep of `ns` nanoseconds was to end; 0 if unknown.
fn end_of_sleep(from: i64, ns: i64, hz: Option<Hertz>) -> i64 {
    match hz {
        Some(hz) if ns > 0 => from.saturating_add((ns as f64 * hz.per_second() / 1e9).round() as i64),
        _ => 0,
    }
}

/// Columns of `lwp_states`.
pub(super) const OF_LWPS: &[&str] = &["ts_tick", "dur_tick", "lwp", "state", "cpu", "end_reason"];

/// Decodes these columns. Rows without an end last to the end of the trace.
pub(super) fn of_lwps(batch: &RecordBatch, last: i64) -> Decoded<LwpRow> {
    let (from, length, lwp) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
    let state = |word: &str| LwpState::ALL.iter().copied().find(|state| state.name() == word);
    let state = Words::of(batch, 3, state);
    let cpu = Small::of(batch, 4);
    let end = Words::of(batch, 5, end_reason);
    let mut decoded = Decoded::new(batch);
    for row in 0..batch.num_rows() {
        let stay = LwpStay {
            state: state.get(row).flatten().unwrap_or(LwpState::Unknown),
            cpu: cpu.get(row),
            end: end.get(row).flatten(),
        };
        let length = length.get(row);
        let interval = interval(from.or_zero(row), length, last);
        decoded.push((lwp.or_zero(row), interval, stay), length.map(|_| interval.to));
    }
    decoded
}
