//! What is known about the recording itself: losses, clocks, facts.

use super::{
    ColumnType::{Bool, Float64, Int32, Int64, Text, Word},
    Table,
    columns::{known, maybe},
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
        maybe("to_tick", Int64, "First instant known to be after the gap."),
        maybe("count", Int64, "Events lost, where they were counted."),
        known("detail", Text, "File and place, what was expected and what was there."),
        known("advice", Text, "What to do about it next time; may be empty."),
        maybe(
            "unknown_tick",
            Int64,
            "For how long states are unknown because of it, summed over those concerned; NULL where that was not measured.",
        ),
    ],
};

/// One row is a clock snapshot.
pub const CLOCKS: Table = Table {
    name: "clocks",
    doc: "One row is a clock snapshot: one instant on two clocks, read, stated by a file, or estimated. Each reading is in the column of its clock's unit.",
    columns: &[
        known("domain", Word, "One of the clocks: monotonic_raw, realtime, ..."),
        maybe("ns", Int64, "The reading of the clock `domain`, if it counts nanoseconds."),
        maybe("tick", Int64, "The same, if it counts ticks."),
        known("against", Word, "The other of the clocks: tsc, mostly."),
        maybe("before_tick", Int64, "The clock `against` just before the reading, if it counts ticks."),
        maybe("after_tick", Int64, "The same clock just after."),
        maybe("before_ns", Int64, "The clock `against` just before the reading, if it counts nanoseconds."),
        maybe("after_ns", Int64, "The same clock just after."),
        maybe(
            "residual_ns",
            Float64,
            "The reading's distance from the line between the snapshots beside it; NULL where there are none, or if `domain` counts ticks.",
        ),
        maybe("residual_tick", Float64, "The same, if `domain` counts ticks."),
        known("kind", Word, "snapshot, stated (by a file) or estimated (from events that bound each other)."),
        known("used", Bool, "Whether events are converted by it; one with a wide bracket is not used."),
        maybe(
            "bound_ns",
            Float64,
            "How far an instant that is converted at this one may be off; NULL if it is not known, or if `domain` counts ticks.",
        ),
        maybe("bound_tick", Float64, "The same, if `domain` counts ticks."),
    ],
};

/// One row is a fact about the recording.
pub const INFO: Table = Table {
    name: "info",
    doc: "One row is a fact about the recording: where, when and how.",
    columns: &[known("key", Text, "What."), known("value", Text, "As a text.")],
};
