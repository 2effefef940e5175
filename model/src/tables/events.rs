//! Events, and how they are declared.

use super::{
    ColumnType::{Int32, Int64, Numbers, Text, Texts, Word},
    Table,
    columns::{known, maybe},
};

/// One row is an event of either level.
pub const EVENTS: Table = Table {
    name: "events",
    doc: "One row is an event of either level. Sorted by time.",
    columns: &[
        known("ts_tick", Int64, "When it was recorded."),
        known("level", Word, "KERN or USER: recorded by the kernel or by the program."),
        maybe("code", Int64, "Its number in its source: tracepoint id, or user event code."),
        known("name", Word, "Its name in its source."),
        maybe("cpu", Int32, "The CPU it happened on; NULL if it is unknown because events are missing."),
        maybe(
            "lwp",
            Int32,
            "The LWP (tid) that was on that CPU; 0 is the idle task; NULL if it is unknown because events are missing.",
        ),
        maybe(
            "thread",
            Int64,
            "The user thread that was executing; NULL in interrupts, if there was none, and if it is not known.",
        ),
        maybe(
            "context",
            Word,
            "What the CPU was doing: task, irq, softirq, nmi or idle; NULL if it is unknown because events are missing.",
        ),
        maybe("target_lwp", Int32, "The LWP that it switches in, wakes or creates."),
        maybe(
            "target_thread",
            Int64,
            "The user thread that it dispatches, wakes or creates, on either level.",
        ),
        maybe("cpu_seen", Int32, "The CPU that the probe itself read: an independent check of cpu."),
        known(
            "args",
            Numbers,
            "The numbers of its parameters, one per declared field. Unsigned 64-bit and floating-point values keep their bits.",
        ),
        known(
            "texts",
            Texts,
            "The texts of its parameters, and the names of numbers. Shorter than args if the remaining parameters have none.",
        ),
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
        known("format", Text, "A format string for human output."),
        known("events", Int64, "Number of events of this type."),
    ],
};
