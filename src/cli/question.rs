//! A question by filters and a measure, and the formats of its answer.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum, ValueHint, builder::PossibleValue};
use sigmund_measures::{Measure, named};
use sigmund_model::{Hertz, Ticks};
use sigmund_query::{EventPattern, Format, Instant, LwpList, ProcessList, Selector, ThreadList};
use sigmund_sql::OpenOptions;

use super::{ClusterArgs, DamageArgs, DrawingArgs, FormatArg, MeasureArgs, sql::memory};

/// A query by filters and a measure.
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// The super-trace; not needed if there is just one in this folder.
    #[arg(long, short = 'f', value_name = "T", value_hint = ValueHint::DirPath)]
    pub(crate) trace_file: Option<PathBuf>,
    /// Evaluate the measure over all super-traces in this folder, named HOST.supertrace, with a column host.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["trace_file", "list_events", "compare", "gantt", "histogram", "svg"])]
    pub(crate) fleet: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// List the events; with --reactivity, each FROM with the next TO event.
    #[arg(long, help_heading = "What happened")]
    pub(crate) list_events: bool,
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], help_heading = "Why it was late", help = PAIRS, long_help = pairs())]
    pub(crate) reactivity: Vec<Selector>,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    #[command(flatten)]
    pub(crate) drawing: DrawingArgs,
    /// How much memory a measure may take, as in 512MiB or 1GiB. If half of it is in use, rows of the answer go to a temporary file
    /// (in TMPDIR); a measure that needs more all the same fails. Without a limit, rows go there from 512MiB on.
    #[arg(long, value_name = "SIZE", value_parser = memory, help_heading = "How to answer")]
    pub(crate) memory: Option<usize>,
    /// Also show times in this unit.
    #[arg(long, value_enum, help_heading = "Output")]
    pub(crate) unit: Option<Unit>,
    /// Output format.
    #[arg(long, value_enum, default_value = "human", help_heading = "Output")]
    pub(crate) format: AnswerFormat,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

/// The help of `--reactivity`.
const PAIRS: &str = "Latency from FROM to TO, and what delayed it: NAME, NAME(VALUE) or NAME(field=VALUE), optionally followed by @THREAD or @LWP";

/// The same with the definition of the measure.
fn pairs() -> String {
    format!("{PAIRS}\n\n{}", named("reactivity").map_or(String::new(), Measure::definition_in_lines))
}

impl Question {
    /// How its super-traces are opened.
    pub(crate) fn how(&self) -> OpenOptions {
        OpenOptions { memory: self.memory, ..self.damage.into() }
    }
}

/// Which events, and which time. Several values of one filter are alternatives; filters narrow each other.
#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// User threads by number, name or pattern (client/*), separated by commas. name:4 is the thread named 4; a comma in a
    /// name is escaped: \,
    #[arg(long, value_name = "THREAD", help_heading = "Filters")]
    pub(crate) thread: Vec<ThreadList>,
    /// LWPs by tid, name or pattern (kworker/*), likewise. Without --thread, --process and --by, a measure is then of LWPs.
    #[arg(long, value_name = "LWP", help_heading = "Filters")]
    pub(crate) lwp: Vec<LwpList>,
    /// Processes by pid, name or pattern: their user threads; if none of these processes has any, their LWPs.
    #[arg(long, value_name = "PROCESS", help_heading = "Filters")]
    pub(crate) process: Vec<ProcessList>,
    /// A CPU.
    #[arg(long, value_name = "CPU", value_delimiter = ',', help_heading = "Filters")]
    pub(crate) cpu: Vec<u32>,
    /// Events whose name contains this text, or matches it as a regular expression.
    #[arg(long, value_name = "PATTERN", help_heading = "Filters")]
    pub(crate) event: Vec<EventPattern>,
    /// Only kernel events (kern) or user events (user); for a measure, LWPs (kern) or user threads (user).
    #[arg(long, value_enum, ignore_case = true, help_heading = "Filters")]
    pub(crate) level: Option<LevelArg>,
    /// From this tick, or this long after the first event (1.5ms, 20us, +3s).
    #[arg(long, value_name = "WHEN", help_heading = "Filters", allow_hyphen_values = true)]
    pub(crate) from: Option<Instant>,
    /// Up to and including this tick, or the one this long after the first event.
    #[arg(long, value_name = "WHEN", help_heading = "Filters", allow_hyphen_values = true)]
    pub(crate) to: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelArg {
    #[value(alias = "kernel")]
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

impl Unit {
    /// The symbol of the unit, after a number and in the name of a column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Us => "us",
            Unit::Ms => "ms",
            Unit::S => "s",
        }
    }

    /// A duration in this unit.
    ///
    /// # Errors
    /// If the tick rate is unknown.
    pub(crate) fn of(self, length: Ticks, tick_hz: Option<Hertz>) -> Result<f64> {
        let Some(hz) = tick_hz else {
            bail!("--unit {}: the tick rate of the trace is unknown; merge it with --hz", self.name())
        };
        let per_second = match self {
            Unit::Ns => 1e9,
            Unit::Us => 1e6,
            Unit::Ms => 1e3,
            Unit::S => 1.0,
        };
        Ok(length.0 as f64 * per_second / hz.per_second())
    }
}

/// Formats of answers: tables or stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFormat {
    Table(FormatArg),
    /// With `--functions`: a line for each stack with its active ticks, as tools for flame graphs read them.
    Folded,
}

impl AnswerFormat {
    /// The format for a table.
    ///
    /// # Errors
    /// If it is the format for stacks.
    pub(crate) fn of_table(self) -> Result<FormatArg> {
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

impl From<DamageArgs> for OpenOptions {
    fn from(args: DamageArgs) -> OpenOptions {
        OpenOptions { keep_going: args.keep_going, ..OpenOptions::default() }
    }
}
