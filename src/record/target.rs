//! The destination of a recording.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use sigmund_files::Folder;
use sigmund_merge::is_of_a_run;

use crate::{cli::RecordArgs, owner::owner};

/// The run directory, and the super-trace beside it.
pub(crate) struct Target {
    pub(crate) run: PathBuf,
    /// The run directory, held open. Files are created in it by name. It is locked while recording.
    pub(super) folder: Arc<Folder>,
    pub(crate) supertrace: PathBuf,
    pub(crate) force: bool,
}

impl Target {
    /// The requested folder, or one named after the program. Afterwards it exists and is empty.
    pub(super) fn choose(args: &RecordArgs) -> Result<Target> {
        let run = match &args.output {
            Some(run) => run.clone(),
            None => free_name(&name(args)),
        };
        let supertrace = beside(&run);
        if !args.force && supertrace.symlink_metadata().is_ok() {
            bail!("{}: is there already; --force overwrites a recording", supertrace.display());
        }
        let shown = || run.display().to_string();
        if args.force && run.symlink_metadata().is_ok() {
            let old = Folder::open_own(&run, owner()).with_context(shown)?;
            remove_run(&old).with_context(shown)?;
        }
        let folder = match Folder::create_or_take_empty(&run, owner()) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{}: is there already; --force overwrites a recording", run.display());
            }
            made => made.with_context(shown)?,
        };
        if !folder.lock() {
            bail!("{}: another recorder uses it", run.display());
        }
        Ok(Target { supertrace, run, folder: Arc::new(folder), force: args.force })
    }
}

/// Removes the files of a recording from a folder, even if its recorder was killed. It does so only if the folder
/// contains nothing else.
fn remove_run(folder: &Folder) -> Result<()> {
    let names = folder.names()?;
    if names.iter().all(|name| name.to_str().is_some_and(is_of_a_run)) {
        if !folder.lock() {
            bail!("another recorder uses it");
        }
        names.iter().try_for_each(|name| folder.remove_file(name))?;
    }
    Ok(())
}

/// `RUN.supertrace`, for `RUN` and `RUN.run`.
pub(crate) fn beside(run: &Path) -> PathBuf {
    if run.extension().is_some_and(|e| e == "run") { run.with_extension("supertrace") } else { suffixed(run) }
}

fn suffixed(run: &Path) -> PathBuf {
    let mut name = run.components().as_path().as_os_str().to_os_string();
    name.push(".supertrace");
    PathBuf::from(name)
}

/// The default name of a recording.
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

/// `PROGRAM.run`; if that is taken, the first free name of `PROGRAM-2.run`, ….
fn free_name(name: &str) -> PathBuf {
    let names = (1..).map(|n| if n == 1 { format!("{name}.run") } else { format!("{name}-{n}.run") });
    let mut paths = names.map(PathBuf::from);
    let is_free = |path: &Path| path.symlink_metadata().is_err();
    let free = paths.find(|run| is_free(run) && is_free(&beside(run)));
    free.unwrap_or_else(|| PathBuf::from("program.run"))
}
