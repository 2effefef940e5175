//! The speed of reading and merging traces, compared with other tools that read them, in one run on one machine.
//! `benches/README.md` explains the table.

mod columns;
mod peers;
mod repeat;
mod sample;
#[path = "../runtime/table.rs"]
mod table;

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::{Parser, Subcommand};

use crate::{
    peers::Peer,
    sample::{Sample, best},
    table::Table,
};

/// How fast traces are read and merged, beside the tools that also read them.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Work>,
    /// Traces of any format: each is read by us and by its peers.
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// Also merges each trace, on one CPU and on two: the command `sigmund`, or `merge_speed`.
    #[arg(long, value_name = "PROGRAM")]
    merge: Option<PathBuf>,
    /// Samples of each figure; the one with the least CPU time counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..1000))]
    rounds: u16,
}

#[derive(Debug, Subcommand)]
enum Work {
    /// Decodes one trace to columns and prints how many events it has; what this program runs again and again.
    #[command(hide = true)]
    Decode { trace: PathBuf },
    /// Makes a long trace.dat of a short one: so many times its events, one after the other.
    Repeat { trace: PathBuf, times: u64, out: PathBuf },
}

fn main() -> ExitCode {
    let done = match Cli::parse() {
        Cli { command: Some(Work::Decode { trace }), .. } => decode(&trace),
        Cli { command: Some(Work::Repeat { trace, times, out }), .. } => repeat::repeat(&trace, times, &out),
        cli => measure(&cli),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ingest: {error}");
            ExitCode::FAILURE
        }
    }
}

fn decode(trace: &Path) -> io::Result<()> {
    println!("{}", columns::decode(trace)?);
    Ok(())
}

fn measure(cli: &Cli) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    for trace in &cli.traces {
        let format = columns::format(trace)?;
        println!("{}, {format}, {} bytes", trace.display(), std::fs::metadata(trace)?.len());
        let mut table = Table::new(&["", "events", "CPU s", "s", "M events/s", "ours is"]);
        let decode = best(cli.rounds, 1, || ours(trace))?;
        let events: u64 = decode.printed.trim().parse().map_err(io::Error::other)?;
        row(&mut table, "decode to columns", events, &decode, None);
        for peer in peers::of(&format) {
            measure_peer(&mut table, peer, trace, folder.path(), cli.rounds, events, &decode)?;
        }
        if let Some(program) = &cli.merge {
            measure_merge(&mut table, program, trace, folder.path(), cli.rounds, events)?;
        }
        println!("{table}");
    }
    Ok(())
}

fn ours(trace: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("decode").arg(trace);
    Ok(command)
}

fn measure_peer(
    table: &mut Table,
    peer: &Peer,
    trace: &Path,
    folder: &Path,
    rounds: u16,
    events: u64,
    decode: &Sample,
) -> io::Result<()> {
    match peer.command(trace, folder) {
        Ok(_) => {
            let sample = best(rounds, 1, || peer.command(trace, folder).map_err(io::Error::other))?;
            row(table, peer.name, events, &sample, Some(sample.cpu_seconds / decode.cpu_seconds));
        }
        Err(why) => table.remark(peer.name, &why),
    }
    Ok(())
}

/// The whole merge. Its speed on two CPUs is by wall-clock time, relative to one CPU.
fn measure_merge(
    table: &mut Table,
    program: &Path,
    trace: &Path,
    folder: &Path,
    rounds: u16,
    events: u64,
) -> io::Result<()> {
    let out = folder.join("out.supertrace");
    let merge = || {
        let mut command = Command::new(program);
        if program.file_name().is_some_and(|name| name == "sigmund") {
            command.args(["merge", "--force"]).arg(trace).arg("-o").arg(&out);
        } else {
            command.arg(&out).arg(trace);
        }
        Ok(command)
    };
    let one = best(rounds, 1, merge)?;
    row(table, "merge on 1 CPU", events, &one, None);
    let two = best(rounds, 2, merge)?;
    row(table, "merge on 2 CPUs", events, &two, None);
    table.remark(
        "merge",
        &format!("{:.2} times as fast on two CPUs, by the wall clock", one.seconds / two.seconds),
    );
    Ok(())
}

fn row(table: &mut Table, name: &str, events: u64, sample: &Sample, times: Option<f64>) {
    let rate = events as f64 / sample.cpu_seconds.max(1e-9) / 1e6;
    table.row([
        name.to_string(),
        events.to_string(),
        format!("{:.3}", sample.cpu_seconds),
        format!("{:.3}", sample.seconds),
        format!("{rate:.2}"),
        times.map_or(String::new(), |times| format!("{times:.1} x")),
    ]);
}
