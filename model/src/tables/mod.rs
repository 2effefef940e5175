//! The tables of a super-trace: names, columns, units, and the version of all that.
//!
//! A super-trace is a directory `NAME.supertrace/` with a folder for each table, and in it Parquet files
//! `part-00000.parquet`, … in the order of time. Columns carry their unit in their name: `ts_tick` and
//! `dur_tick` are ticks of the recording's main clock, kept exactly; `_ns` are nanoseconds.
//!
//! Tables of events are sorted by `ts_tick`. Tables of intervals are sorted by the **end** of the interval,
//! because that is when a streaming merge knows one; intervals that never ended come last. One that a contradiction
//! shortened comes where the contradiction was found.

mod actors;
mod columns;
mod events;
mod intervals;
mod recording;
mod states;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

pub use self::{
    actors::{CPUS, LWPS, PROCESSES, THREADS},
    events::{EVENT_TYPES, EVENTS},
    intervals::{COUNTERS, INTERRUPTS, LOCKS, SPANS, SYSCALLS, WAKEUPS},
    recording::{CLOCKS, INFO, LOSSES},
    states::{ACTIVE, LWP_STATES, THREAD_STATES},
};

/// The version of the layout. It changes when a reader of the one before would go wrong.
pub const SCHEMA_VERSION: u32 = 2;

/// All tables.
pub const ALL: &[Table] = &[
    EVENTS,
    ACTIVE,
    THREAD_STATES,
    LWP_STATES,
    WAKEUPS,
    INTERRUPTS,
    SYSCALLS,
    SPANS,
    LOCKS,
    COUNTERS,
    THREADS,
    LWPS,
    PROCESSES,
    CPUS,
    EVENT_TYPES,
    LOSSES,
    CLOCKS,
    INFO,
];

/// Tables that a merge may be told to leave out.
pub const OPTIONAL: &[Table] = &[WAKEUPS, INTERRUPTS, SYSCALLS, SPANS, LOCKS, COUNTERS, PROCESSES];

/// Keys of the table `info` that programs look up.
pub mod info_keys {
    /// [`SCHEMA_VERSION`](super::SCHEMA_VERSION) of the writer.
    pub const SCHEMA_VERSION: &str = "schema_version";
    /// With the name of a schema behind it: the text of a schema that the recording was made by.
    pub const RECORDED_SCHEMA: &str = "recorded_schema_";
    /// The tracepoints of these schemata that the kernel did not have, with commas between them; absent if there are none.
    pub const MISSING_TRACEPOINTS: &str = "missing_tracepoints";
    /// Ticks per second of the main clock; absent when nobody knows.
    pub const TICK_HZ: &str = "tick_hz";
    /// Tick of the first event.
    pub const FIRST_TICK: &str = "first_tick";
    /// Tick of the last event.
    pub const LAST_TICK: &str = "last_tick";
    /// User events whose CPU both witnesses agree on.
    pub const WITNESS_AGREE: &str = "witness_agree";
    /// User events whose CPU they disagree on.
    pub const WITNESS_DISAGREE: &str = "witness_disagree";
    /// User events that have one witness only.
    pub const WITNESS_SINGLE: &str = "witness_single";
    /// The tables that the merge was told to leave out, with commas between them; absent if there are none.
    pub const LEFT_OUT_TABLES: &str = "left_out_tables";
    /// With the number of a process behind it: ticks that a record without parameters cost there, when it began to
    /// record. Absent where the user trace does not say.
    pub const PROBE_TICKS: &str = "probe_ticks_";
    /// With the number of a process behind it: ticks for each word of parameters beyond that.
    pub const PROBE_WORD_TICKS: &str = "probe_word_ticks_";
    /// With the number of an LWP behind it: the kernel's own sum of its time on CPUs, as two ticks and the nanoseconds that
    /// it ran between them. Absent where the recorder did not read it.
    pub const LWP_CPU_TIME: &str = "lwp_cpu_time_";
    /// With the number of a process behind it: ticks for reading the clock alone.
    pub const PROBE_CLOCK_TICKS: &str = "probe_clock_ticks_";
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A tick, a count or an id: `Int64`.
    Int64,
    /// A CPU, LWP or process number: `Int32`.
    Int32,
    /// `Float64`.
    Float64,
    /// `Boolean`.
    Bool,
    /// One of few words: `Dictionary(Int32, Utf8)`.
    Word,
    /// A text: `Utf8`.
    Text,
    /// `List<Int64>`, elements may be null.
    Numbers,
    /// `List<Utf8>`, elements may be null.
    Texts,
}

impl ColumnType {
    /// The Arrow type.
    pub fn data_type(self) -> DataType {
        let list = |item| DataType::List(Arc::new(Field::new_list_field(item, true)));
        match self {
            ColumnType::Int64 => DataType::Int64,
            ColumnType::Int32 => DataType::Int32,
            ColumnType::Float64 => DataType::Float64,
            ColumnType::Bool => DataType::Boolean,
            ColumnType::Word => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            ColumnType::Text => DataType::Utf8,
            ColumnType::Numbers => list(DataType::Int64),
            ColumnType::Texts => list(DataType::Utf8),
        }
    }
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name, with the unit.
    pub name: &'static str,
    /// What it holds.
    pub ty: ColumnType,
    /// Whether it may be NULL, which always means "not known, or none".
    pub nullable: bool,
    /// A sentence about it.
    pub doc: &'static str,
}

/// One table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name, and that of its folder.
    pub name: &'static str,
    /// What a row is.
    pub doc: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

impl Table {
    /// The Arrow schema. Each field carries its sentence in the metadata key `doc`.
    pub fn schema(&self) -> SchemaRef {
        let field = |c: &Column| {
            Field::new(c.name, c.ty.data_type(), c.nullable)
                .with_metadata([("doc".to_string(), c.doc.to_string())].into())
        };
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// The table of this name.
    pub fn named(name: &str) -> Option<&'static Table> {
        ALL.iter().find(|t| t.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tick_column_is_a_64_bit_number_and_every_column_has_a_sentence() {
        for table in ALL {
            for column in table.columns {
                assert!(column.doc.ends_with('.'), "{}.{}", table.name, column.name);
                if column.name.ends_with("_tick") || column.name.ends_with("_ns") {
                    let wide = matches!(column.ty, ColumnType::Int64 | ColumnType::Float64);
                    assert!(wide, "{}.{}", table.name, column.name);
                }
            }
        }
    }
}
