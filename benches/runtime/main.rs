//! The costs of fut's runtime and its recording, compared with other runtimes, in one run on one machine.
//! `benches/README.md` explains the tables.

mod contenders;
mod echo;
mod fair;
mod live;
mod machine;
mod messages;
mod recorded;
mod sample;
mod scale;
mod sections;
mod statistics;
mod steps;
mod table;
mod work;

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand, ValueEnum};

use crate::{
    contenders::Contender,
    sections::{Plan, cost, memory, messages as talking, net, overhead, scale as scaling},
    work::Work,
};

/// What fut's runtime and its recording cost, beside other runtimes.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// What to measure; may be given several times.
    #[arg(long = "section", value_enum, default_value = "cost")]
    sections: Vec<Section>,
    /// Samples of each figure.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..1000))]
    rounds: u16,
    /// Levels of Sumtime's tree below its root.
    #[arg(long, default_value_t = 19, value_parser = clap::value_parser!(u32).range(1..24))]
    height: u32,
    /// Blocks of the LU factorisation's matrix, in each direction.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..1000))]
    blocks: u16,
    /// Numbers in a block, in each direction.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..1000))]
    block_size: u16,
    /// Makes samples so many times shorter: to see that everything works, not to measure.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    hurry: u64,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Takes one sample; what this program runs again and again.
    #[command(hide = true)]
    One { contender: Contender, work: Work, cpus: usize, scratch: PathBuf },
    /// The client of an echo server.
    #[command(hide = true)]
    Client { address: SocketAddr, work: Work },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Yield, spawn and join, and Sumtime, beside the peers.
    Cost,
    /// What recording costs Sumtime.
    Sumtime,
    /// What recording costs a compute kernel.
    Kernel,
    /// A million live user threads.
    Memory,
    /// An echo server, beside the peers.
    Net,
    /// Channels, notifications, tokens and other things to wait for, beside tokio's.
    Messages,
    /// From a hundred user threads to a million, many sockets, many LWPs, and fairness.
    Scale,
    /// Everything.
    All,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.command {
        Some(Command::One { contender, work, cpus, scratch }) => one(*contender, *work, *cpus, scratch),
        Some(Command::Client { address, work }) => client(*address, *work),
        None => run(&cli).map_err(|error| error.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn one(contender: Contender, work: Work, cpus: usize, scratch: &Path) -> Result<(), String> {
    let sample = contender.run(work, cpus, scratch)?;
    println!("{sample}");
    Ok(())
}

fn client(address: SocketAddr, work: Work) -> Result<(), String> {
    let Work::Echo { connections, requests } = work else { return Err("expected echo:…".into()) };
    println!("{}", echo::client(address, connections, requests).map_err(|error| error.to_string())?);
    Ok(())
}

fn run(cli: &Cli) -> io::Result<()> {
    // Traces are written there, in memory, because writing to a disk would be measured as well.
    let memory_disk = Path::new("/dev/shm");
    let scratch = tempfile::Builder::new().prefix("sigmund-bench-").tempdir_in(if memory_disk.is_dir() {
        memory_disk.to_path_buf()
    } else {
        std::env::temp_dir()
    })?;
    let cpus = machine::cpus()?.len();
    let plan = Plan { rounds: cli.rounds.into(), hurry: cli.hurry, cpus, scratch: scratch.path() };
    println!("Medians of {} samples, each a process of its own, in turns.", plan.rounds);
    println!("{}", machine::quietness()?);
    let before = machine::Use::now()?;
    let wanted = |section| cli.sections.contains(&section) || cli.sections.contains(&Section::All);
    if wanted(Section::Cost) {
        cost::run(plan, cli.height);
    }
    if wanted(Section::Sumtime) {
        overhead::run(plan, Work::sumtime(cli.height, cli.hurry), &overhead::SUMTIME);
    }
    if wanted(Section::Kernel) {
        let work = Work::Factorise { blocks: cli.blocks.into(), size: cli.block_size.into() };
        overhead::run(plan, work, &overhead::KERNEL);
    }
    if wanted(Section::Memory) {
        memory::run(plan);
    }
    if wanted(Section::Net) {
        net::run(plan);
    }
    if wanted(Section::Messages) {
        talking::run(plan);
    }
    if wanted(Section::Scale) {
        scaling::run(plan);
    }
    println!("\n{}", machine::stolen_since(before)?);
    if cpus < 2 {
        println!("There is one CPU: nothing was measured on two, and drains ran beside what they drain.");
    }
    Ok(())
}
