//! The command line. Completions and the man page are generated from it.

mod check;
#[cfg(feature = "sql")]
mod cluster;
mod ctl;
#[cfg(feature = "sql")]
mod demo;
#[cfg(feature = "sql")]
mod drawings;
#[cfg(feature = "sql")]
mod export;
#[cfg(feature = "sql")]
mod measures;
#[cfg(feature = "sql")]
mod question;
mod record;
#[cfg(feature = "sql")]
mod report;
mod schema;
#[cfg(feature = "sql")]
mod serve;
mod size;
#[cfg(feature = "sql")]
mod sql;
mod tables;
#[cfg(feature = "sql")]
mod view;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{
    Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint,
    error::{ContextKind, ContextValue, ErrorKind},
};
use sigmund_user::Ids;

pub(crate) use check::CheckArgs;
#[cfg(all(feature = "sql", not(feature = "cluster")))]
pub(crate) use cluster::WITHOUT_CLUSTERS;
#[cfg(feature = "cluster")]
pub(crate) use cluster::{ExecutorArgs, SchedulerArgs};
pub(crate) use ctl::{CtlArgs, CtlVerb, KeyMask};
pub(crate) use record::{Follow, KernelArgs, RecordArgs, Witness};
pub(crate) use schema::SchemaArgs;
pub(crate) use tables::LeftOutTables;
#[cfg(feature = "sql")]
pub(crate) use {
    check::CheckPart,
    cluster::ClusterArgs,
    demo::{DemoArgs, SumtimeArgs},
    drawings::DrawingArgs,
    export::{ExportArgs, ExportKind},
    measures::MeasureArgs,
    question::{AnswerFormat, FilterArgs, LevelArg, Question, Unit},
    report::{ReportArgs, ReportFormat},
    serve::ServeArgs,
    sql::{Queried, SqlArgs},
    view::{Place, ViewArgs},
};

/// The meaning of each exit status, for all subcommands. Tested in `tests/it/failures.rs`.
const EXIT_STATUS: &str = "\
Exit status:
  0  Success. For queries: something matched. For `check`: sound, or sound with gaps.
  1  Nothing matched: no event or row. For `check`: an invariant is broken.
  2  An error, which is reported on stderr. Nothing was done: the command line is wrong,
     an input cannot be read. Or not all was done: part of an input is damaged, part of
     a recording is missing, a signal came. What was readable or recorded is kept.
  3  With --strict: events are missing in the time that was asked about.

`sigmund record --help` lists more causes of status 2.";

/// The text for subcommands that a command without SQL does not support.
#[cfg(not(feature = "sql"))]
const WITHOUT_SQL: &str = "\
This sigmund records and merges; it was built without SQL (--no-default-features). Questions about
super-traces need one that was built with it, on this machine or on another.";

/// Record user threads and the kernel with one clock; query which thread ran on which LWP and CPU, and when.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
#[command(after_help = EXIT_STATUS)]
#[cfg_attr(not(feature = "sql"), command(before_help = WITHOUT_SQL, subcommand_required = true))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[cfg(feature = "sql")]
    #[command(flatten)]
    pub(crate) question: Question,
}

/// The command line for man pages. roff joins lines of its input, so each item of a list becomes a paragraph.
pub(crate) fn for_man_pages() -> clap::Command {
    Cli::command().mut_args(|arg| match arg.get_long_help().map(ToString::to_string) {
        Some(help) => arg.long_help(help.replace("\n- ", "\n\n- ")),
        None => arg,
    })
}

/// A tip that is added to an error about the command line.
pub(crate) fn tip(error: &clap::Error) -> Option<String> {
    // clap takes a word after an option for a subcommand, too, and refuses it.
    let word = error.get(ContextKind::InvalidSubcommand).or(error.get(ContextKind::InvalidArg));
    let ContextValue::String(word) = word? else { return None };
    #[cfg(all(feature = "sql", not(feature = "cluster")))]
    if is_of_clusters(error) {
        return Some(format!("  tip: {WITHOUT_CLUSTERS}"));
    }
    let path = Path::new(word);
    if path.is_file() {
        return Some(format!("  tip: sigmund merge {word} makes a super-trace of a trace"));
    }
    #[cfg(feature = "sql")]
    if !path.exists()
        && let Some(flag) = measure_like(word)
    {
        return Some(format!("  tip: a question is an option: sigmund --{flag}"));
    }
    if cfg!(feature = "sql") && path.is_dir() {
        return Some(format!(
            "  tip: give the super-trace of a question after -f: sigmund -f {word} --summary"
        ));
    }
    let is_unknown =
        error.kind() == ErrorKind::ArgumentConflict && Cli::command().find_subcommand(word).is_none();
    is_unknown.then(|| format!("  tip: an option before {word} takes no value, or none more"))
}

