//! Where a recording goes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::cli::RecordArgs;

/// The run directory, and the super-trace beside it.
pub(crate) struct Target {
    pub(crate) run: PathBuf,
    pub(crate) supertrace: PathBuf,
    pub(crate) force: bool,
}

impl Target {
    /// The folder that was asked for, or one named after the program; it is there, and empty, afterwards.
    pub(super) fn choose(args: &RecordArgs) -> Result<Target> {
        let run = match &args.output {
            Some(run) => run.clone(),
            None => free_name(&name(args)),
        };
        let target = Target { supertrace: beside(&run), run, force: args.force };
        if args.force && is_run(&target.run) {
            fs::remove_dir_all(&target.run).with_context(|| target.run.display().to_string())?;
        }
        for path in [&target.run, &target.supertrace] {
            let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            if path.exists() && !(args.force && *path == target.supertrace) && !is_empty() {
                bail!("{}: is there already; --force overwrites a recording", path.display());
            }
        }
        fs::create_dir_all(&target.run).with_context(|| target.run.display().to_string())?;
        Ok(target)
    }
}

/// Whether a folder holds nothing but what a recorder puts there, one that was killed included.
fn is_run(folder: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(folder) else { return false };
    entries.all(|entry| {
        let name = entry.map(|entry| entry.file_name().to_string_lossy().into_owned()).unwrap_or_default();
        let is_user_side = name.starts_with("user-") && name.ends_with(".fut");
        is_user_side || ["run.json", "kernel.dat", "kernel.perf"].contains(&name.as_str())
    })
}

/// `RUN.supertrace`, for `RUN` and `RUN.run`.
fn beside(run: &Path) -> PathBuf {
    if run.extension().is_some_and(|e| e == "run") { run.with_extension("supertrace") } else { suffixed(run) }
}

fn suffixed(run: &Path) -> PathBuf {
    let mut name = run.components().as_path().as_os_str().to_os_string();
    name.push(".supertrace");
    PathBuf::from(name)
}

/// What a recording is named after, if nobody names it.
fn name(args: &RecordArgs) -> String {
    if args.all {
        return "system".into();
    }
    if let Some(pid) = args.pid {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        return format!("{}-{pid}", comm.trim().replace('/', "_"));
    }
    let program = args.program.first().map(Path::new).and_then(Path::file_name);
    program.map_or_else(|| "program".into(), |n| n.to_string_lossy().into_owned())
}

/// `PROGRAM.run`, or the first of `PROGRAM-2.run`, … that is free.
fn free_name(name: &str) -> PathBuf {
    let names = (1..).map(|n| if n == 1 { format!("{name}.run") } else { format!("{name}-{n}.run") });
    let mut paths = names.map(PathBuf::from);
    let free = paths.find(|run| !run.exists() && !beside(run).exists());
    free.unwrap_or_else(|| PathBuf::from("program.run"))
}
