//! The example's archive, as `otf2-print` reads it.

use std::process::Command;

use crate::tools;

#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/small_archive.rs"]
mod small_archive;

#[test]
fn otf2_print_reads_what_the_example_writes() {
    if !tools::all_there(&["otf2-print"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    small_archive::write_archive(&archive).unwrap();

    let printed = Command::new("otf2-print").arg(archive.join("traces.otf2")).output().unwrap();
    assert!(printed.status.success() && printed.stderr.is_empty(), "{printed:?}");
    let printed = String::from_utf8(printed.stdout).unwrap();
    let events: Vec<Vec<&str>> = printed
        .lines()
        .filter(|line| ["ENTER ", "LEAVE ", "METRIC "].iter().any(|kind| line.starts_with(kind)))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let seen: Vec<(&str, &str)> = events.iter().map(|words| (words[0], words[2])).collect();
    let expected = [
        ("ENTER", "0"),
        ("METRIC", "0"),
        ("ENTER", "5"),
        ("LEAVE", "16"),
        ("METRIC", "17"),
        ("ENTER", "21"),
        ("LEAVE", "36"),
        ("METRIC", "36"),
        ("LEAVE", "40"),
    ];
    assert_eq!(seen, expected, "{printed}");
    assert!(printed.contains("\"solve\"") && printed.contains("\"step\""), "{printed}");
}
