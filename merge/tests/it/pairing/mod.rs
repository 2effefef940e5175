//! Intervals that the merge pairs from events, in small drawn cases. One file per table.
//!
//! In the drawings `=` is an LWP on a CPU, a letter an active user thread, `[` and `]` the ends of the paired interval.

mod counters;
mod interrupts;
mod kernel_locks;
mod locks;
mod lost;
mod lost_user;
mod processes;
mod spans;
mod states;
mod syscalls;
mod wakeups;

use crate::supertrace::Inputs;

/// Merges events with the columns `type date_tick pid cpu name params`; returns `columns` of the rows of `table`.
fn rows(events: &str, table: &str, columns: &str) -> Vec<String> {
    let merged = Inputs::new().listing("drawn.tsv", events).merge();
    merged.table(table, &columns.split(' ').collect::<Vec<_>>())
}
