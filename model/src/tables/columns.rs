//! Every table and column of a super-trace, with a sentence each.

use super::{Column, ColumnType, Table};
use ColumnType::{Bool, Float64, Int32, Int64, Numbers, Text, Texts, Word};

const fn known(name: &'static str, ty: ColumnType, doc: &'static str) -> Column {
    Column { name, ty, nullable: false, later: false, doc }
}

const fn maybe(name: &'static str, ty: ColumnType, doc: &'static str) -> Column {
    Column { name, ty, nullable: true, later: false, doc }
}

/// One that was added to a table that there are already.
const fn later(name: &'static str, ty: ColumnType, doc: &'static str) -> Column {
    Column { name, ty, nullable: true, later: true, doc }
}

/// All tables.
pub const ALL: &[Table] =
    &[EVENTS, ACTIVE, THREAD_STATES, LWP_STATES, THREADS, LWPS, CPUS, EVENT_TYPES, LOSSES, CLOCKS, INFO];

/// One row is an event, of either side.
pub const EVENTS: Table = Table {
    name: "events",
    doc: "One row is an event, of either side, in the order of time.",
    columns: &[
        known("ts_tick", Int64, "When it was recorded."),
        known("level", Word, "KERN or USER: which side recorded it."),
        maybe("code", Int64, "Its number in its source: tracepoint id, or user event code."),
        known("name", Word, "Its name in its source."),
        maybe("cpu", Int32, "The CPU it happened on; NULL if events are missing that would say so."),
        maybe(
            "lwp",
            Int32,
            "The LWP (tid) that was on that CPU; 0 is the idle task; NULL if events are missing that would say so.",
        ),
        maybe(
            "thread",
            Int64,
            "The user thread that was executing; NULL in interrupts, where there is none, and where it is not known.",
        ),
        maybe(
            "context",
            Word,
            "What the CPU was doing: task, irq, softirq, nmi or idle; NULL if events are missing that would say so.",
        ),
        maybe("target_lwp", Int32, "The LWP that it makes run, wakes or creates."),
        maybe(
            "target_thread",
            Int64,
            "The user thread that it makes run, wakes or creates, on either level.",
        ),
        maybe("cpu_seen", Int32, "The CPU that a probe saw itself: the second witness of cpu."),
        known(
            "args",
            Numbers,
            "Its parameters, one per declared field: the numbers. Wide values keep their bits.",
        ),
        known(
            "texts",
            Texts,
            "Its parameters: the texts, and the names of numbers. Shorter than args when the rest has none.",
        ),
    ],
};

/// One row is a stretch in which a user thread really executed.
pub const ACTIVE: Table = Table {
    name: "active",
    doc: "One row is a stretch in which a user thread certainly executed: mounted on an LWP that was on a CPU. Where events are missing it may have executed unseen; its state is unknown or mounted then.",
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

/// One row is a stretch in which a user thread was in one state.
pub const THREAD_STATES: Table = Table {
    name: "thread_states",
    doc: "One row is a user thread in one state. The states of a thread leave no holes: they sum to its life.",
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
            "The object it waits for, if it is blocked and the runtime said: its address; for join the user thread, for io the descriptor.",
        ),
        later(
            "blocked_for",
            Word,
            "What kind of thing that is, if it is blocked and the runtime said: mutex, rwlock-read, rwlock-write, condvar, semaphore, barrier, channel, channel-space, once-cell, join, sleep, io or scope.",
        ),
        maybe("end_reason", Word, "What ended it; NULL for exited."),
    ],
};

/// One row is a stretch in which an LWP was in one state.
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
            "running, runnable, sleeping, disk-sleep, stopped, exited, off-cpu, or unknown: from a gap in the trace, or from the last event that confirmed a state that was contradicted, to the next event that shows it.",
        ),
        maybe("cpu", Int32, "The CPU it runs on, or left."),
        maybe("end_reason", Word, "What ended it; NULL for exited."),
    ],
};

/// One row is a user thread.
pub const THREADS: Table = Table {
    name: "threads",
    doc: "One row is a user thread.",
    columns: &[
        known("thread", Int64, "Its number."),
        maybe("name", Text, "Its name."),
        maybe("pid", Int32, "Its process."),
        known("ts_tick", Int64, "Its creation, or the first that is known of it."),
        maybe("dur_tick", Int64, "Its life; NULL if it never ended."),
        maybe("created_by", Int64, "The user thread that created it."),
        known(
            "active_tick",
            Int64,
            "Its active time, as far as it is known: events may be missing, for this and what follows.",
        ),
        known("dispatches", Int64, "How often it was put on an LWP."),
        known("migrations", Int64, "How often that was another LWP than the time before."),
        known("stalls", Int64, "How often its LWP was taken off the CPU under it."),
    ],
};

