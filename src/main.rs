//! The `sigmund` command, with one file per subcommand. It parses arguments, calls the crates, and formats results.

// Denied, with two exceptions: Sumtime builds a migrating runtime (examples/sumtime/tree.rs), and memory.rs calls
// mallopt.
#![deny(unsafe_code)]
// Only `terminal` prints.
#![warn(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "sql")]
mod answer;
mod check;
mod cli;
#[cfg(feature = "cluster")]
mod cluster;
mod ctl;
#[cfg(feature = "sql")]
mod demo;
mod descriptors;
#[cfg(feature = "sql")]
mod drawings;
#[cfg(feature = "sql")]
mod export;
#[cfg(feature = "sql")]
mod gaps;
mod info;
mod inputs;
#[cfg(feature = "sql")]
mod measured;
mod memory;
mod merge;
mod output;
mod owner;
mod record;
#[cfg(feature = "sql")]
mod report;
mod schemata;
#[cfg(feature = "sql")]
mod serve;
mod signals;
mod snapshot;
#[cfg(feature = "sql")]
mod sql;
mod terminal;
#[cfg(feature = "sql")]
mod view;

use std::{env, io::Write, process::ExitCode};

#[cfg(not(feature = "sql"))]
use anyhow::bail;
use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, error::ContextKind};

use crate::cli::{Cli, Command};

/// The result of a command. It determines the exit status, unless an error was reported. `EXIT_STATUS` in `cli/mod.rs`
/// documents the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Something. Status 0.
    Something,
    /// Nothing matched, or a check is broken. Status 1.
    Nothing,
    /// Not everything: something is missing or damaged, and was reported. Status 2.
    Damaged,
    #[cfg(feature = "sql")]
    /// Something, but with --strict: events are missing in the time of the question. Status 3.
    Gaps,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(cli::with_queries(env::args_os().collect())) {
        Ok(cli) => cli,
        // Help and version go to stdout.
        Err(error) if !error.use_stderr() => error.exit(),
        Err(mut error) => {
            if cli::is_of_clusters(&error) {
                // The existing subcommands are not similar to this one.
                error.remove(ContextKind::SuggestedSubcommand);
            }
            terminal::usage(&error, cli::tip(&error).as_deref());
            return ExitCode::from(2);
        }
    };
    // A question ends soon. Commands that serve or record for a long time give freed memory back instead.
    if cli.command.is_none() {
        memory::keep_freed_memory();
    }
    match run(cli) {
        Ok(_) if terminal::has_reported_errors() => ExitCode::from(2),
        Ok(Found::Something) => ExitCode::SUCCESS,
        Ok(Found::Nothing) => ExitCode::from(1),
        Ok(Found::Damaged) => ExitCode::from(2),
        #[cfg(feature = "sql")]
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
        Some(Command::Info(args)) => info::run(&args),
        #[cfg(feature = "sql")]
        Some(Command::Report(args)) => wait_for(report::run(args)),
        Some(Command::Schema(args)) => schemata::run(&args),
        Some(Command::Check(args)) => check::run(args),
        #[cfg(feature = "sql")]
        Some(Command::Sql(args)) => wait_for(sql::run(args)),
        #[cfg(feature = "sql")]
        Some(Command::View(args)) => wait_for(view::run(args)),
        #[cfg(feature = "sql")]
        Some(Command::Serve(args)) => wait_for(serve::run(args)),
        #[cfg(feature = "cluster")]
        Some(Command::Scheduler(args)) => wait_for(cluster::scheduler(args)),
        #[cfg(feature = "cluster")]
        Some(Command::Executor(args)) => wait_for(cluster::executor(args)),
        #[cfg(feature = "sql")]
        Some(Command::Export(args)) => wait_for(export::run(args)),
        Some(Command::Ctl(args)) => ctl::run(&args),
        Some(Command::Snapshot(args)) => snapshot::run(&args),
        #[cfg(feature = "sql")]
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Hold(args)) => record::hold(&args),
        #[cfg(feature = "sql")]
        Some(Command::Sumtime(args)) => demo::sumtime(&args),
        Some(Command::Completions { shell }) => {
            // Written to memory first, because clap_complete panics if the reader of the output has closed it.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "sigmund", &mut script);
            let out = &mut terminal::data();
            out.write_all(&script)?;
            out.flush()?;
            Ok(Found::Something)
        }
        Some(Command::Man { all: Some(folder) }) => {
            clap_mangen::generate_to(cli::for_man_pages(), &folder)
                .with_context(|| format!("writing man pages to {}", folder.display()))?;
            Ok(Found::Something)
        }
        Some(Command::Man { all: None }) => {
            let out = &mut terminal::data();
            clap_mangen::Man::new(cli::for_man_pages()).render(out)?;
            out.flush()?;
            Ok(Found::Something)
        }
        #[cfg(feature = "sql")]
        None => wait_for(answer::run(cli.question)),
        #[cfg(not(feature = "sql"))]
        None => bail!("expected a subcommand"),
    }
}

/// Runs a question until it is answered. Queries use all CPUs.
#[cfg(feature = "sql")]
fn wait_for(question: impl Future<Output = Result<Found>>) -> Result<Found> {
    let runtime = query_threads()?;
    let found = runtime.block_on(question);
    // Not waited for: a cancelled query may still be busy.
    runtime.shutdown_background();
    found
}

/// As many threads for queries as there are CPUs.
#[cfg(feature = "sql")]
fn query_threads() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(sigmund_sql::QUERY_STACK)
        .enable_all()
        .build()
        .context("starting threads for the query")
}
