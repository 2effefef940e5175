//! The arguments of `sigmund sql`, and how super-traces that are queried together are named.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use sigmund_sql::Parameters;

use super::{ClusterArgs, DamageArgs, FormatArg, size::bytes};

#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// The super-trace; or several, each as NAME=T, whose tables are NAME.events and so on. Tables without NAME, and measures,
    /// are those of the first. Then the query; without a query, a prompt is started, or the queries on standard input are run.
    #[arg(value_name = "T|QUERY", required_unless_present = "fleet", num_args = 1.., value_hint = ValueHint::DirPath)]
    words: Vec<OsString>,
    /// Query all super-traces of this folder, HOST.supertrace, as one: each table and measure has a column host.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) fleet: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// The query, as an option; or several, separated by semicolons.
    #[arg(short, long, value_name = "QUERY")]
    pub(crate) command: Option<String>,
    /// Run the queries in this file, separated by semicolons; - is standard input.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "command")]
    pub(crate) file: Option<PathBuf>,
    /// List tables, views and table functions; with NAME, the columns of one with their units, and the definition and
    /// arguments of a function.
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with_all = ["command", "file"])]
    pub(crate) schema: Option<Option<String>>,
    /// The value of $NAME in the query: a number, NULL, TRUE, FALSE or a text. One in quotes is a text: "'5'".
    #[arg(short, long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,
    /// How much memory sorts, groups and joins of a query may use, as in 512MiB or 1GiB: what needs more goes to temporary
    /// files, or fails. A measure that needs more fails. Without it, there is no limit.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(crate) memory: Option<usize>,
    /// Output format.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: FormatArg,
    /// Exit with status 3 if a measure is asked about a time in which events are missing. Not at the prompt.
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

/// A super-trace to be queried.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Queried {
    /// The schema of its tables, if several super-traces are queried together.
    pub(crate) name: Option<String>,
    pub(crate) path: PathBuf,
}

impl SqlArgs {
    /// The super-traces, and the query after them. With a fleet there is only the query.
    ///
    /// # Errors
    /// When the arguments are not as expected; the message has what is expected.
    pub(crate) fn subjects(&self) -> anyhow::Result<(Vec<Queried>, Option<String>)> {
        let mut words = self.words.iter();
        let named: Vec<Queried> = words.by_ref().map_while(|word| named_trace(word)).collect();
        if self.fleet.is_some() && !named.is_empty() {
            anyhow::bail!("expected --fleet or NAME=T, found both");
        }
        let mut rest: Vec<&OsString> = self.words.iter().skip(named.len()).collect();
        let traces = match named.is_empty() {
            true if self.fleet.is_some() => Vec::new(),
            true => vec![Queried { name: None, path: PathBuf::from(rest.remove(0)) }],
            false => named,
        };
        let query = match rest.as_slice() {
            [] => None,
            [query] => Some(query.to_string_lossy().into_owned()),
            [_, more, ..] => anyhow::bail!(
                "expected one query (several super-traces are NAME=T), found {:?} after it",
                more.to_string_lossy()
            ),
        };
        if query.is_some() && (self.command.is_some() || self.file.is_some() || self.schema.is_some()) {
            anyhow::bail!("expected a query, or --command, --file or --schema, found both");
        }
        Ok((traces, query))
    }

    /// The values of parameters. If a name occurs several times, the last value counts.
    pub(crate) fn parameters(&self) -> Parameters {
        Parameters(self.parameters.iter().cloned().collect())
    }
}

/// `NAME=T`, unless a file with that path exists.
pub(super) fn named_trace(word: &OsStr) -> Option<Queried> {
    let (name, path) = word.to_str()?.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_named = is_name && !path.is_empty() && !Path::new(word).exists();
    is_named.then(|| Queried { name: Some(name.to_string()), path: path.into() })
}

/// An amount of memory in bytes.
pub(super) fn memory(text: &str) -> Result<usize, String> {
    let bytes = bytes(text).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| format!("expected a size, such as 512M or 1GiB, found {text:?}"))
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, found {text}"))?;
    Ok((name.trim_start_matches('$').to_string(), value.to_string()))
}
