//! The command line. Completions and the man page are generated from it.

mod drawings;
mod export;
mod measures;
mod record;
mod report;
mod serve;
mod sql;
mod tables;
mod view;

use std::{ffi::OsString, path::PathBuf};

use anyhow::bail;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint, builder::PossibleValue};
pub(crate) use drawings::DrawingArgs;
pub(crate) use export::{ExportArgs, ExportKind};
pub(crate) use measures::MeasureArgs;
pub(crate) use record::{Follow, KernelArgs, RecordArgs, Witness};
pub(crate) use report::{ReportArgs, ReportFormat, SchemaArgs};
pub(crate) use serve::ServeArgs;
use sigmund_query::{EventPattern, Format, Instant, Selector, ThreadList};
use sigmund_sql::OpenOptions;
use sigmund_user::Ids;
pub(crate) use sql::{Queried, SqlArgs};
pub(crate) use tables::LeftOutTables;
pub(crate) use view::{Place, ViewArgs};

/// What each exit status means, of all subcommands. Tested in `tests/it/failures.rs`.
const EXIT_STATUS: &str = "\
Exit status:
  0  Success. For queries: something matched. For `check`: sound, or sound with gaps.
  1  Nothing matched: no event or row. For `check`: an invariant is broken.
  2  An error, which is reported on stderr. Nothing was done: the command line is wrong,
     an input cannot be read. Or not all was done: part of an input is damaged, part of
     a recording is missing, a signal came. What was readable or recorded is kept.
  3  With --strict: events are missing in the time that was asked about.

`sigmund record --help` has more on 2.";

/// Record user threads and the kernel with one clock; query which thread ran on which LWP and CPU, and when.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) question: Question,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a program and the kernel beneath it, then merge both.
    Record(RecordArgs),
    /// Merge runs, traces of many kinds and listings into a super-trace.
    Merge(MergeArgs),
    /// Describe a super-trace, or any input of `merge`: contents, event types, LWPs, losses.
    Info(InfoArgs),
    /// Answer the questions that a super-trace was recorded for, on one page.
    Report(ReportArgs),
    /// List the schemata that come with Sigmund, or print one, to be copied and changed.
    #[command(alias = "schemata")]
    Schema(SchemaArgs),
    /// Check the invariants of a super-trace, and list what is missing; or check a Pajé file.
    Check(CheckArgs),
    /// Query a super-trace with SQL.
    Sql(SqlArgs),
    /// Show a super-trace as a timeline in the browser, or a running program.
    View(ViewArgs),
    /// Serve super-traces to ADBC, JDBC and ODBC drivers and BI tools (Arrow Flight SQL).
    Serve(ServeArgs),
    /// Write a super-trace for a viewer, or a table of it for a program.
    Export(ExportArgs),
    /// Inspect a program while it is recorded, and change what it records.
    Ctl(CtlArgs),
    /// Write the last events of a running flight recorder to a user trace.
    Snapshot(SnapshotArgs),
    /// Record the bundled Sumtime program, and run example queries on it.
    Demo(DemoArgs),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the man page.
    Man,
    /// Wait for the recorder, then execute the program. (Used by `record`.)
    #[command(hide = true)]
    Hold(HoldArgs),
    /// The bundled Sumtime program. (Used by `demo`.)
    #[command(hide = true)]
    Sumtime(SumtimeArgs),
}

