//! Intervals that the merge pairs from events, drawn by hand: every row can be worked out on paper. A file a table.
//!
//! In the drawings `=` is an LWP on a CPU, a letter a user thread that executes, `[` and `]` what is paired.

mod counters;
mod interrupts;
mod locks;
mod lost;
mod processes;
mod spans;
mod states;
#[path = "../supertrace/mod.rs"]
mod supertrace;
mod syscalls;
mod wakeups;

use self::supertrace::Merged;

/// The rows of a table, from events drawn under this head: `type date_tick pid cpu name params`.
fn rows(events: &str, table: &str, columns: &str) -> Vec<String> {
    let merged = Merged::of(&format!("type date_tick pid cpu name params\n{}", events.trim_start()));
    merged.table(table, &columns.split(' ').collect::<Vec<_>>())
}
