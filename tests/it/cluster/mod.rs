//! Clusters: a scheduler and two executors as processes of this machine give the answers of one process.

mod failures;
mod fleets;
mod processes;
mod same_answers;
mod stores;

use crate::{sigmund::Sigmund, views::listing};

/// The trace of `views.rs` again and again: some row groups, and every table that a listing fills.
fn long_listing(times: u64) -> String {
    let short = listing();
    let (head, events) = short.split_at(short.find("KERN").unwrap());
    let mut all = head.to_string();
    for time in 0..times {
        for line in events.lines() {
            let mut cells = line.splitn(3, '\t');
            let (level, tick, rest) = (cells.next().unwrap(), cells.next().unwrap(), cells.next().unwrap());
            let tick = tick.parse::<u64>().unwrap() + 1000 * time;
            all += &format!("{level}\t{tick}\t{rest}\n");
        }
    }
    all
}

/// A super-trace of 340 000 events, `t.supertrace`.
fn long_trace() -> Sigmund {
    Sigmund::with_listing("t", &long_listing(20_000))
}