/// The flag of the measure with a name similar to this word.
#[cfg(feature = "sql")]
fn measure_like(word: &str) -> Option<&'static str> {
    let measures = sigmund_measures::ALL.iter().map(|measure| measure.name);
    let near = sigmund_sql::nearest(word, measures.clone());
    let near = near.first().copied()?;
    // There always is a nearest name, but it may not be similar. So the first three letters have to be the same.
    let begin = word.get(..3)?;
    measures.into_iter().find(|name| *name == near && name.starts_with(begin))
}

/// Changes the arguments of `sigmund sql` so that a query may begin with a comment: clap would take `--` for an option.
pub(crate) fn with_queries(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_none_or(|subcommand| subcommand != "sql") {
        return arguments;
    }
    for argument in &mut arguments {
        let text = argument.as_encoded_bytes().strip_prefix(b"--").and_then(|text| text.first());
        if text.is_some_and(u8::is_ascii_whitespace) {
            let query = std::mem::replace(argument, OsString::from("\n"));
            argument.push(query);
        }
    }
    arguments
}

/// Whether the error is about a subcommand that only a command with clusters has.
pub(crate) fn is_of_clusters(error: &clap::Error) -> bool {
    let word = error.get(ContextKind::InvalidSubcommand);
    matches!(word, Some(ContextValue::String(word)) if ["scheduler", "executor"].contains(&word.as_str()))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a program and the kernel beneath it, then merge both.
    Record(RecordArgs),
    /// Merge runs, traces of many kinds and listings into a super-trace.
    Merge(MergeArgs),
    /// Describe a super-trace, or any input of `merge`: contents, event types, LWPs, losses.
    Info(InfoArgs),
    #[cfg(feature = "sql")]
    /// Answer the questions that a super-trace was recorded for, on one page.
    Report(ReportArgs),
    /// List the schemata that come with Sigmund, or print one, to be copied and changed.
    #[command(alias = "schemata")]
    Schema(SchemaArgs),
    /// Check the invariants of a super-trace, and list what is missing; or whether a recording is whole, or a Pajé file valid.
    Check(CheckArgs),
    #[cfg(feature = "sql")]
    /// Query a super-trace with SQL.
    Sql(SqlArgs),
    #[cfg(feature = "sql")]
    /// Show a super-trace as a timeline in the browser, or a running program.
    View(ViewArgs),
    #[cfg(feature = "sql")]
    /// Serve super-traces to ADBC, JDBC and ODBC drivers and BI tools (Arrow Flight SQL).
    Serve(ServeArgs),
    #[cfg(feature = "cluster")]
    /// Run the scheduler of a cluster, which divides queries among executors.
    Scheduler(SchedulerArgs),
    #[cfg(feature = "cluster")]
    /// Run an executor of a cluster, which answers parts of queries.
    Executor(ExecutorArgs),
    #[cfg(feature = "sql")]
    /// Write a super-trace for a viewer, or a table of it for a program.
    Export(ExportArgs),
    /// Inspect a program while it is recorded, and change what it records.
    Ctl(CtlArgs),
    /// Write the last events of a running flight recorder to a user trace.
    Snapshot(SnapshotArgs),
    #[cfg(feature = "sql")]
    /// Record the bundled Sumtime program, and run example queries on it.
    Demo(DemoArgs),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write those of all subcommands.
    Man {
        /// Write the man page of each subcommand, and that of the command, to files in this folder.
        #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        all: Option<PathBuf>,
    },
    /// Wait for the recorder, then execute the program. (Used by `record`.)
    #[command(hide = true)]
    Hold(HoldArgs),
    #[cfg(feature = "sql")]
    /// The bundled Sumtime program. (Used by `demo`.)
    #[command(hide = true)]
    Sumtime(SumtimeArgs),
}

