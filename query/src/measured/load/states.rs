//! The states of user threads and LWPs.

use std::collections::HashMap;

use arrow::array::RecordBatch;
use foldhash::fast::RandomState;
use sigmund_measures::{Interval, LwpRow, LwpStay, ThreadRow, ThreadStay};
use sigmund_model::{EndReason, Hertz, LwpState, ThreadState, WaitKind};

use super::{
    cells::{Small, Wide, Words, interval},
    leaving::Leaving,
    reader::Decoded,
    times::Times,
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

/// Decodes these columns, and keeps the rows that `is_of_use` selects by the place, the thread and the interval. Rows without an end
/// last to the end of the trace.
pub(super) fn of_threads(
    batch: &RecordBatch,
    (last, hz): (i64, Option<Hertz>),
    mut is_of_use: impl FnMut(usize, u64, Interval) -> bool,
) -> Decoded<ThreadRow> {
    let (from, length, thread) = (Wide::of(batch, 0), Wide::of(batch, 1), Wide::of(batch, 2));
    let state = Words::of(batch, 3, thread_state);
    let (lwp, object) = (Small::of(batch, 4), Wide::of(batch, 5));
    let waits_for = Words::of(batch, 6, WaitKind::from_name);
    let end = Words::of(batch, 7, end_reason);
    let mut decoded = Decoded::new(batch);
    for row in 0..batch.num_rows() {
        let length = length.get(row);
        let (thread, interval) = (thread.or_zero(row) as u64, interval(from.or_zero(row), length, last));
        decoded.end(length.map(|_| interval.to));
        if !is_of_use(row, thread, interval) {
            continue;
        }
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
        decoded.rows.push((thread, interval, stay));
    }
    decoded
}

/// Columns of `thread_states`, without what a thread waited for, and how its state ended.
pub(super) const OF_PLACES: &[&str] = &["ts_tick", "dur_tick", "thread", "state", "lwp"];

/// Decodes these columns. Keeps only the rows of threads on LWPs that `is_of_use` selects by the thread and the interval.
pub(super) fn on_lwps(
    batch: &RecordBatch,
    last: i64,
    mut is_of_use: impl FnMut(u64, Interval) -> bool,
) -> Decoded<ThreadRow> {
    let (from, length, thread) = (Wide::of(batch, 0), Wide::of(batch, 1), Wide::of(batch, 2));
    let (state, lwp) = (Words::of(batch, 3, thread_state), Small::of(batch, 4));
    let mut decoded = Decoded::of_few();
    for row in 0..batch.num_rows() {
        let length = length.get(row);
        let (thread, interval) = (thread.or_zero(row) as u64, interval(from.or_zero(row), length, last));
        decoded.end(length.map(|_| interval.to));
        let Some(lwp) = lwp.get(row).filter(|_| is_of_use(thread, interval)) else { continue };
        let state = state.get(row).unwrap_or(ThreadState::Unknown);
        let stay = ThreadStay { state, lwp: Some(lwp), waits_for: None, object: 0, end: None };
        decoded.rows.push((thread, interval, stay));
    }
    decoded
}

/// Decodes columns [`OF_PLACES`]. Keeps only the rows of threads in an unknown state.
pub(super) fn unknown(batch: &RecordBatch, last: i64) -> Decoded<ThreadRow> {
    let (from, length, thread) = (Wide::of(batch, 0), Wide::of(batch, 1), Wide::of(batch, 2));
    let state = Words::of(batch, 3, thread_state);
    let mut decoded = Decoded::of_few();
    for row in 0..batch.num_rows() {
        let state = state.get(row).unwrap_or(ThreadState::Unknown);
        let length = length.get(row);
        let interval = interval(from.or_zero(row), length, last);
        let stay = ThreadStay { state, lwp: None, waits_for: None, object: 0, end: None };
        let row = (thread.or_zero(row) as u64, interval, stay);
        decoded.push_if(state == ThreadState::Unknown, row, length.map(|_| interval.to));
    }
    decoded
}

/// Decodes columns [`OF_PLACES`]. Keeps only the rows that the search for pairs needs.
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

/// Decodes these columns, and keeps the rows whose place and interval `is_of_use` selects. Rows without an end last to the end of the
/// trace.
pub(super) fn of_lwps(
    batch: &RecordBatch,
    last: i64,
    mut is_of_use: impl FnMut(usize, Interval) -> bool,
) -> Decoded<LwpRow> {
    let (from, length, lwp) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
    let state = Words::of(batch, 3, lwp_state);
    let cpu = Small::of(batch, 4);
    let end = Words::of(batch, 5, end_reason);
    let mut decoded = Decoded::new(batch);
    for row in 0..batch.num_rows() {
        let length = length.get(row);
        let interval = interval(from.or_zero(row), length, last);
        decoded.end(length.map(|_| interval.to));
        if !is_of_use(row, interval) {
            continue;
        }
        let stay = LwpStay {
            state: state.get(row).unwrap_or(LwpState::Unknown),
            cpu: cpu.get(row),
            end: end.get(row).flatten(),
        };
        decoded.rows.push((lwp.or_zero(row), interval, stay));
    }
    decoded
}

fn lwp_state(word: &str) -> LwpState {
    LwpState::ALL.iter().copied().find(|state| state.name() == word).unwrap_or(LwpState::Unknown)
}

/// Which rows matter at these times: those that touch one, and of each CPU those before and after it. They show when the CPU was
/// idle in it. The first and the last row on each CPU are among them, because what is before and after the batch is not known here.
pub(super) fn lwps_near(batch: &RecordBatch, last: i64, times: &Times) -> Vec<bool> {
    let (from, length) = (Wide::of(batch, 0), Wide::of(batch, 1));
    let is_running = Words::of(batch, 3, |word| lwp_state(word) == LwpState::Running);
    let cpu = Small::of(batch, 4);
    let mut matters = vec![false; batch.num_rows()];
    let mut touched = times.touched();
    // The last row on each CPU so far, and its end.
    let mut last_on_cpu: HashMap<u32, (usize, i64), RandomState> = HashMap::default();
    for row in 0..batch.num_rows() {
        let interval = interval(from.or_zero(row), length.get(row), last);
        matters[row] |= touched.has(interval.from, interval.to);
        let Some(cpu) = cpu.get(row).filter(|_| is_running.get(row) == Some(true)) else { continue };
        match last_on_cpu.insert(cpu, (row, interval.to)) {
            None => matters[row] = true,
            Some((before, left)) => {
                if touched.has(left.min(interval.from), left.max(interval.from)) {
                    matters[before] = true;
                    matters[row] = true;
                }
            }
        }
    }
    last_on_cpu.into_values().for_each(|(row, _)| matters[row] = true);
    matters
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, DictionaryArray, Int32Array, Int64Array};
    use arrow::datatypes::Int32Type;
    use sigmund_measures::{History, Slice, Slicer, Words};

    use super::*;

    const LAST: i64 = 2000;
    const CPUS: u32 = 3;

    /// Numbers drawn from a seed.
    struct Drawn(u64);

    impl Drawn {
        fn below(&mut self, most: i64) -> i64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % most as u64) as i64
        }
    }

    /// Rows sorted by their ends: on each CPU, LWPs run one after the other; between two, it is idle, or nothing is known of it.
    fn rows(drawn: &mut Drawn) -> Vec<LwpRow> {
        let mut rows = Vec::new();
        for cpu in 0..CPUS {
            let mut at = drawn.below(100);
            while at < LAST {
                let to = (at + 1 + drawn.below(20)).min(LAST);
                let lwp = 70 + drawn.below(9) as u32;
                let end = if drawn.below(3) == 0 { EndReason::Lost } else { EndReason::Slept };
                let stay = LwpStay { state: LwpState::Running, cpu: Some(cpu), end: Some(end) };
                rows.push((lwp, Interval::new(at, to), stay));
                at = to + drawn.below(2) * drawn.below(200);
            }
        }
        rows.sort_by_key(|(_, interval, _)| interval.to);
        rows
    }

    fn batch(rows: &[LwpRow]) -> RecordBatch {
        fn wide(of: impl Iterator<Item = i64>) -> ArrayRef {
            Arc::new(of.collect::<Int64Array>())
        }
        fn small(of: impl Iterator<Item = u32>) -> ArrayRef {
            Arc::new(of.map(|number| number as i32).collect::<Int32Array>())
        }
        fn words<'w>(of: impl Iterator<Item = &'w str>) -> ArrayRef {
            Arc::new(of.collect::<DictionaryArray<Int32Type>>())
        }
        let rows = rows.iter();
        RecordBatch::try_from_iter([
            ("ts_tick", wide(rows.clone().map(|row| row.1.from))),
            ("dur_tick", wide(rows.clone().map(|row| row.1.ticks()))),
            ("lwp", small(rows.clone().map(|row| row.0))),
            ("state", words(rows.clone().map(|row| row.2.state.name()))),
            ("cpu", small(rows.clone().filter_map(|row| row.2.cpu))),
            ("end_reason", words(rows.filter_map(|row| row.2.end).map(EndReason::name))),
        ])
        .unwrap()
    }

    /// Who had each CPU at these times.
    fn on_cpus(history: &History, times: &Times, within: Interval) -> Vec<(u32, Interval, Option<u32>)> {
        let times =
            times.as_slice().iter().filter_map(|(from, to)| Interval::new(*from, *to).clipped(within));
        let of = |(time, cpu): (Interval, u32)| {
            let parts = history.on_cpu.of(cpu.into()).partition(time);
            parts.map(move |(part, lwp)| (cpu, part, lwp.copied())).collect::<Vec<_>>()
        };
        times.flat_map(|time| (0..CPUS).map(move |cpu| (time, cpu))).flat_map(of).collect()
    }

    #[test]
    fn rows_near_times_show_who_had_the_cpus_then() {
        let mut kept = 0;
        for seed in 0..200 {
            let mut drawn = Drawn(seed);
            let rows = rows(&mut drawn);
            let times = (0..1 + drawn.below(4)).map(|_| {
                let from = drawn.below(LAST);
                (from, from + 1 + drawn.below(60))
            });
            let times = Times::union(times.collect());
            let parts: Vec<RecordBatch> = rows.chunks(40).map(batch).collect();
            let slicer = |is_near: bool| {
                let mut slicer =
                    Slicer::new(Some(Interval::new(0, LAST)), Arc::default(), Default::default());
                for part in parts.iter().rev() {
                    let matters = lwps_near(part, LAST, &times);
                    let decoded = of_lwps(part, LAST, |row, _| !is_near || matters[row]);
                    slicer.lwps(decoded.rows, &Words::default());
                }
                slicer
            };
            kept += slicer(true).rows() * 100 / rows.len();
            let (all, near) = (slicer(false).into_history(), slicer(true).into_history());
            assert_eq!(
                on_cpus(&near, &times, Interval::ALL),
                on_cpus(&all, &times, Interval::ALL),
                "seed {seed}"
            );
            let (mut all, mut near, mut to) = (slicer(false), slicer(true), i64::MAX);
            for from in [LAST * 2 / 3, LAST / 3, i64::MIN] {
                let slice = Slice { interval: Interval { from, to }, window: Interval::ALL };
                let (all, near) = (all.slice(slice), near.slice(slice));
                assert_eq!(
                    on_cpus(&near, &times, slice.interval),
                    on_cpus(&all, &times, slice.interval),
                    "seed {seed}, slice from {from}"
                );
                to = from;
            }
        }
        assert!(kept / 200 < 60, "{} % of the rows", kept / 200);
    }
}
