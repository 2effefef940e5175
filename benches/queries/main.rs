//! How fast questions about a super-trace are answered, beside other programs that read its files. The super-trace is of a
//! recording that is drawn by rule, so that answers are checked, too. `benches/README.md` explains the table.

mod questions;
mod sample;
#[path = "../runtime/table.rs"]
mod table;
mod world;

use std::{
    fs::File,
    io::{self, BufWriter},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Parser;

use crate::{
    questions::{ALL, Question},
    sample::{Sample, median},
    table::Table,
    world::{Truth, World},
};

/// How fast questions are answered.
#[derive(Debug, Parser)]
struct Cli {
    /// Folder for the recording and its super-trace; what is there already is used again.
    folder: PathBuf,
    /// Events that the recording has at least.
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// User threads that it has at least.
    #[arg(long, default_value_t = 1000)]
    threads: u64,
    /// The command.
    #[arg(long, value_name = "PROGRAM", default_value = "target/release/sigmund")]
    sigmund: PathBuf,
    /// Python with DuckDB and Polars.
    #[arg(long, value_name = "PROGRAM", default_value = "target/python/bin/python")]
    python: PathBuf,
    /// Samples of each figure; their median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..1000))]
    rounds: u16,
    /// Only questions whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("queries: an answer is wrong");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("queries: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> io::Result<bool> {
    let world = World::of(cli.events, cli.threads);
    let truth = world.truth();
    let trace = super_trace(cli, world, &truth)?;
    println!("{} events, {} user threads, {} bytes", truth.events, truth.threads, bytes(&trace)?);
    let thread = truth.threads / 2;
    let mut table = Table::new(&["", "s", "MiB", "target s", "DuckDB s", "MiB", "Polars s", "MiB"]);
    let mut is_right = true;
    for question in ALL.iter().filter(|question| question.name.contains(&cli.only)) {
        let asked = || ours(cli, question, &trace, thread);
        let ours = match median(cli.rounds, asked) {
            Ok(ours) => ours,
            Err(error) => {
                table.remark(question.name, &error.to_string());
                is_right = false;
                continue;
            }
        };
        if !is_true(question, &ours, world, &truth, thread) {
            table.remark(question.name, &format!("wrong: {}", ours.printed.trim_end()));
            is_right = false;
        }
        let target = question.seconds.map_or(String::new(), |seconds| seconds.to_string());
        let mut row = vec![question.name.to_string()];
        row.extend(figures(&ours));
        row.push(target);
        for peer in ["duckdb", "polars"] {
            let Some(query) = question.sql else { continue };
            let query = query.replace("'T/", &format!("'{}/", trace.display()));
            let query = query.replace("= N", &format!("= {thread}"));
            let asked = || {
                let mut command = Command::new(&cli.python);
                let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries/peers.py");
                command.arg("-B").arg(script).args([peer, &query]);
                command
            };
            match median(cli.rounds, asked) {
                Ok(sample) => row.extend(figures(&sample)),
                Err(error) => row.extend([error.to_string().chars().take(30).collect(), String::new()]),
            }
        }
        table.row(row);
    }
    println!("{table}");
    Ok(is_right)
}

fn figures(sample: &Sample) -> [String; 2] {
    [format!("{:.3}", sample.seconds), (sample.memory >> 20).to_string()]
}

/// The super-trace of this world; it is made if it is not there.
fn super_trace(cli: &Cli, world: World, truth: &Truth) -> io::Result<PathBuf> {
    let name = format!("{}-of-{}", truth.events, truth.threads);
    let trace = cli.folder.join(&name).with_extension("supertrace");
    if trace.exists() {
        return Ok(trace);
    }
    std::fs::create_dir_all(&cli.folder)?;
    let listing = cli.folder.join(&name).with_extension("tsv");
    world.write(&mut BufWriter::with_capacity(1 << 20, File::create(&listing)?))?;
    let merged = median(1, || {
        let mut command = Command::new(&cli.sigmund);
        command.arg("merge").arg(&listing).arg("-o").arg(&trace);
        command
    })?;
    println!("merged in {:.1} s, {} MiB", merged.seconds, merged.memory >> 20);
    std::fs::remove_file(listing)?;
    Ok(trace)
}

fn bytes(trace: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(trace)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            sum += entry.metadata()?.len();
            continue;
        }
        for file in std::fs::read_dir(entry.path())? {
            sum += file?.metadata()?.len();
        }
    }
    Ok(sum)
}

fn ours(cli: &Cli, question: &Question, trace: &Path, thread: u64) -> Command {
    let mut command = Command::new(&cli.sigmund);
    for argument in question.ours {
        match *argument {
            "T" => command.arg(trace),
            "N" => command.arg(thread.to_string()),
            "FROM" => command.arg("1ms"),
            "TO" => command.arg("2ms"),
            other => command.arg(other),
        };
    }
    if question.ours[0] == "sql" {
        command.args(["--format", "tsv"]);
    }
    command
}

/// Whether an answer is what is known, as far as it is.
fn is_true(question: &Question, answer: &Sample, world: World, truth: &Truth, thread: u64) -> bool {
    match question.name {
        "events by name" => truth
            .names
            .iter()
            .all(|(name, times)| answer.printed.lines().any(|line| line == format!("{name}\t{times}"))),
        "active time of a thread" => answer.printed.contains(&world.active(thread).to_string()),
        "check" => answer.printed.contains("sound"),
        _ => true,
    }
}
