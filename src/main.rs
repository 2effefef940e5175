//! The `sigmund` command: one file a subcommand. It parses arguments, calls the crates, and formats results.

// Denied, except for one call: Sumtime builds a migrating runtime (examples/sumtime/tree.rs).
#![deny(unsafe_code)]
// `terminal` prints, nothing else does.
#![warn(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

mod answer;
mod check;
mod cli;
mod ctl;
mod demo;
mod descriptors;
mod drawings;
mod export;
mod info;
mod measured;
mod merge;
mod output;
mod owner;
mod record;
mod report;
mod schemata;
mod serve;
mod signals;
mod snapshot;
mod sql;
mod terminal;
mod view;

use std::{io::Write, process::ExitCode};

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};

/// What a command found: its exit status, unless it has reported an error. `EXIT_STATUS` in `cli/mod.rs`
/// documents them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Something. Status 0.
    Something,
    /// Nothing matched, or a check is broken. Status 1.
    Nothing,
    /// Not all: something is missing or damaged, and was reported. Status 2.
    Damaged,
    /// Something, and events are missing in the time that was asked about, strictly. Status 3.
    Gaps,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version go to stdout.
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            terminal::usage(&error);
            return ExitCode::from(2);
        }
    };
    match run(cli) {
        Ok(_) if terminal::has_reported_errors() => ExitCode::from(2),
        Ok(Found::Something) => ExitCode::SUCCESS,
        Ok(Found::Nothing) => ExitCode::from(1),
        Ok(Found::Damaged) => ExitCode::from(2),
        Ok(Found::Gaps) => ExitCode::from(3),
        // The reader of our output has closed it.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::report_error(&output::reasons(&error));
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> Result<Found> {
    match cli.command {
        Some(Command::Record(args)) => record::run(&args),
        Some(Command::Merge(args)) => merge::run(&args),
        Some(Command::Info(args)) => wait_for(info::run(args)),
        Some(Command::Report(args)) => wait_for(report::run(args)),
        Some(Command::Schema(args)) => schemata::run(&args),
        Some(Command::Check(args)) => wait_for(check::run(args)),
        Some(Command::Sql(args)) => wait_for(sql::run(args)),
        Some(Command::View(args)) => wait_for(view::run(args)),
        Some(Command::Serve(args)) => wait_for(serve::run(args)),
        Some(Command::Export(args)) => wait_for(export::run(args)),
        Some(Command::Ctl(args)) => ctl::run(&args),
        Some(Command::Snapshot(args)) => snapshot::run(&args),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Hold(args)) => record::hold(&args),
        Some(Command::Sumtime(args)) => demo::sumtime(&args),
        Some(Command::Completions { shell }) => {
            // Into memory first: it panics when the reader of the output has closed it.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "sigmund", &mut script);
            let out = &mut terminal::data();
            out.write_all(&script)?;
            out.flush()?;
            Ok(Found::Something)
        }
        Some(Command::Man) => {
            let out = &mut terminal::data();
            clap_mangen::Man::new(Cli::command()).render(out)?;
            out.flush()?;
            Ok(Found::Something)
        }
        None => wait_for(answer::run(cli.question)),
    }
}

/// Runs a question to its end. Queries use all CPUs.
fn wait_for(question: impl Future<Output = Result<Found>>) -> Result<Found> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting threads for the query")?;
    let found = runtime.block_on(question);
    // A query that was cancelled may still be busy.
    runtime.shutdown_background();
    found
}
