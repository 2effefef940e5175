//! What is known about the recording itself: losses, clocks, other facts.

use super::{
    ColumnType::{Bool, Float64, Int32, Int64, Text, Word},
    Table,
    columns::{known, maybe},
};

/// One row is something that is missing.
pub const LOSSES: Table = Table {
    name: "losses",
    doc: "One row is something that is missing or damaged, and its consequences.",
    columns: &[
        known(
            "kind",
            Word,
            "dropped, overwritten, damaged, truncated, unfinished, not-recorded, before-first-switch or contradiction.",
        ),
        known("level", Word, "KERN or USER."),
        known("severity", Word, "note, gap or serious."),
        maybe("cpu", Int32, "The CPU, if a kernel stream lost them."),
        maybe("lwp", Int32, "The LWP, if a user stream lost them."),
        maybe("from_tick", Int64, "Last instant known to be before the gap."),
        maybe("to_tick", Int64, "First instant known to be after the gap."),
        maybe("count", Int64, "Events lost, if they were counted."),
        known("detail", Text, "File and position, what was expected and what was found."),
        known("advice", Text, "How to avoid it in the next recording; may be empty."),
        maybe(
            "unknown_tick",
            Int64,
            "How long states are unknown because of it, summed over the threads or LWPs concerned; NULL if that was not measured.",
        ),
    ],
};

/// One row is a clock snapshot.
pub const CLOCKS: Table = Table {
    name: "clocks",
    doc: "One row is a clock snapshot: one instant on two clocks, read, stated by a file, or estimated. Each reading is in the column with the unit of its clock.",
    columns: &[
        known("domain", Word, "The first clock: monotonic_raw, realtime, ..."),
        maybe("ns", Int64, "The reading of the clock `domain`, if it counts nanoseconds."),
        maybe("tick", Int64, "The same, if it counts ticks."),
        known("against", Word, "The second clock: usually tsc."),
        maybe("before_tick", Int64, "The clock `against` just before the reading, if it counts ticks."),
        maybe("after_tick", Int64, "The same clock just after."),
        maybe("before_ns", Int64, "The clock `against` just before the reading, if it counts nanoseconds."),
        maybe("after_ns", Int64, "The same clock just after."),
        maybe(
            "residual_ns",
            Float64,
            "Distance of the reading from the line between its two neighbouring snapshots; NULL if it has only one, or if `domain` counts ticks.",
        ),
        maybe("residual_tick", Float64, "The same, if `domain` counts ticks."),
        known(
            "kind",
            Word,
            "snapshot, stated (by a file) or estimated (from pairs of events whose order is certain).",
        ),
        known(
            "used",
            Bool,
            "Whether the conversion of events uses it; a snapshot with a wide bracket is not used.",
        ),
        maybe(
            "bound_ns",
            Float64,
            "Largest error of an instant converted at this snapshot; NULL if it is not known, or if `domain` counts ticks.",
        ),
        maybe("bound_tick", Float64, "The same, if `domain` counts ticks."),
    ],
};

/// One row is a fact about the recording.
pub const INFO: Table = Table {
    name: "info",
    doc: "One row is a fact about the recording: where, when and how.",
    columns: &[known("key", Text, "What the fact is."), known("value", Text, "Its value, as text.")],
};
