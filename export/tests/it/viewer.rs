//! Runs readers of other projects: Python with Perfetto's message definitions, and Perfetto's trace processor under
//! node. `export/tests/viewer/install target/viewer` installs them.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::skipped::skipped;

/// Runs one of the scripts of `export/tests/viewer`, which prints JSON. `None` if it cannot be run.
pub(crate) fn run(script: &str, args: &[&OsStr]) -> Option<Value> {
    let Some(python) = python() else {
        skipped("target/viewer is missing: run export/tests/viewer/install target/viewer");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/viewer").join(script);
    let output = Command::new(python).arg(&script).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} says: {errors}", script.display());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The answers of Perfetto's trace processor: a list of rows for each query.
pub(crate) fn trace_processor(trace: &Path, queries: &[&str]) -> Option<Vec<Vec<Vec<Value>>>> {
    if Command::new("node").arg("--version").output().is_err() {
        skipped("node is not installed");
        return None;
    }
    let mut args = vec![trace.as_os_str()];
    args.extend(queries.iter().map(OsStr::new));
    let answers = run("trace_processor.py", &args)?;
    Some(serde_json::from_value(answers).unwrap())
}

fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/viewer/bin/python");
    python.exists().then_some(python)
}
