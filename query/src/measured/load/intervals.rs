//! Wakeups, interrupts, system calls, spans and locks.

use arrow::array::Array;
use sigmund_measures::{Context, History, Interrupt, Interval, LockRequest, Span, Syscall, Wakeup};
use sigmund_model::{
    EndReason,
    tables::{INTERRUPTS, LOCKS, SPANS, SYSCALLS, WAKEUPS},
};
use sigmund_sql::SuperTrace;

use super::{
    cells::{Small, Texts, Wide, Words, booleans, interval, read, read_lasting},
    states::end_reason,
};
use crate::Error;

/// Those that happen in the window, or whose dispatch does.
pub(super) async fn wakeups(
    trace: &SuperTrace,
    window: Option<Interval>,
    history: &mut History,
) -> Result<(), Error> {
    let columns = [
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
    read_lasting(trace, &WAKEUPS, "latency_tick", &columns, window, |batch| {
        let tick = Wide::of(batch, 0);
        let is_unpark = Words::of(batch, 1, |word| word == "USER");
        let context = Words::of(batch, 2, Context::from_name);
        let (waker_lwp, waker_thread) = (Small::of(batch, 3), Wide::of(batch, 4));
        let (lwp, thread) = (Small::of(batch, 5), Wide::of(batch, 6));
        let (cpu, target_cpu, latency) = (Small::of(batch, 7), Small::of(batch, 8), Wide::of(batch, 9));
        for row in 0..batch.num_rows() {
            history.wakeups.push(Wakeup {
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
            });
        }
    })
    .await
}

pub(super) async fn interrupts(
    trace: &SuperTrace,
    window: Option<Interval>,
    history: &mut History,
) -> Result<(), Error> {
    let columns =
        ["ts_tick", "dur_tick", "cpu", "kind", "number", "name", "lwp", "thread", "depth", "end_reason"];
    read(trace, &INTERRUPTS, &columns, window, |batch| {
        let (from, length, cpu) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
        let other = history.words.intern("irq");
        let kind = Words::of(batch, 3, |word| history.words.intern(word));
        let number = Wide::of(batch, 4);
        let name = Words::of(batch, 5, |word| history.words.intern(word));
        let (lwp, thread, depth) = (Small::of(batch, 6), Wide::of(batch, 7), Small::of(batch, 8));
        let end = Words::of(batch, 9, end_reason);
        for row in 0..batch.num_rows() {
            history.interrupts.push(Interrupt {
                interval: interval(from.or_zero(row), length.get(row), from.or_zero(row)),
                cpu: cpu.or_zero(row),
                kind: kind.get(row).unwrap_or(other),
                number: number.get(row),
                name: name.get(row),
                lwp: lwp.get(row),
                thread: thread.thread(row),
                depth: depth.or_zero(row),
                end: end.get(row).flatten().unwrap_or(EndReason::Lost),
            });
        }
    })
    .await
}

pub(super) async fn syscalls(
    trace: &SuperTrace,
    window: Option<Interval>,
    history: &mut History,
) -> Result<(), Error> {
    let columns =
        ["ts_tick", "dur_tick", "lwp", "thread", "number", "name", "ret", "off_cpu_tick", "end_reason"];
    read(trace, &SYSCALLS, &columns, window, |batch| {
        let (from, length, lwp) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
        let (thread, number) = (Wide::of(batch, 3), Wide::of(batch, 4));
        let name = Words::of(batch, 5, |word| history.words.intern(word));
        let (ret, off_cpu) = (Wide::of(batch, 6), Wide::of(batch, 7));
        let end = Words::of(batch, 8, end_reason);
        for row in 0..batch.num_rows() {
            let name = name.get(row).unwrap_or_else(|| {
                let number = number.get(row).map_or("unknown".into(), |number| format!("syscall {number}"));
                history.words.intern(&number)
            });
            history.syscalls.push(Syscall {
                interval: interval(from.or_zero(row), length.get(row), from.or_zero(row)),
                lwp: lwp.or_zero(row),
                thread: thread.thread(row),
                name,
                ret: ret.get(row),
                off_cpu: off_cpu.get(row),
                end: end.get(row).flatten().unwrap_or(EndReason::Lost),
            });
        }
    })
    .await
}

pub(super) async fn spans(
    trace: &SuperTrace,
    window: Option<Interval>,
    history: &mut History,
) -> Result<(), Error> {
    let columns = [
        "ts_tick",
        "dur_tick",
        "thread",
        "lwp",
        "kind",
        "name",
        "depth",
        "active_tick",
        "source",
        "end_reason",
    ];
    read(trace, &SPANS, &columns, window, |batch| {
        let (from, length) = (Wide::of(batch, 0), Wide::of(batch, 1));
        let (thread, lwp) = (Wide::of(batch, 2), Small::of(batch, 3));
        let is_function = Words::of(batch, 4, |word| word == "function");
        let (name, depth, active) = (Texts::of(batch, 5), Small::of(batch, 6), Wide::of(batch, 7));
        let source = Texts::of(batch, 8);
        let end = Words::of(batch, 9, end_reason);
        for row in 0..batch.num_rows() {
            history.spans.push(Span {
                interval: interval(from.or_zero(row), length.get(row), from.or_zero(row)),
                thread: thread.thread(row),
                lwp: lwp.get(row),
                is_function: is_function.get(row).unwrap_or_default(),
                name: name.get(row).map(|name| history.words.intern(name)),
                depth: depth.or_zero(row),
                active: active.get(row),
                source: source.get(row).map(|source| history.words.intern(source)),
                end: end.get(row).flatten().unwrap_or(EndReason::Lost),
            });
        }
    })
    .await
}

pub(super) async fn locks(trace: &SuperTrace, history: &mut History) -> Result<(), Error> {
    let columns = [
        "ts_tick",
        "wait_tick",
        "hold_tick",
        "thread",
        "lwp",
        "object",
        "kind",
        "holder",
        "holder_lwp",
        "contended",
        "call_site",
        "end_reason",
    ];
    read(trace, &LOCKS, &columns, None, |batch| {
        let (tick, wait, hold) = (Wide::of(batch, 0), Wide::of(batch, 1), Wide::of(batch, 2));
        let (thread, lwp, object) = (Wide::of(batch, 3), Small::of(batch, 4), Wide::of(batch, 5));
        let other = history.words.intern("unknown");
        let kind = Words::of(batch, 6, |word| history.words.intern(word));
        let (holder, holder_lwp) = (Wide::of(batch, 7), Small::of(batch, 8));
        let (contended, call_site) = (booleans(batch, 9), Texts::of(batch, 10));
        let end = Words::of(batch, 11, end_reason);
        for row in 0..batch.num_rows() {
            history.locks.push(LockRequest {
                tick: tick.or_zero(row),
                wait: wait.get(row),
                hold: hold.get(row),
                thread: thread.thread(row),
                lwp: lwp.get(row),
                object: object.or_zero(row),
                kind: kind.get(row).unwrap_or(other),
                holder: holder.thread(row),
                holder_lwp: holder_lwp.get(row),
                is_contended: contended.is_valid(row) && contended.value(row),
                call_site: call_site.get(row).map(|site| history.words.intern(site)),
                end: end.get(row).flatten().unwrap_or(EndReason::Lost),
            });
        }
    })
    .await
}
