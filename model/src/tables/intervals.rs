//! Intervals that the merge pairs from events: wakeups, interrupts, system calls, spans, locks; and counters.

use super::{
    ColumnType::{Bool, Int32, Int64, Numbers, Text, Word},
    Table,
    columns::{known, maybe},
};

/// One row is a wakeup.
pub const WAKEUPS: Table = Table {
    name: "wakeups",
    doc: "One row is a wakeup: of an LWP by the kernel (KERN), or of a user thread by the runtime (USER, an unpark). Sorted by the dispatch that follows.",
    columns: &[
        known("ts_tick", Int64, "When: sched_waking, or sched_wakeup where only that is traced; the unpark."),
        known("level", Word, "KERN or USER."),
        maybe("context", Word, "What the waking CPU was doing: task, irq, softirq, nmi or idle."),
        maybe("waker_lwp", Int32, "The LWP on the waking CPU; 0 is the idle task."),
        maybe(
            "waker_thread",
            Int64,
            "The user thread that woke it; NULL in interrupts, and if none was mounted.",
        ),
        maybe("lwp", Int32, "The LWP that was woken; NULL on level USER."),
        maybe("thread", Int64, "The user thread that was unparked, or that the woken LWP carries."),
        maybe("cpu", Int32, "The CPU it was woken from."),
        maybe("target_cpu", Int32, "The CPU whose run queue the LWP was put in."),
        maybe(
            "latency_tick",
            Int64,
            "Time until the LWP was on a CPU, or the user thread on an LWP; NULL if that was not seen, or if it was still running.",
        ),
    ],
};

/// One row is an interrupt.
pub const INTERRUPTS: Table = Table {
    name: "interrupts",
    doc: "One row is an interrupt or softirq on a CPU, from the entry of its handler to the exit. They nest.",
    columns: &[
        known("ts_tick", Int64, "Its start."),
        known("dur_tick", Int64, "Its length, as far as it is known: see end_reason."),
        known("cpu", Int32, "The CPU."),
        known("kind", Word, "irq, softirq, timer, ipi, vector or nmi."),
        maybe("number", Int64, "Its number: of the interrupt, the softirq or the vector."),
        maybe("name", Word, "Its handler, or the softirq: virtio0-input.0, TIMER, local_timer."),
        maybe("lwp", Int32, "The LWP that it interrupted; 0 is the idle task."),
        maybe("thread", Int64, "The user thread that it interrupted."),
        known("depth", Int32, "Nesting depth: the number of interrupts of this CPU that it is inside of."),
        known(
            "end_reason",
            Word,
            "returned; unseen (the exit is missing: known up to the last event inside of it); lost (events are missing from here on); trace-end.",
        ),
        maybe("parent_tick", Int64, "The start of the interrupt that it interrupted; NULL if there is none."),
    ],
};

/// One row is a system call.
pub const SYSCALLS: Table = Table {
    name: "syscalls",
    doc: "One row is a system call of an LWP, from its entry to its exit.",
    columns: &[
        known("ts_tick", Int64, "Its start."),
        known("dur_tick", Int64, "Its length, as far as it is known: see end_reason."),
        known("lwp", Int32, "The LWP."),
        maybe("thread", Int64, "The user thread that was mounted at the entry."),
        maybe("number", Int64, "Its number, if the source has it."),
        maybe("name", Word, "Its name: futex, read, ..."),
        known("args", Numbers, "Its arguments, as far as they were recorded; zeros at the end are left out."),
        maybe(
            "ret",
            Int64,
            "Its return value; a negative one is an error number. NULL if it did not return.",
        ),
        maybe(
            "off_cpu_tick",
            Int64,
            "The part of its length in which the LWP was on no CPU; NULL if that is not known. Usually 0, so it is stored instead of on_cpu_tick, which views compute from it.",
        ),
        known(
            "end_reason",
            Word,
            "returned; exit (the LWP ended in it); unseen (the exit is missing: known up to the LWP's last switch in it); lost (events are missing from here on); trace-end.",
        ),
    ],
};

