//! The memory of many live user threads.

use super::{Plan, verdict};
use crate::{contenders::Contender, sample::Job, table::Table, work::Work};

const TARGETS: [(u64, u64); 2] = [(100_000, 1 << 30), (1_000_000, 8 << 30)];

pub(crate) fn run(plan: Plan<'_>) {
    println!("\nLive user threads, each blocked in a join, on 1 LWP and CPU");
    let mut table = Table::new(&[
        "threads",
        "resident",
        "page tables",
        "a thread",
        "mappings",
        "ns to spawn and block",
        "ns to end",
        "target",
        "",
    ]);
    for (threads, most) in TARGETS {
        let threads = (threads / plan.hurry).max(2);
        let work = Work::Live { threads };
        match (Job { contender: Contender::Fut, work, cpus: 1 }).sample(plan.scratch) {
            Err(why) => table.remark(&threads.to_string(), &why),
            Ok(sample) => {
                let live = sample.live.unwrap_or_default();
                let bytes = live.resident + live.page_tables;
                let mib = |bytes: u64| format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20));
                table.row([
                    threads.to_string(),
                    mib(live.resident),
                    mib(live.page_tables),
                    format!("{} B", bytes / threads),
                    live.mappings.to_string(),
                    format!("{:.0}", sample.ns(work)),
                    format!("{:.0}", live.end_ns as f64 / threads as f64),
                    format!("< {}", mib(most / plan.hurry)),
                    verdict(bytes < most / plan.hurry),
                ]);
            }
        }
    }
    print!("{table}");
}
