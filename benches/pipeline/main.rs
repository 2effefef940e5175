//! What more CPUs give a merge: a simulation of its stages, whose costs were measured. `benches/README.md` has the table.

mod designs;
mod schedule;
#[path = "../runtime/table.rs"]
mod table;

use clap::Parser;

use crate::{
    designs::{Costs, Design, Trace},
    table::Table,
};

/// What more CPUs would give a merge, in today's design and others.
#[derive(Debug, Parser)]
struct Cli {
    /// CPU time of decoding in ns an event.
    #[arg(long, default_value_t = 20.0)]
    decode: f64,
    /// Of bringing the streams into one order, and of the state.
    #[arg(long, default_value_t = 30.0)]
    state: f64,
    /// Of filling columns.
    #[arg(long, default_value_t = 20.0)]
    columns: f64,
    /// Of encoding and compressing them.
    #[arg(long, default_value_t = 50.0)]
    encode: f64,
    /// Of writing them to files.
    #[arg(long, default_value_t = 2.0)]
    append: f64,
    /// What handing over to other CPUs adds.
    #[arg(long, default_value_t = 20.0)]
    hand_over: f64,
    /// Of a first pass.
    #[arg(long, default_value_t = 8.0)]
    scan: f64,
    /// Of combining the states of parts, ns for each that lives.
    #[arg(long, default_value_t = 50.0)]
    combine: f64,
    /// Millions of events.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    millions: u64,
    /// LWPs and user threads that live at one time.
    #[arg(long, default_value_t = 10_000)]
    living: u64,
    /// Bytes of an event in the trace.
    #[arg(long, default_value_t = 48.0)]
    bytes: f64,
    /// Numbers of CPUs.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 32, 128], value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Vec<u16>,
}

fn main() {
    let cli = Cli::parse();
    let Cli { decode, state, columns, encode, append, hand_over, scan, combine, .. } = cli;
    let costs = Costs { decode, state, columns, encode, append, hand_over, scan, combine };
    println!("{} million events, {:.0} ns each on one CPU", cli.millions, costs.alone());
    let heading = ["CPUs", "design", "M events/s", "times one CPU", "the one thread is busy", "GB/s read"];
    let mut table = Table::new(&heading);
    for cpus in &cli.cpus {
        // A trace of the machine that merges it.
        let trace = Trace { events: cli.millions * 1_000_000, streams: u64::from(*cpus), living: cli.living };
        for design in Design::ALL {
            let run = design.run(&costs, trace, usize::from(*cpus));
            let rate = trace.events as f64 / run.ns as f64 * 1e3;
            table.row([
                cpus.to_string(),
                design.name().to_string(),
                format!("{rate:.1}"),
                format!("{:.2}", rate * costs.alone() / 1e3),
                format!("{:.0} %", 100.0 * run.merge_ns as f64 / run.ns as f64),
                format!("{:.1}", rate * cli.bytes / 1e3),
            ]);
        }
    }
    table.remark("read", "bytes of the trace, taken to be in memory, with no limit of its bandwidth");
    print!("{table}");
}