/// One row is an LWP that recorded or did anything.
pub const LWPS: Table = Table {
    name: "lwps",
    doc: "One row is an LWP.",
    columns: &[
        known("lwp", Int32, "Its tid."),
        maybe("name", Text, "Its command name, the last known."),
        maybe("pid", Int32, "Its process; NULL if neither the kernel nor a user trace reports it."),
        known("ts_tick", Int64, "The first that is known of it."),
        maybe("dur_tick", Int64, "Its life; NULL if it never ended."),
        known("carries_threads", Bool, "Whether it belongs to a traced runtime or recorded user events."),
        known("on_cpu_tick", Int64, "Its time on CPUs, by the kernel's switches, as far as it is known."),
        known("active_tick", Int64, "That part of it with a user thread mounted."),
        known(
            "unmounted_tick",
            Int64,
            "The rest of it, counted on its own: on a CPU with no user thread, or none that is known.",
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
        known("witness_agree", Int64, "Its user events whose CPU both witnesses agree on."),
        known("witness_disagree", Int64, "Those they disagree on."),
        known("lost_events", Int64, "User events it could not record."),
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

/// One row is a declared event.
pub const EVENT_TYPES: Table = Table {
    name: "event_types",
    doc: "One row is a declared event. Each also has a view of its own name, with its fields as columns.",
    columns: &[
        known("level", Word, "KERN or USER."),
        maybe("code", Int64, "Its number in its source."),
        known("name", Text, "Its name."),
        maybe("source", Text, "The input that declares it."),
        known("key", Int64, "The key bits that switch it on (user events)."),
        known("field_names", Texts, "Its fields; field i is args[i] and texts[i] of its events."),
        known("field_types", Texts, "Their types."),
        known("format", Text, "A format for people."),
        known("events", Int64, "How many there are."),
    ],
};

/// One row is something that is missing.
pub const LOSSES: Table = Table {
    name: "losses",
    doc: "One row is something that is missing or was found wrong, and what that means.",
    columns: &[
        known(
            "kind",
            Word,
            "dropped, overwritten, damaged, truncated, unfinished, not-recorded, before-first-switch or contradiction.",
        ),
        known("level", Word, "KERN or USER."),
        known("severity", Word, "note, gap or serious."),
        maybe("cpu", Int32, "The kernel stream."),
        maybe("lwp", Int32, "The user stream."),
        maybe("from_tick", Int64, "Last instant known to be before the gap."),
        maybe("to_tick", Int64, "First instant known to be behind it."),
        maybe("count", Int64, "Events lost, where they were counted."),
        known("detail", Text, "File and place, what was expected and what was there."),
        known("advice", Text, "What to do about it next time; may be empty."),
        later(
            "unknown_tick",
            Int64,
            "For how long states are unknown because of it, summed over those concerned; NULL where that was not measured.",
        ),
    ],
};

/// One row is a clock snapshot.
pub const CLOCKS: Table = Table {
    name: "clocks",
    doc: "One row is a clock snapshot: one instant on two clocks, read, stated by a file, or estimated.",
    columns: &[
        known("domain", Word, "One of the clocks: monotonic_raw, realtime, ..."),
        known("before_tick", Int64, "The clock `against` just before the other was read, in its own unit."),
        known("after_tick", Int64, "The same clock just after."),
        known("ns", Int64, "What the clock `domain` said in between; ticks, if it counts those."),
        maybe(
            "residual_ns",
            Float64,
            "Its distance from the line between the snapshots beside it, in units of ns; NULL where there are none.",
        ),
        known("kind", Word, "snapshot, stated (by a file) or estimated (from events that bound each other)."),
        known("against", Word, "The other of the clocks: tsc, mostly."),
        known("used", Bool, "Whether events are converted by it; one with a wide bracket is not used."),
        maybe(
            "bound_ns",
            Float64,
            "How far an instant that is converted at this one may be off, in units of ns; NULL if nobody knows.",
        ),
    ],
};

/// One row is a fact about the recording.
pub const INFO: Table = Table {
    name: "info",
    doc: "One row is a fact about the recording: where, when and how.",
    columns: &[known("key", Text, "What."), known("value", Text, "As a text.")],
};
