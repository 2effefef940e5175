//! Wakeups, interrupts, system calls, spans and locks.

use std::collections::BTreeSet;

use arrow::array::{Array, RecordBatch};
use sigmund_measures::{Context, Interrupt, LockRequest, Row, Span, Syscall, Wakeup, Word};
use sigmund_model::{EndReason, names::has_waits_only};

use super::{
    cells::{Small, Wide, Words, booleans, interval},
    reader::Decoded,
    states::end_reason,
};

/// Columns of `wakeups`.
pub(super) const OF_WAKEUPS: &[&str] = &[
    "ts_tick",
    "level",
    "context",
    "waker_lwp",
    "waker_thread",
    "lwp",
    "thread",
    "cpu",
    "target_cpu",
    "latency_tick",
];

/// Rows of these columns.
pub(super) fn wakeups(batch: &RecordBatch) -> Decoded<Wakeup> {
    let mut decoded = Decoded::new(batch);
    let tick = Wide::of(batch, 0);
    let is_unpark = Words::of(batch, 1, |word| word == "USER");
    let context = Words::of(batch, 2, Context::from_name);
    let (waker_lwp, waker_thread) = (Small::of(batch, 3), Wide::of(batch, 4));
    let (lwp, thread) = (Small::of(batch, 5), Wide::of(batch, 6));
    let (cpu, target_cpu, latency) = (Small::of(batch, 7), Small::of(batch, 8), Wide::of(batch, 9));
    for row in 0..batch.num_rows() {
        let found = Wakeup {
            tick: tick.or_zero(row),
            is_unpark: is_unpark.get(row).unwrap_or_default(),
            context: context.get(row).unwrap_or(Context::Unknown),
            waker_lwp: waker_lwp.get(row),
            waker_thread: waker_thread.thread(row),
            lwp: lwp.get(row),
            thread: thread.thread(row),
            cpu: cpu.get(row),
            target_cpu: target_cpu.get(row),
            latency: latency.get(row),
        };
        decoded.push(found, found.latency.map(|_| found.interval().to));
    }
    decoded
}

/// Columns of `interrupts`.
pub(super) const OF_INTERRUPTS: &[&str] =
    &["ts_tick", "dur_tick", "cpu", "kind", "number", "name", "lwp", "thread", "depth", "end_reason"];

/// Rows of these columns.
pub(super) fn interrupts(batch: &RecordBatch) -> Decoded<Interrupt> {
    let mut decoded = Decoded::new(batch);
    let (from, length, cpu) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
    let other = decoded.words.intern("irq");
    let kind = Words::of(batch, 3, |word| decoded.words.intern(word));
    let number = Wide::of(batch, 4);
    let name = Words::of(batch, 5, |word| decoded.words.intern(word));
    let (lwp, thread, depth) = (Small::of(batch, 6), Wide::of(batch, 7), Small::of(batch, 8));
    let end = Words::of(batch, 9, end_reason);
    for row in 0..batch.num_rows() {
        let found = Interrupt {
            interval: interval(from.or_zero(row), length.get(row), from.or_zero(row)),
            cpu: cpu.or_zero(row),
            kind: kind.get(row).unwrap_or(other),
            number: number.get(row),
            name: name.get(row),
            lwp: lwp.get(row),
            thread: thread.thread(row),
            depth: depth.or_zero(row),
            end: end.get(row).flatten().unwrap_or(EndReason::Lost),
        };
        decoded.push(found, Some(found.interval.to));
    }
    decoded
}

/// Columns of `syscalls`.
pub(super) const OF_SYSCALLS: &[&str] =
    &["ts_tick", "dur_tick", "lwp", "thread", "number", "name", "ret", "off_cpu_tick", "end_reason"];

/// Rows of these columns.
pub(super) fn syscalls(batch: &RecordBatch) -> Decoded<Syscall> {
    let mut decoded = Decoded::new(batch);
    let (from, length, lwp) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
    let (thread, number) = (Wide::of(batch, 3), Wide::of(batch, 4));
    let name = Words::of(batch, 5, |word| decoded.words.intern(word));
    let (ret, off_cpu) = (Wide::of(batch, 6), Wide::of(batch, 7));
    let end = Words::of(batch, 8, end_reason);
    for row in 0..batch.num_rows() {
        let name = name.get(row).unwrap_or_else(|| unnamed(&mut decoded.words, number.get(row)));
        let found = Syscall {
            interval: interval(from.or_zero(row), length.get(row), from.or_zero(row)),
            lwp: lwp.or_zero(row),
            thread: thread.thread(row),
            name,
            ret: ret.get(row),
            off_cpu: off_cpu.get(row),
            end: end.get(row).flatten().unwrap_or(EndReason::Lost),
        };
        decoded.push(found, Some(found.interval.to));
    }
    decoded
}

/// Columns of `syscalls`, for those in which an LWP may have slept.
pub(super) const OF_CALLS_ASLEEP: &[&str] = &["ts_tick", "dur_tick", "lwp", "number", "name", "off_cpu_tick"];

