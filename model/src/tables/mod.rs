//! The tables of a super-trace: names, columns, units, and the schema version.
//!
//! A super-trace is a directory `NAME.supertrace/` with a folder for each table, which holds Parquet files
//! `part-00000.parquet`, … in time order. Columns carry their unit in their name: `ts_tick` and `dur_tick` are exact
//! ticks of the recording's main clock; `_ns` are nanoseconds.
//!
//! Tables of events are sorted by `ts_tick`. Tables of intervals are sorted by the **end** of the interval, because a
//! streaming merge knows an interval only when it ends. Intervals that never ended come last. An interval that was
//! shortened because of a contradiction is placed where the contradiction was found.

mod actors;
mod checksums;
mod columns;
mod events;
mod intervals;
mod recording;
mod states;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

pub use self::{
    actors::{CPUS, LWPS, PROCESSES, THREADS},
    checksums::{CHECKSUMS, Checksums, FileEnd},
    events::{EVENT_TYPES, EVENTS},
    intervals::{COUNTERS, INTERRUPTS, LOCKS, SPANS, SYSCALLS, WAKEUPS},
    recording::{CLOCKS, INFO, LOSSES},
    states::{ACTIVE, LWP_STATES, THREAD_STATES},
};

/// The version of the layout. It changes whenever a reader of the previous version would misread the tables.
pub const SCHEMA_VERSION: u32 = 4;

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

/// Tables that a merge can leave out.
pub const OPTIONAL: &[Table] = &[WAKEUPS, INTERRUPTS, SYSCALLS, SPANS, LOCKS, COUNTERS, PROCESSES];

/// Keys of the table `info` that programs look up.
pub mod info_keys {
    /// [`SCHEMA_VERSION`](super::SCHEMA_VERSION) of the writer.
    pub const SCHEMA_VERSION: &str = "schema_version";
    /// Followed by the name of a schema: the text of a schema that the recording was made by.
    pub const RECORDED_SCHEMA: &str = "recorded_schema_";
    /// The tracepoints of these schemata that the kernel did not have, separated by commas; absent if there are none.
    pub const MISSING_TRACEPOINTS: &str = "missing_tracepoints";
    /// The kept parts of a recording that was cut into parts, from the first to the last: `5 to 12`.
    pub const PARTS: &str = "parts";
    /// The first tick that was kept of a limited recording; absent if nothing was removed.
    pub const KEPT_FROM: &str = "kept_from";
    /// Ticks per second of the main clock; absent if unknown.
    pub const TICK_HZ: &str = "tick_hz";
    /// Tick of the first event.
    pub const FIRST_TICK: &str = "first_tick";
    /// Tick of the last event.
    pub const LAST_TICK: &str = "last_tick";
    /// User events whose CPU is the same by the probe and by `sched_switch`.
    pub const WITNESS_AGREE: &str = "witness_agree";
    /// User events whose CPU differs between the two.
    pub const WITNESS_DISAGREE: &str = "witness_disagree";
    /// User events whose CPU is known from only one of the two.
    pub const WITNESS_SINGLE: &str = "witness_single";
    /// The tables that the merge left out, separated by commas; absent if there are none.
    pub const LEFT_OUT_TABLES: &str = "left_out_tables";
    /// Followed by the number of a process: the cost in ticks of a record without parameters, measured when the process
    /// began to record. Absent if the user trace does not have it.
    pub const PROBE_TICKS: &str = "probe_ticks_";
    /// Followed by the number of a process: the additional cost in ticks of each word of parameters.
    pub const PROBE_WORD_TICKS: &str = "probe_word_ticks_";
    /// Followed by the number of an LWP: the kernel's own sum of its time on CPUs, as two ticks and the nanoseconds
    /// that it ran between them. Absent if the recorder did not read it.
    pub const LWP_CPU_TIME: &str = "lwp_cpu_time_";
    /// Followed by the number of a process: the cost in ticks of reading the clock alone.
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
    /// One of a few words: `Dictionary(Int32, Utf8)`.
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
    /// Its name, including the unit.
    pub name: &'static str,
    /// What it holds.
    pub ty: ColumnType,
    /// Whether it may be NULL, which always means "unknown, or none".
    pub nullable: bool,
    /// One sentence that describes it.
    pub doc: &'static str,
}

/// One table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name, which is also the name of its folder.
    pub name: &'static str,
    /// What a row is.
    pub doc: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

impl Table {
    /// The Arrow schema. The sentence of each column is in the metadata key `doc` of its field.
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
