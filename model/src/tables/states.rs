//! States of user threads and LWPs, from which active time is summed.

use super::{
    ColumnType::{Int32, Int64, Word},
    Table,
    columns::{known, maybe},
};

/// One row is an interval in which a user thread executed.
pub const ACTIVE: Table = Table {
    name: "active",
    doc: "One row is an interval in which a user thread certainly executed: mounted on an LWP that was on a CPU. Where events are missing it may have executed without a row here; its state is then unknown or mounted.",
    columns: &[
        known("ts_tick", Int64, "Its start."),
        known("dur_tick", Int64, "Its length. The sum over a thread is the thread's active time."),
        known("thread", Int64, "The user thread."),
        known("lwp", Int32, "The LWP that carried it."),
        maybe("cpu", Int32, "The CPU."),
        known(
            "end_reason",
            Word,
            "What ended it: yield, quantum, block, exit, preempted, slept, lost (events are missing from here on), trace-end, ...",
        ),
    ],
};

/// One row is an interval in which a user thread was in one state.
pub const THREAD_STATES: Table = Table {
    name: "thread_states",
    doc: "One row is a user thread in one state. The states of a thread leave no gaps: their lengths sum to its lifetime.",
    columns: &[
        known("ts_tick", Int64, "Its start."),
        maybe(
            "dur_tick",
            Int64,
            "Its length, to the end of the trace if nothing ended it; NULL for exited, which never ends.",
        ),
        known("thread", Int64, "The user thread."),
        known(
            "state",
            Word,
            "new, ready, active, stalled, in-kernel, stopped, off-cpu, mounted, blocked, unmounted, exited, or unknown: from a gap in the trace, or from the last event that confirmed a state that was contradicted, to the next event that shows it.",
        ),
        maybe("lwp", Int32, "The LWP it is mounted on."),
        maybe("cpu", Int32, "The CPU, if it is active."),
        maybe(
            "blocked_on",
            Int64,
            "The object it waits for, if it is blocked and the runtime recorded it: its address; for join the user thread, for io the descriptor, for sleep the nanoseconds that were asked for, for scope the number of its team, for select the channel of its first operation. NULL for park.",
        ),
        maybe(
            "blocked_for",
            Word,
            "The kind of that object, if it is blocked and the runtime recorded it: mutex, rwlock-read, rwlock-write, condvar, semaphore, barrier, channel, channel-space, once-cell, join, sleep, io, scope, park, future, notify or select.",
        ),
        maybe("end_reason", Word, "What ended it; NULL for exited."),
    ],
};

/// One row is an interval in which an LWP was in one state.
pub const LWP_STATES: Table = Table {
    name: "lwp_states",
    doc: "One row is an LWP in one state.",
    columns: &[
        known("ts_tick", Int64, "Its start."),
        maybe(
            "dur_tick",
            Int64,
            "Its length, to the end of the trace if nothing ended it; NULL for exited, which never ends.",
        ),
        known("lwp", Int32, "The LWP."),
        known(
            "state",
            Word,
            "running, runnable, sleeping, disk-sleep, idle (a kernel thread that waits for work), stopped, exited, off-cpu, or unknown: from a gap in the trace, or from the last event that confirmed a state that was contradicted, to the next event that shows it.",
        ),
        maybe(
            "cpu",
            Int32,
            "The CPU it runs on, or left; of a runnable LWP, the CPU whose run queue it was put in.",
        ),
        maybe(
            "end_reason",
            Word,
            "What ended it; NULL for exited. If a running LWP left its CPU while runnable: sched-yield, preempted (any other case), or runnable (one of these two: its system calls are not traced).",
        ),
        maybe(
            "end_state",
            Word,
            "The kernel's letters for the state in which a running LWP left its CPU: R, S, D, I, T, X, R+ (preempted) ...; also set in the runnable state that follows. NULL for other states, and if the source has none.",
        ),
    ],
};