/// A query by filters and a measure.
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// The super-trace; not needed if there is just one in this folder.
    #[arg(long, short = 'f', value_name = "T", value_hint = ValueHint::DirPath)]
    pub(crate) trace_file: Option<PathBuf>,
    /// A measure of all super-traces in this folder, HOST.supertrace, with a column host.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["trace_file", "list_events", "active_time", "compare", "gantt", "histogram", "svg"])]
    pub(crate) fleet: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// List the events; with --reactivity, each pair.
    #[arg(long, help_heading = "What happened")]
    pub(crate) list_events: bool,
    /// Active time: how long the selected threads executed on a CPU.
    #[arg(long, conflicts_with = "list_events", help_heading = "Where the time went")]
    pub(crate) active_time: bool,
    /// Latency from FROM to TO: NAME, NAME(VALUE) or NAME(field=VALUE), optionally followed by @THREAD.
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], conflicts_with = "active_time", help_heading = "Why it was late")]
    pub(crate) reactivity: Vec<Selector>,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    #[command(flatten)]
    pub(crate) drawing: DrawingArgs,
    /// Also show times in this unit.
    #[arg(long, value_enum, help_heading = "Output")]
    pub(crate) unit: Option<Unit>,
    /// Output format.
    #[arg(long, value_enum, default_value = "human", help_heading = "Output")]
    pub(crate) format: AnswerFormat,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

/// What to do with a super-trace that cannot be read in full.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DamageArgs {
    /// Leave out files of the super-trace that cannot be read. Each is reported, and the exit status is 2.
    #[arg(long, help_heading = "Damage")]
    pub(crate) keep_going: bool,
}

impl From<DamageArgs> for OpenOptions {
    fn from(args: DamageArgs) -> OpenOptions {
        OpenOptions { keep_going: args.keep_going, ..OpenOptions::default() }
    }
}

/// Which events, and which time. Several values of one filter are alternatives; filters narrow each other.
#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// User threads by number or name, separated by commas; name:4 is the thread named 4, a comma in a name is escaped: \,
    #[arg(long, value_name = "THREAD", help_heading = "Filters")]
    pub(crate) thread: Vec<ThreadList>,
    /// An LWP, by its tid.
    #[arg(long, value_name = "TID", value_delimiter = ',', help_heading = "Filters")]
    pub(crate) lwp: Vec<u32>,
    /// A CPU.
    #[arg(long, value_name = "CPU", value_delimiter = ',', help_heading = "Filters")]
    pub(crate) cpu: Vec<u32>,
    /// Events whose name contains this text, or matches it as a regular expression.
    #[arg(long, value_name = "PATTERN", help_heading = "Filters")]
    pub(crate) event: Vec<EventPattern>,
    /// Events of one side only.
    #[arg(long, value_enum, ignore_case = true, help_heading = "Filters")]
    pub(crate) level: Option<LevelArg>,
    /// From this tick, or this long after the first event (1.5ms, 20us, +3s).
    #[arg(long, value_name = "WHEN", help_heading = "Filters")]
    pub(crate) from: Option<Instant>,
    /// Up to this tick, or this long after the first event.
    #[arg(long, value_name = "WHEN", help_heading = "Filters")]
    pub(crate) to: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelArg {
    Kern,
    User,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    Ns,
    Us,
    Ms,
    S,
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

/// Formats of answers: of tables, and of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFormat {
    Table(FormatArg),
    /// With `--functions`: a line for each stack with its active ticks, as tools for flame graphs read them.
    Folded,
}

impl AnswerFormat {
    /// That of a table.
    ///
    /// # Errors
    /// If it is of stacks.
    pub(crate) fn of_table(self) -> Result<FormatArg, anyhow::Error> {
        match self {
            AnswerFormat::Table(format) => Ok(format),
            AnswerFormat::Folded => bail!("--format folded: expected --functions, whose stacks it lists"),
        }
    }
}

