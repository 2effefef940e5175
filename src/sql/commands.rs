//! Commands of the prompt. They begin with a backslash, as in psql.

use anyhow::{Result, bail};
use clap::ValueEnum;

use super::{format_name, session::Session};
use crate::{cli::FormatArg, terminal};

const HELP: &str = "\
\\d            tables, views and table functions
\\d NAME       columns of one, with units; of a function its definition and arguments, too
\\timing [on|off] print how long each query takes, or no longer
\\f FORMAT     human, tsv, csv, json or ndjson
\\o [FILE]     write answers of queries to a new file; without one, to the terminal again
\\set [N V]    the value of $N in queries; without one, list them
\\?            this help
\\q            end (also exit, quit, Ctrl-D)
A query ends with a semicolon. Ctrl-C cancels a query. EXPLAIN ANALYZE shows where its time goes.";

/// Names of commands, for completion.
pub(super) const COMMANDS: [&str; 7] = ["\\d", "\\f", "\\o", "\\q", "\\set", "\\timing", "\\?"];

/// Whether the prompt continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Line,
    End,
}

/// Whether a line is `exit` or `quit`, as in other prompts.
pub(super) fn is_end(line: &str) -> bool {
    let word = line.trim().trim_end_matches(';').trim_end();
    ["exit", "quit"].iter().any(|end| word.eq_ignore_ascii_case(end))
}

/// Runs a line that begins with a backslash.
pub(super) async fn run(session: &mut Session, line: &str) -> Result<Next> {
    let mut words = line.trim().trim_end_matches(';').splitn(2, char::is_whitespace);
    let command = words.next().unwrap_or_default();
    let argument = words.next().map(str::trim).filter(|argument| !argument.is_empty());
    match (command, argument) {
        ("\\q", None) => return Ok(Next::End),
        ("\\?", None) => terminal::block(HELP)?,
        ("\\d", name) => drop(session.describe(name).await?),
        ("\\timing", None | Some("on" | "off")) => {
            session.is_timed = argument.map_or(!session.is_timed, |word| word == "on");
            terminal::line(if session.is_timed { "timing is on" } else { "timing is off" })?;
        }
        ("\\f", Some(word)) => match FormatArg::from_str(word, true) {
            Ok(format) => session.format = format,
            Err(_) => bail!("\\f: expected human, tsv, csv, json or ndjson, found {word}"),
        },
        ("\\f", None) => terminal::line(format_name(session.format))?,
        ("\\o", path) => session.redirect(path)?,
        ("\\set", None) => {
            for (name, value) in &session.parameters.0 {
                terminal::line(format!("${name} = {value}"))?;
            }
        }
        ("\\set", Some(argument)) => match argument.split_once(char::is_whitespace) {
            Some((name, value)) => {
                let name = name.trim_start_matches('$').to_string();
                session.parameters.0.insert(name, value.trim().to_string());
            }
            None => bail!("\\set: expected a name and a value, found {argument}"),
        },
        _ => bail!("expected a command (\\? lists them) or a query, found {}", line.trim()),
    }
    Ok(Next::Line)
}
