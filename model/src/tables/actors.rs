//! User threads, LWPs, processes and CPUs.

use super::{
    ColumnType::{Bool, Int32, Int64, Text},
    Table,
    columns::{known, maybe},
};

/// One row is a user thread.
pub const THREADS: Table = Table {
    name: "threads",
    doc: "One row is a user thread.",
    columns: &[
        known("thread", Int64, "Its number."),
        maybe("name", Text, "Its name."),
        maybe("pid", Int32, "Its process."),
        known("ts_tick", Int64, "Its creation, or the first event that shows it."),
        maybe("dur_tick", Int64, "Its lifetime; NULL if it never ended."),
        maybe("created_by", Int64, "The user thread that created it."),
        known(
            "active_tick",
            Int64,
            "Its active time, as far as it is known: events may be missing. The same holds for the columns that follow.",
        ),
        known("dispatches", Int64, "Times it was mounted on an LWP."),
        known("migrations", Int64, "Times it was resumed on a different LWP."),
        maybe(
            "stalls",
            Int64,
            "Times its LWP was preempted while it was mounted; NULL if its LWP left a CPU in an unknown state, or runnable where no system calls are traced.",
        ),
        known("recorded_events", Int64, "User events it recorded."),
        known("recorded_words", Int64, "The words of 8 bytes that the parameters of these events took."),
    ],
};

/// One row is an LWP that recorded an event or appears in one.
pub const LWPS: Table = Table {
    name: "lwps",
    doc: "One row is an LWP.",
    columns: &[
        known("lwp", Int32, "Its tid."),
        maybe("name", Text, "Its last known command name."),
        maybe("pid", Int32, "Its process; NULL if neither the kernel nor a user trace reports it."),
        known("ts_tick", Int64, "Its creation, or the first event that shows it."),
        maybe("dur_tick", Int64, "Its lifetime; NULL if it never ended."),
        known("carries_threads", Bool, "Whether it belongs to a traced runtime or recorded user events."),
        known("on_cpu_tick", Int64, "Its time on CPUs, by the kernel's switches, as far as it is known."),
        known("active_tick", Int64, "The part of on_cpu_tick with a user thread mounted."),
        known(
            "unmounted_tick",
            Int64,
            "The other part of on_cpu_tick, counted independently: no user thread mounted, or none that is known.",
        ),
        maybe(
            "cpu_time_ns",
            Int64,
            "Its CPU time by its own CLOCK_THREAD_CPUTIME_ID, from attach to detach.",
        ),
        maybe(
            "attached_on_cpu_tick",
            Int64,
            "Its time on CPUs between attach and detach: comparable to cpu_time_ns.",
        ),
        known("events", Int64, "Events it recorded, on both levels."),
        known(
            "witness_agree",
            Int64,
            "Its user events whose CPU is the same by the probe and by sched_switch.",
        ),
        known("witness_disagree", Int64, "Its user events whose CPU differs between the two."),
        known("lost_events", Int64, "User events it could not record."),
        known(
            "recorded_events",
            Int64,
            "User events it recorded while no user thread was known to be mounted.",
        ),
        known("recorded_words", Int64, "The words of 8 bytes that the parameters of these events took."),
    ],
};

/// One row is a process.
pub const PROCESSES: Table = Table {
    name: "processes",
    doc: "One row is a process that an LWP of this trace belongs to.",
    columns: &[
        known("pid", Int32, "Its number."),
        maybe("name", Text, "The last known command name of its first LWP."),
        maybe("parent", Int32, "The process that created it, if that was traced."),
        known("ts_tick", Int64, "Its creation, or the first event that shows it."),
        maybe(
            "dur_tick",
            Int64,
            "Its lifetime; NULL if it did not end, or if events lost in it may have hidden another of its LWPs.",
        ),
        maybe(
            "exit_code",
            Int64,
            "Its argument of exit_group, or exit; NULL if it did not end, was killed, or system calls are not traced.",
        ),
    ],
};

/// One row is a CPU.
pub const CPUS: Table = Table {
    name: "cpus",
    doc: "One row is a CPU that kernel events were recorded on.",
    columns: &[
        known("cpu", Int32, "Its number."),
        known("events", Int64, "Kernel events recorded on it."),
        known("lost_events", Int64, "Kernel events lost on it, as far as they were counted."),
        known(
            "busy_tick",
            Int64,
            "Time with an LWP on it. Where events are missing it is neither busy nor idle.",
        ),
        known("idle_tick", Int64, "Time with the idle task on it."),
    ],
};
