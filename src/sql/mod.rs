//! `sigmund sql`: queries on a super-trace, one by one or at a prompt.

mod commands;
mod compared;
mod completion;
mod describe;
mod prompt;
mod session;
mod statements;
mod threads;

use std::{
    fs,
    io::{self, IsTerminal, Read},
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use sigmund_sql::{OpenOptions, SuperTrace};

use self::session::Session;
use crate::{
    Found, answer,
    cli::{FormatArg, Queried, SqlArgs},
};

pub(crate) async fn run(args: SqlArgs) -> Result<Found> {
    let (subjects, query) = args.subjects()?;
    let how = OpenOptions { memory: args.memory, ..args.damage.into() };
    let trace = match &args.fleet {
        Some(folder) => answer::open_fleet(folder, how).await?,
        None => open(subjects, how).await?,
    };
    args.cluster.join(&trace)?;
    let trace = Arc::new(trace);
    let session = Session::new(trace, &args);
    if let Some(name) = &args.schema {
        return session.describe(name.as_deref()).await;
    }
    let queries = match (query.or(args.command), &args.file) {
        (Some(queries), _) => queries,
        (None, Some(path)) if path.as_os_str() == "-" => on_standard_input()?,
        (None, Some(path)) => {
            fs::read_to_string(path).with_context(|| format!("queries in {}", path.display()))?
        }
        (None, None) if io::stdin().is_terminal() => return prompt::run(session).await,
        (None, None) => on_standard_input()?,
    };
    // Some editors put a byte order mark at the beginning of a file.
    let queries = statements::each(queries.trim_start_matches('\u{feff}'));
    if let [query] = queries.as_slice() {
        return Ok(session.run(query).await?.unwrap_or(Found::Something));
    }
    // Only queries count: a text that only defines views is successful.
    let mut found = queries.is_empty().then_some(Found::Nothing);
    for query in queries {
        let on_one_line = || query.split_whitespace().collect::<Vec<_>>().join(" ");
        let asked = session.run(query).await.with_context(on_one_line)?;
        found = match (found, asked) {
            (_, Some(Found::Gaps)) => asked,
            (None | Some(Found::Nothing), Some(_)) => asked,
            _ => found,
        };
    }
    Ok(found.unwrap_or(Found::Something))
}

fn on_standard_input() -> Result<String> {
    let mut queries = String::new();
    io::stdin().read_to_string(&mut queries).context("queries on standard input")?;
    Ok(queries)
}

/// Opens the first super-trace, and attaches the others.
pub(crate) async fn open(subjects: Vec<Queried>, how: OpenOptions) -> Result<SuperTrace> {
    let mut subjects = subjects.into_iter();
    let first = subjects.next().context("expected a super-trace, found none")?;
    let text = first.path.to_string_lossy();
    let word = text.split_whitespace().next().unwrap_or_default();
    let begins_query = ["SELECT", "WITH", "DESCRIBE", "SHOW", "EXPLAIN", "CREATE"];
    if begins_query.iter().any(|begin| word.eq_ignore_ascii_case(begin)) && !first.path.exists() {
        bail!("expected a super-trace before the query, as in `sigmund sql T {text:?}`, found {text}");
    }
    let mut trace = answer::open(Some(&first.path), how).await?;
    if let Some(name) = &first.name {
        trace.name(name)?;
    }
    for other in subjects {
        let name = other.name.unwrap_or_default();
        trace.attach(&name, answer::open(Some(&other.path), how).await?)?;
    }
    Ok(trace)
}

/// The name of a format, for messages and the prompt.
fn format_name(format: FormatArg) -> &'static str {
    match format {
        FormatArg::Human => "human",
        FormatArg::Tsv => "tsv",
        FormatArg::Csv => "csv",
        FormatArg::Json => "json",
        FormatArg::Ndjson => "ndjson",
    }
}
