//! Events, and how they are declared.

use super::{
    ColumnType::{Int32, Int64, Numbers, Text, Texts, Word},
    Table,
    columns::{known, maybe},
};

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
