//! Go: goroutines, in a separate program that is built when the benchmark starts.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::work::Work;

const FILES: [(&str, &str); 2] =
    [("main.go", include_str!("go/main.go")), ("go.mod", include_str!("go/go.mod"))];

/// Builds the program in `scratch`.
pub(super) fn build(scratch: &Path) -> Result<(), String> {
    let folder = scratch.join("go");
    let written = fs::create_dir_all(&folder)
        .and_then(|()| FILES.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text)));
    written.map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(program(scratch)).arg(".").current_dir(&folder);
    match go.env("GOTOOLCHAIN", "local").env("GOFLAGS", "").output() {
        Ok(built) if built.status.success() => Ok(()),
        Ok(built) => Err(format!("go build: {}", String::from_utf8_lossy(&built.stderr).trim())),
        Err(_) => Err("not installed".into()),
    }
}

/// The version of the installed Go, without `go`: `1.22.1`.
pub(super) fn version() -> Option<String> {
    let said = Command::new("go").args(["env", "GOVERSION"]).output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    Some(said.trim().trim_start_matches("go").to_string())
}

/// Replaces this process by that program (`exec`); returns only on failure.
pub(super) fn exec(scratch: &Path, work: Work, cpus: usize) -> String {
    let mut command = Command::new(program(scratch));
    // The client of an echo server is this program.
    let client = std::env::current_exe().unwrap_or_default();
    let error = command.arg(work.to_string()).arg(cpus.to_string()).env("BENCH_CLIENT", client).exec();
    format!("{}: {error}", program(scratch).display())
}

fn program(scratch: &Path) -> PathBuf {
    scratch.join("goroutines")
}
