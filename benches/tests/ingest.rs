//! Checks that every reader reads its input, and every figure has a row; not the values of the figures.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

fn run(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_ingest")).args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// A trace.dat of trace-cmd, and the number of events that `trace-cmd report` prints for it.
fn trace_dat(folder: &Path) -> (PathBuf, usize) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fkt-ingest/tests/fixtures");
    let unpacked = |name: &str| {
        let packed = std::fs::read(fixtures.join(name)).expect("a fixture");
        zstd::decode_all(packed.as_slice()).expect("zstd")
    };
    let trace = folder.join("trace.dat");
    std::fs::write(&trace, unpacked("small-tsc-v7-none.dat.zst")).unwrap();
    let report = String::from_utf8(unpacked("small-tsc-v7-none.report.txt.zst")).unwrap();
    // After the line `cpus=2`, each line is an event.
    (trace, report.lines().skip(1).count())
}

#[test]
fn a_trace_dat_has_a_row_of_ours_and_one_of_each_peer_or_the_reason_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, events) = trace_dat(folder.path());
    let trace = trace.to_str().unwrap();
    assert_eq!(run(&["decode", trace]).trim(), events.to_string());
    let printed = run(&["--rounds", "1", trace]);
    for name in ["decode to columns", "libkshark", "trace-cmd"] {
        let row = printed.lines().find(|line| line.starts_with(name));
        let row = row.unwrap_or_else(|| panic!("{name}: {printed}"));
        assert!(row.contains("not installed") || row.contains(&format!(" {events} ")), "{row}");
    }
}
