//! `per_cpu/cpuN/stats` of an instance: counts since it was created (kernel/trace/trace.c, `tracing_stats_read`, v6.12).

use std::fmt::Write;

/// Counts of events that were lost before they were read.
const LOST: [&str; 3] = ["overrun", "commit overrun", "dropped events"];
/// Count of events in pages that were read or moved.
const READ: &str = "read events";

/// Number of events that were lost before they were read.
pub(super) fn lost(stats: &str) -> u64 {
    LOST.iter().map(|key| count(stats, key)).fold(0, u64::saturating_add)
}

/// Number of events that were read.
pub(super) fn read_events(stats: &str) -> u64 {
    count(stats, READ)
}

/// The same text with the counts since `before`, an earlier text: those of one part of a recording.
pub(super) fn since(stats: &str, before: &str) -> String {
    let mut text = String::new();
    for line in stats.lines() {
        let key = line.split(':').next().unwrap_or_default();
        let counts = LOST.contains(&key) || key == READ;
        let written = match counts {
            true => writeln!(text, "{key}: {}", count(stats, key).saturating_sub(count(before, key))),
            false => writeln!(text, "{line}"),
        };
        written.expect("a String takes what is written to it");
    }
    text
}

fn count(stats: &str, key: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok();
    stats.lines().find_map(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_part_are_those_since_the_part_before() {
        let before =
            "entries: 9\noverrun: 5\ncommit overrun: 1\nbytes: 70\ndropped events: 2\nread events: 100\n";
        let after =
            "entries: 3\noverrun: 8\ncommit overrun: 1\nbytes: 30\ndropped events: 2\nread events: 164\n";
        let part = since(after, before);
        assert_eq!(
            part,
            "entries: 3\noverrun: 3\ncommit overrun: 0\nbytes: 30\ndropped events: 0\nread events: 64\n"
        );
        assert_eq!((lost(after), lost(before), lost(&part)), (11, 8, 3));
        assert_eq!(read_events(&part), 64);
        assert_eq!(since(after, ""), after);
    }
}