impl ValueEnum for AnswerFormat {
    fn value_variants<'a>() -> &'a [AnswerFormat] {
        use FormatArg::{Csv, Human, Json, Ndjson, Tsv};
        const ALL: [AnswerFormat; 6] = [
            AnswerFormat::Table(Human),
            AnswerFormat::Table(Tsv),
            AnswerFormat::Table(Csv),
            AnswerFormat::Table(Json),
            AnswerFormat::Table(Ndjson),
            AnswerFormat::Folded,
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            AnswerFormat::Table(format) => format.to_possible_value(),
            AnswerFormat::Folded => {
                Some(PossibleValue::new("folded").help("With --functions: stacks, for flame graphs"))
            }
        }
    }
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Format {
        match format {
            FormatArg::Human => Format::Human,
            FormatArg::Tsv => Format::Tsv,
            FormatArg::Csv => Format::Csv,
            FormatArg::Json => Format::Json,
            FormatArg::Ndjson => Format::Ndjson,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Runs (folders), user traces, listings; traces by trace-cmd, perf, LTTng (CTF) and FxT; texts of ftrace.
    #[arg(required = true, value_name = "INPUT", value_hint = ValueHint::AnyPath)]
    pub(crate) inputs: Vec<PathBuf>,
    /// The super-trace to write.
    #[arg(long, short, value_name = "NAME.supertrace")]
    pub(crate) output: PathBuf,
    /// Overwrite it if it is there.
    #[arg(long)]
    pub(crate) force: bool,
    /// Clock of kernel traces, if that in the file is wrong: x86-tsc, mono, mono_raw, boot, local.
    #[arg(long, value_name = "CLOCK", value_parser = clock)]
    pub(crate) clock: Option<sigmund_model::ClockDomain>,
    /// Ticks per second, if no input contains it.
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
    after_help = "Exit status: 0 sound, or sound with gaps, or a valid Pajé file; 1 broken, not valid, or no event to check; 2 error."
)]
pub(crate) struct CheckArgs {
    /// The super-trace; not needed if there is just one in this folder. Or a Pajé file of any program, recognised by its
    /// `%EventDef`: is it valid?
    #[arg(value_name = "T", value_hint = ValueHint::AnyPath)]
    pub(crate) trace: Option<PathBuf>,
    /// Number of gaps to list, and of events whose CPU differs between the probe and sched_switch; of a Pajé file, of faults.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) list: usize,
    /// List all of them.
    #[arg(long, conflicts_with = "list")]
    pub(crate) all: bool,
    /// Show only this part.
    #[arg(long, value_enum, value_name = "PART")]
    pub(crate) only: Option<CheckPart>,
    /// Output format. As json, all parts are one object; tsv, csv and ndjson have one part, by default the invariants.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: FormatArg,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

/// A part of the report of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckPart {
    /// The invariants, and whether each holds.
    #[value(alias = "promises")]
    Invariants,
    /// For each LWP, the number of events whose CPU agrees between the probe and sched_switch.
    Witnesses,
    /// Events whose CPU differs between the two.
    Disagreements,
    /// What is missing, by source.
    Losses,
    /// Each gap, and the threads and LWPs that were active across it.
    Gaps,
    /// LWPs whose time on CPUs differs from the kernel's accounting.
    CpuTimes,
    /// How well other clocks fit the main clock.
    Clocks,
}

impl CheckPart {
    /// All parts after the invariants.
    pub(crate) const TABLES: [CheckPart; 6] = [
        CheckPart::Witnesses,
        CheckPart::Disagreements,
        CheckPart::Losses,
        CheckPart::Gaps,
        CheckPart::CpuTimes,
        CheckPart::Clocks,
    ];

    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CheckPart::Invariants => "invariants",
            CheckPart::Witnesses => "witnesses",
            CheckPart::Disagreements => "disagreements",
            CheckPart::Losses => "losses",
            CheckPart::Gaps => "gaps",
            CheckPart::CpuTimes => "cpu-times",
            CheckPart::Clocks => "clocks",
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Permitted for the user of the process and for root. A program started with FUT_CONTROL=0 does not \
    answer.\n\nExample:\n  sigmund ctl $(pidof myserver) disable 'USER_*'\n\nExit status: 0 found, 1 nothing matched, \
    2 error."
)]
pub(crate) struct CtlArgs {
    /// The process.
    #[arg(value_name = "PID")]
    pub(crate) pid: u32,
    #[command(subcommand)]
    pub(crate) verb: CtlVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CtlVerb {
    /// List its events: on or off, bytes per record, number in the buffers.
    ///
    /// `bytes` is the size of a record, the minimum if it has texts. `in_buffers` counts events that are not drained yet,
    /// or are kept by a flight recorder, in a sample: the newest 4 MiB of each LWP.
    List {
        /// Output format.
        #[arg(long, value_enum, default_value = "human")]
        format: FormatArg,
    },
    /// Switch events on by name. Events declared in C are switched only by their keys.
    #[command(after_help = "Example:\n  sigmund ctl 1234 enable 'request*'")]
    Enable {
        /// A name; * matches any characters.
        #[arg(value_name = "PATTERN")]
        pattern: String,
    },
    /// Switch events off by name; a probe that is off is a nop.
    #[command(after_help = "Example:\n  sigmund ctl 1234 disable 'USER_THREAD_*'")]
    Disable {
        /// A name; * matches any characters.
        #[arg(value_name = "PATTERN")]
        pattern: String,
    },
    /// Show which groups of events are on, or switch them: those in MASK on, all others off.
    #[command(after_help = "Example:\n  sigmund ctl 1234 keys scheduler,lwp")]
    Keys {
        /// A number (0x101), or names: scheduler, lwp, sync, locks, spans, program, functions, c (all of C programs), all, default (all but locks), none.
        #[arg(value_name = "MASK", value_parser = key_mask)]
        mask: Option<KeyMask>,
        /// Output format.
        #[arg(long, value_enum, default_value = "human")]
        format: FormatArg,
    },
    /// Show its recording mode, and for each LWP how full its buffer is and how many events were lost.
    ///
    /// `in_use`: packets of 64 KiB with events that are not drained; `percent`: their share of the ring; `packets`, `bytes`:
    /// what the LWP has written so far.
    Status {
        /// Output format. As json, facts and LWPs are one object; tsv and csv have the LWPs only.
        #[arg(long, value_enum, default_value = "human")]
        format: FormatArg,
    },
    /// List its user threads: state, LWP, what each waits for, and the holder of that when the wait began.
    Threads {
        /// Output format.
        #[arg(long, value_enum, default_value = "human")]
        format: FormatArg,
    },
}

/// A key mask as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyMask(pub(crate) u64);

fn key_mask(text: &str) -> Result<KeyMask, String> {
    use fut::keys;

    let part = |word: &str| match word.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        _ => match word {
            "scheduler" => Some(keys::SCHEDULER),
            "lwp" => Some(keys::LWP),
            "sync" => Some(keys::SYNC),
            "locks" => Some(keys::LOCKS),
            "spans" => Some(keys::SPANS),
            "program" => Some(keys::PROGRAM),
            "functions" => Some(keys::FUNCTIONS),
            "c" => Some(keys::C_PROGRAM),
            "all" => Some(keys::ALL),
            "default" => Some(keys::DEFAULT),
            "none" => Some(0),
            number => number.parse().ok(),
        },
    };
    text.split(',').try_fold(0, |mask, word| Some(mask | part(word)?)).map(KeyMask).ok_or_else(|| {
        "expected a number as in 0x101, or names of scheduler, lwp, sync, locks, spans, program, functions, c, all, default, none with commas"
            .into()
    })
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
pub(crate) struct DemoArgs {
    /// Folder for the recording and the super-trace.
    #[arg(long, short, value_name = "FOLDER", default_value = "sigmund-demo")]
    pub(crate) output: PathBuf,
    /// Height of the tree: 2^(HEIGHT+1) - 1 user threads.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=13))]
    pub(crate) height: u32,
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

#[derive(Debug, Args)]
pub(crate) struct SumtimeArgs {
    /// Levels of the tree.
    pub(crate) height: u32,
    /// LWPs that carry it.
    pub(crate) lwps: usize,
    /// Steps that each thread computes.
    pub(crate) work: u32,
}
