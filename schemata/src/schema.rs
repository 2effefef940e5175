//! A schema, read and checked. Its text as TOML is in `toml_file.rs`, what is checked in `check.rs`.

use sigmund_measures::{By, Measure};

/// A file with a schema is not longer than this, in bytes.
pub const MAX_LEN: u64 = 64 << 10;

/// Names of groups of events of a program, as `FUT_KEYMASK` takes them. Beside them, `FUT_KEYMASK0` to `FUT_KEYMASK31` and
/// numbers (`0x101`).
pub const KEYS: [&str; 10] =
    ["scheduler", "lwp", "sync", "locks", "functions", "spans", "program", "c", "all", "default"];

/// What to record, and which questions that answers.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Its name: lower-case letters, digits and `-`.
    pub name: String,
    /// A sentence about it.
    pub about: String,
    /// Tracepoints of all LWPs of the machine.
    pub machine: Vec<Tracepoint>,
    /// Tracepoints of the program and its children; of all LWPs where the whole machine is recorded.
    pub program: Vec<Tracepoint>,
    /// Groups of events of the program that are recorded; those of `FUT_KEYMASK=default` if empty.
    pub keys: Vec<String>,
    /// Events of the program that the questions rest on.
    pub events: Vec<String>,
    /// The questions, in the order of the report.
    pub questions: Vec<Question>,
    /// The text that it was read from.
    pub text: String,
    /// Where that was, for messages: a file, or the name of one of ours.
    pub place: String,
}

/// A tracepoint to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// `system:event`.
    pub event: String,
    /// Whether a kernel may lack it: then it is not recorded.
    pub optional: bool,
    /// The line of the schema, from 1; `None` if every recording has it.
    pub line: Option<usize>,
}

/// One question of a schema.
#[derive(Clone, Debug)]
pub struct Question {
    /// The question, in words of a person.
    pub text: String,
    /// What answers it.
    pub asked: Asked,
    /// Columns of the answer that people are shown, with or without `_tick` or `_ns`; all if empty.
    pub columns: Vec<String>,
    /// The column by which rows are sorted, the largest first, with or without its unit; `None` for the order of the answer.
    pub sort: Option<String>,
    /// Rows that are shown.
    pub top: usize,
    /// Events that the answer rests on: `system:event` of the kernel, or a name of the program's.
    pub needs: Vec<String>,
}

/// What answers a question.
#[derive(Clone, Debug)]
pub enum Asked {
    /// A measure.
    Measure {
        /// Which one.
        measure: &'static Measure,
        /// What makes a row.
        by: Option<By>,
        /// How many of the worst cases are listed.
        worst: usize,
        /// The span, function or lock that it is about.
        subject: Option<String>,
        /// FROM and TO of a measure of pairs of events, as the command takes them.
        pair: Option<(Located, Located)>,
    },
    /// A query on the super-trace.
    Sql(Located),
}

/// A text that this crate does not parse, and its line in the schema, from 1: what does parse it names the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The text.
    pub text: String,
    /// The line where it begins.
    pub line: usize,
}
