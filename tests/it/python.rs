//! The Python package of `python/`: its tests, its notebook, and the code of `docs/python.md`, on a super-trace of this command.
//! `python/install target/python` installs what they need.

use std::{path::Path, process::Command};

use crate::{
    kernel,
    sigmund::{program, said},
    skipped::skipped,
};

#[test]
fn the_python_package_reads_what_the_command_writes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/python/bin/python");
    if !python.exists() {
        skipped("target/python is missing: run python/install target/python");
        return;
    }
    // They record the demo.
    if !kernel::may_record() {
        return;
    }
    let mut command = Command::new(python);
    command.current_dir(root.join("python")).env("SIGMUND", program()).env_remove("SUPERTRACE");
    command.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    let report = said(command);
    assert_eq!(report.status, 0, "{report:?}");
    assert!(!report.stdout.contains("skipped"), "{report:?}");
}
