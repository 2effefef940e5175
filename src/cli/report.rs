//! The arguments of `sigmund report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use sigmund_query::ProcessList;
use sigmund_schemata::Schema;

use super::DamageArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo sigmund record --schema locks -- ./server
  sigmund report server.supertrace
  sigmund report server.supertrace --process server
  sigmund report other.supertrace --schema locks --schema ./mine.toml --format json

Exit status: 0 at least one question has an answer, 1 none has, 2 error, 3 with --strict: events are missing.")]
pub(crate) struct ReportArgs {
    /// The super-trace; not needed if there is just one in this folder.
    #[arg(value_name = "T", value_hint = ValueHint::DirPath)]
    pub(crate) trace: Option<PathBuf>,
    /// Ask the questions of this schema, and not of those that the trace was recorded with: one of ours (`sigmund schema`
    /// lists them) or a TOML file. Several are several sections.
    #[arg(long, value_name = "NAME|FILE.toml", value_parser = crate::schemata::argument)]
    pub(crate) schema: Vec<Schema>,
    /// Answers of measures about these processes only, by pid, name or pattern; SQL queries are about all.
    #[arg(long, value_name = "PROCESS")]
    pub(crate) process: Vec<ProcessList>,
    /// Rows per answer, at most; as the schema says if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) top: Option<u32>,
    /// Exit with status 3 if events are missing.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Output format.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: ReportFormat,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A page for people.
    Human,
    /// One JSON object.
    Json,
    /// The page in Markdown.
    Markdown,
}
