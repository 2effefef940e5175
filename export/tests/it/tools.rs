//! Other people's programs.

use std::{
    env,
    path::Path,
    process::{Command, Output},
};

/// Whether all of these programs are there; aloud if not.
pub(crate) fn all_there(tools: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).collect();
    let missing: Vec<_> =
        tools.iter().filter(|tool| !folders.iter().any(|folder| folder.join(tool).exists())).collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED: needs {missing:?}");
        assert_ne!(env::var("CI").as_deref(), Ok("true"), "on CI this test must run: needs {missing:?}");
    }
    missing.is_empty()
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
    if !there {
        eprintln!("SKIPPED: needs {PYTHON} with {module}");
        assert_ne!(
            env::var("CI").as_deref(),
            Ok("true"),
            "on CI this test must run: needs {PYTHON} with {module}"
        );
    }
    there
}