/// Rows of these columns.
pub(super) fn calls_asleep(batch: &RecordBatch) -> Decoded<Syscall> {
    let mut decoded = Decoded::new(batch);
    let (from, length, lwp) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
    let (number, off_cpu) = (Wide::of(batch, 3), Wide::of(batch, 5));
    let name = Words::of(batch, 4, |word| decoded.words.intern(word));
    for row in 0..batch.num_rows() {
        let interval = interval(from.or_zero(row), length.get(row), from.or_zero(row));
        let off_cpu = off_cpu.get(row);
        decoded.end(Some(interval.to));
        if off_cpu == Some(0) {
            continue;
        }
        let name = name.get(row).unwrap_or_else(|| unnamed(&mut decoded.words, number.get(row)));
        let (thread, ret, end) = (None, None, EndReason::Lost);
        decoded.rows.push(Syscall { interval, lwp: lwp.or_zero(row), thread, name, ret, off_cpu, end });
    }
    decoded
}

/// The name of a system call that has none in the trace.
fn unnamed(words: &mut sigmund_measures::Words, number: Option<i64>) -> Word {
    words.intern(&number.map_or("unknown".into(), |number| format!("syscall {number}")))
}

/// Columns of `spans`.
pub(super) const OF_SPANS: &[&str] =
    &["ts_tick", "dur_tick", "thread", "lwp", "kind", "name", "depth", "active_tick", "source", "end_reason"];

/// Decodes these columns. With `only`, keeps the spans of that name, and of each other name only the first row. So an
/// error message can list the names that exist.
pub(super) fn spans(batch: &RecordBatch, only: Option<&str>) -> Decoded<Span> {
    let mut decoded = Decoded::new(batch);
    let only = only.map(|name| decoded.words.intern(name));
    let mut others = BTreeSet::new();
    let (from, length) = (Wide::of(batch, 0), Wide::of(batch, 1));
    let (thread, lwp) = (Wide::of(batch, 2), Small::of(batch, 3));
    let is_function = Words::of(batch, 4, |word| word == "function");
    let name = Words::of(batch, 5, |name| decoded.words.intern(name));
    let (depth, active) = (Small::of(batch, 6), Wide::of(batch, 7));
    let source = Words::of(batch, 8, |source| decoded.words.intern(source));
    let end = Words::of(batch, 9, end_reason);
    for row in 0..batch.num_rows() {
        let found = Span {
            interval: interval(from.or_zero(row), length.get(row), from.or_zero(row)),
            thread: thread.thread(row),
            lwp: lwp.get(row),
            is_function: is_function.get(row).unwrap_or_default(),
            name: name.get(row),
            depth: depth.or_zero(row),
            active: active.get(row),
            source: source.get(row),
            end: end.get(row).flatten().unwrap_or(EndReason::Lost),
        };
        let is_of_use =
            only.is_none() || found.name == only || found.name.is_some_and(|name| others.insert(name));
        decoded.push_if(is_of_use, found, Some(found.interval.to));
    }
    decoded
}

/// Columns of `locks`.
pub(super) const OF_LOCKS: &[&str] = &[
    "ts_tick",
    "wait_tick",
    "hold_tick",
    "thread",
    "lwp",
    "cpu",
    "object",
    "kind",
    "holder",
    "holder_lwp",
    "contended",
    "call_site",
    "end_reason",
];

/// Decodes these columns. If `only_waits`, keeps only requests that had to wait.
pub(super) fn locks(batch: &RecordBatch, only_waits: bool) -> Decoded<LockRequest> {
    let mut decoded = Decoded::new(batch);
    let (tick, wait, hold) = (Wide::of(batch, 0), Wide::of(batch, 1), Wide::of(batch, 2));
    let (thread, lwp, cpu, object) =
        (Wide::of(batch, 3), Small::of(batch, 4), Small::of(batch, 5), Wide::of(batch, 6));
    let other = (decoded.words.intern("unknown"), false);
    let kind = Words::of(batch, 7, |word| (decoded.words.intern(word), has_waits_only(word)));
    let (holder, holder_lwp) = (Wide::of(batch, 8), Small::of(batch, 9));
    let contended = booleans(batch, 10);
    let call_site = Words::of(batch, 11, |site| decoded.words.intern(site));
    let end = Words::of(batch, 12, end_reason);
    for row in 0..batch.num_rows() {
        let (kind, has_waits_only) = kind.get(row).unwrap_or(other);
        let found = LockRequest {
            tick: tick.or_zero(row),
            wait: wait.get(row),
            hold: hold.get(row),
            thread: thread.thread(row),
            lwp: lwp.get(row),
            cpu: cpu.get(row),
            object: object.or_zero(row),
            kind,
            holder: holder.thread(row),
            holder_lwp: holder_lwp.get(row),
            is_contended: contended.is_valid(row) && contended.value(row),
            call_site: call_site.get(row),
            end: end.get(row).flatten().unwrap_or(EndReason::Lost),
        };
        let is_over = has_waits_only && found.wait.is_some() && found.end != EndReason::Unseen;
        let is_ended = found.hold.is_some() || is_over;
        let end = is_ended.then(|| found.interval().to);
        decoded.push_if(!only_waits || found.is_contended, found, end);
    }
    decoded
}