/// One row is a span or a function call.
pub const SPANS: Table = Table {
    name: "spans",
    doc: "One row is a span that the program named, or a traced function, from its beginning to its end.",
    columns: &[
        known("ts_tick", Int64, "Its start."),
        known("dur_tick", Int64, "Its length, as far as it is known: see end_reason."),
        maybe("thread", Int64, "The user thread that it belongs to; NULL if its LWP has no user threads."),
        maybe("lwp", Int32, "The LWP on which it began."),
        known("kind", Word, "span or function."),
        maybe("name", Text, "Its name."),
        known(
            "depth",
            Int32,
            "Nesting depth: the number of spans and functions of the same thread that it is inside of.",
        ),
        maybe(
            "active_tick",
            Int64,
            "The part of its length in which its thread was active (for an LWP without user threads: on a CPU); NULL if that is not known.",
        ),
        maybe("source", Text, "Its place in the source code: FILE:LINE."),
        known(
            "end_reason",
            Word,
            "returned; enclosing (its own end is missing: it ended with the span around it, or before); exit (its thread ended); lost (events are missing from here on); trace-end.",
        ),
        maybe(
            "parent_tick",
            Int64,
            "The start of the span or function directly around it, whose depth is less by one; NULL if there is none.",
        ),
    ],
};

/// One row is a request for a lock.
pub const LOCKS: Table = Table {
    name: "locks",
    doc: "One row is a request for a lock: the wait, if it was contended, and the hold, if it was recorded. Also included are waits of threads for futexes, taken from their system calls, and waits of the kernel for its own locks, which may be nested in each other and in a wait for a futex.",
    columns: &[
        known("ts_tick", Int64, "The request."),
        maybe(
            "wait_tick",
            Int64,
            "Length of the wait, as far as it is known: see end_reason; 0 if it was not contended; NULL if the wait may have begun before the recorded request, or if its end was not seen.",
        ),
        maybe(
            "hold_tick",
            Int64,
            "Length of the hold that follows, as far as it is known: see end_reason; NULL if holds were not recorded.",
        ),
        maybe("thread", Int64, "The user thread, if there is one; NULL in an interrupt."),
        maybe(
            "lwp",
            Int32,
            "The LWP that it was on at the request; NULL in an interrupt, and on an idle CPU.",
        ),
        maybe("cpu", Int32, "The CPU at the request."),
        known("object", Int64, "The address of the lock, in its process or in the kernel."),
        known(
            "kind",
            Word,
            "mutex, rwlock-read, rwlock-write or futex; of a lock of the kernel kernel-mutex, kernel-spinlock, kernel-rwsem-read and so on.",
        ),
        maybe("holder", Int64, "The user thread that held it when the wait began; NULL if it is not known."),
        maybe("holder_lwp", Int32, "The LWP that held it then, if that LWP carries no user threads."),
        known("contended", Bool, "Whether it is known to have waited; also false if wait_tick is NULL."),
        maybe(
            "call_site",
            Text,
            "The innermost span or function that contains the request; of a lock of the kernel the system call, if it was recorded.",
        ),
        known(
            "end_reason",
            Word,
            "released; woken (the wait is over; holds were not recorded); exit; unseen (another thread acquired it, and no release was seen; or the LWP ended, and no end of the wait was seen); lost (events are missing from here on); trace-end.",
        ),
    ],
};

/// One row is a new value of a counter.
pub const COUNTERS: Table = Table {
    name: "counters",
    doc: "One row is a new value of a counter, which holds until the next one of the same kind and CPU or process.",
    columns: &[
        known("ts_tick", Int64, "When it changed."),
        known(
            "kind",
            Word,
            "run-queue (runnable LWPs that wait for a CPU) or ready-queue (ready user threads of a process).",
        ),
        maybe("cpu", Int32, "The CPU whose run queue it is."),
        maybe("pid", Int32, "The process whose ready queue it is; NULL if that is not known."),
        known("value", Int64, "Its new value; of a queue, how many are known to be in it."),
    ],
};
