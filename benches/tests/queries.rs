//! Checks that every question has its answer, the right one where that is known, and that each peer answers; not the
//! values of the figures.

use std::{path::Path, process::Command};

#[test]
fn every_question_is_answered_and_what_is_known_is_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (sigmund, python) = (root.join("target/debug/sigmund"), root.join("target/python/bin/python"));
    if !sigmund.exists() || !python.exists() {
        assert!(std::env::var("CI").is_err(), "{} or {} is missing", sigmund.display(), python.display());
        eprintln!("SKIPPED: cargo build and python/install target/python come first");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_queries"));
    program.arg(folder.path()).args(["--events", "20000", "--threads", "500", "--rounds", "1"]);
    program.arg("--sigmund").arg(sigmund).arg("--python").arg(python);
    let output = program.output().expect("the program starts");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let cells = |name: &str| {
        let row = printed.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{printed}"));
        row.split("  ").filter(|cell| !cell.trim().is_empty()).count()
    };
    // The name, two figures of ours, the target, and two of each peer.
    assert_eq!(cells("events by name"), 8, "{printed}");
    assert_eq!(cells("check"), 3, "{printed}");
    assert_eq!(cells("noise of a thread"), 3, "{printed}");
}
