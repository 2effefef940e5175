//! A schema that was read and checked. The form of the file is in `toml_file.rs`, the checks are in `check.rs`.

use sigmund_measures::{By, Measure};

/// The maximum length of a file with a schema, in bytes.
pub const MAX_LEN: u64 = 64 << 10;

/// Names of groups of a program's events, as in `FUT_KEYMASK`. Also accepted there are `FUT_KEYMASK0` to
/// `FUT_KEYMASK31`, and numbers (`0x101`).
pub const KEYS: [&str; 10] =
    ["scheduler", "lwp", "sync", "locks", "functions", "spans", "program", "c", "all", "default"];

/// What to record, and the questions that the recording answers.
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
    /// Groups of events of the program that are recorded. If empty, those of `FUT_KEYMASK=default`.
    pub keys: Vec<String>,
    /// Events of the program that the answers depend on.
    pub events: Vec<String>,
    /// The questions, in the order of the report.
    pub questions: Vec<Question>,
    /// The text that it was read from.
    pub text: String,
    /// The source of the text, for messages: a file, or the name of a built-in schema.
    pub place: String,
}

/// A tracepoint to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// `system:event`.
    pub event: String,
    /// Whether a kernel may lack it. It is then not recorded.
    pub optional: bool,
    /// Its line in the schema, counted from 1; `None` for a tracepoint that every recording has.
    pub line: Option<usize>,
}

/// One question of a schema.
#[derive(Clone, Debug)]
pub struct Question {
    /// The question, in a user's words.
    pub text: String,
    /// What answers it.
    pub asked: Asked,
    /// Columns of the answer that are shown to people, with or without `_tick` or `_ns`. If empty, all are.
    pub columns: Vec<String>,
    /// The column by which rows are sorted, the largest value first; its unit may be left out. `None` for the order of
    /// the answer.
    pub sort: Option<String>,
    /// Rows that are shown.
    pub top: usize,
    /// Events that the answer depends on: `system:event` of the kernel, or the name of an event of the program.
    pub needs: Vec<String>,
}

/// What answers a question.
#[derive(Clone, Debug)]
pub enum Asked {
    /// A measure.
    Measure {
        /// Which one.
        measure: &'static Measure,
        /// The grouping: what a row stands for.
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

/// A text that another crate parses, and its line in the schema, counted from 1. That crate names the line in its
/// errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The text.
    pub text: String,
    /// The line where it begins.
    pub line: usize,
}