/// What to do with a super-trace that cannot be read in full.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DamageArgs {
    /// Leave out files of the super-trace that cannot be read. Each is reported, and the exit status is 2.
    #[arg(long, help_heading = "Damage")]
    pub(crate) keep_going: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Aligned columns.
    #[value(alias = "table")]
    Human,
    /// Tab separated; `merge` reads listings of it.
    Tsv,
    /// Comma separated.
    Csv,
    /// One JSON array.
    Json,
    /// One JSON object a line.
    Ndjson,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Runs (folders), user traces, listings; traces by trace-cmd, perf, LTTng (CTF) and FxT; texts of ftrace.
    #[arg(required = true, value_name = "INPUT", value_hint = ValueHint::AnyPath)]
    pub(crate) inputs: Vec<PathBuf>,
    /// The super-trace to write; may be left out for one input: NAME, NAME.run and NAME.dat become NAME.supertrace.
    #[arg(long, short, value_name = "NAME.supertrace")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite it if it is there.
    #[arg(long)]
    pub(crate) force: bool,
    /// Clock of kernel traces, if that in the file is wrong: x86-tsc, mono, mono_raw, boot, local.
    #[arg(long, value_name = "CLOCK", value_parser = clock)]
    pub(crate) clock: Option<sigmund_model::ClockDomain>,
    /// Ticks per second; ignored, with a notice, if the inputs say it.
    #[arg(long, value_name = "HZ", value_parser = hertz)]
    pub(crate) hz: Option<sigmund_model::Hertz>,
    /// Names for the events of FxT, which are only numbers: a C header with their codes, or a TOML file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) event_names: Option<PathBuf>,
    /// Correct offsets between the time-stamp counters of CPUs, estimated from LWPs that ran on several.
    #[arg(long)]
    pub(crate) align_cpus: bool,
    /// Which of the tables wakeups, interrupts, syscalls, spans, locks, counters and processes to write, with commas between
    /// them, or none; all if not given.
    #[arg(long, value_name = "TABLES", value_parser = tables::left_out_tables)]
    pub(crate) tables: Option<LeftOutTables>,
}

fn clock(text: &str) -> Result<sigmund_model::ClockDomain, String> {
    sigmund_model::ClockDomain::from_name(text)
        .ok_or_else(|| format!("expected x86-tsc, mono, mono_raw, boot or local, found {text:?}"))
}

fn hertz(text: &str) -> Result<sigmund_model::Hertz, String> {
    let (number, factor) = match text.strip_suffix("GHz") {
        Some(number) => (number, 1e9),
        None => text.strip_suffix("MHz").map_or((text, 1.0), |number| (number, 1e6)),
    };
    let per_second = number.trim().parse::<f64>().ok().map(|n| n * factor);
    per_second
        .and_then(sigmund_model::Hertz::new)
        .ok_or_else(|| format!("expected a rate such as 2.8GHz, 2600MHz or 2800000000, found {text:?}"))
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// A super-trace, a run, or any file that `merge` takes; not needed if there is just one super-trace in this folder.
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) file: Option<PathBuf>,
    /// Read only the header; do not count events.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rows per table in human format.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// Output format. As json, everything is one object; tsv, csv and ndjson have the events.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: FormatArg,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The process must run under `sigmund record --flight`, or have started a FlightRecorder. It continues \
    meanwhile.\n\nExample:\n  sigmund snapshot $(pidof myserver) -o now.fut && sigmund merge now.fut -o now.supertrace"
)]
pub(crate) struct SnapshotArgs {
    /// The process.
    #[arg(value_name = "PID")]
    pub(crate) pid: u32,
    /// The user trace to write; snapshot-PID.fut if not given. Its path is printed.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// The user to become.
    #[arg(long = "become", value_name = "UID:GID:GROUPS")]
    pub(crate) ids: Option<Ids>,
    /// The recorder's socket.
    pub(crate) gate: PathBuf,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) program: Vec<OsString>,
}
