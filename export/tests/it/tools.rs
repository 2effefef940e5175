//! Runs programs of other projects.

use std::{
    env,
    path::Path,
    process::{Command, Output},
};

use crate::skipped::skipped;

/// Whether all of these programs are installed; prints what is missing.
pub(crate) fn all_there(tools: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).collect();
    let is_there = |tool: &&str| folders.iter().any(|folder| folder.join(tool).exists());
    tools.iter().all(|tool| is_there(tool) || missing(tool))
}

/// Prints that a test is skipped because this is missing; fails on CI. Never true.
fn missing(what: &str) -> bool {
    skipped(&format!("needs {what}"));
    false
}

/// The output of a program that must succeed and print nothing on stderr.
pub(crate) fn quiet_output(program: &mut Command) -> String {
    let Output { status, stdout, stderr } = program.output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success() && stderr.is_empty(), "{program:?}: {status}\n{stderr}");
    String::from_utf8(stdout).unwrap()
}

/// Debian's Python, which has the packages that Debian installs.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Whether Debian's Python has this module; prints if it does not.
pub(crate) fn python_has(module: &str) -> bool {
    let import = format!("import {module}");
    let there =
        Path::new(PYTHON).exists() && Command::new(PYTHON).args(["-c", &import]).status().unwrap().success();
    there || missing(&format!("{PYTHON} with {module}"))
}
