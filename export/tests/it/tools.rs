//! Other people's programs.

use std::{
    env,
    path::Path,
    process::{Command, Output},
};

use crate::skipped::skipped;

/// Whether all of these programs are there; aloud if not.
pub(crate) fn all_there(tools: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).collect();
    let is_there = |tool: &&str| folders.iter().any(|folder| folder.join(tool).exists());
    tools.iter().all(|tool| is_there(tool) || missing(tool))
}

/// Says aloud that a test is not run for want of this, and that is not allowed on CI. Never true.
fn missing(what: &str) -> bool {
    skipped(&format!("needs {what}"));
    false
}

/// What a program says that must succeed and have nothing to complain about.
pub(crate) fn quiet_output(program: &mut Command) -> String {
    let Output { status, stdout, stderr } = program.output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success() && stderr.is_empty(), "{program:?}: {status}\n{stderr}");
    String::from_utf8(stdout).unwrap()
}

/// Debian's Python, which alone has Debian's packages.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Whether Debian's Python has this module; aloud if not.
pub(crate) fn python_has(module: &str) -> bool {
    let import = format!("import {module}");
    let there =
        Path::new(PYTHON).exists() && Command::new(PYTHON).args(["-c", &import]).status().unwrap().success();
    there || missing(&format!("{PYTHON} with {module}"))
}
