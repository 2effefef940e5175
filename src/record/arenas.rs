//! The user side: the arenas of the recorded processes, drained into the run directory.

use std::{
    fs::{self, File},
    io::ErrorKind,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use fut::{
    drain::{Drain, DrainSummary},
    shm::Arena,
};
use sigmund_merge::UserSide;
use sigmund_model::Pid;

use crate::output;

/// Folders of recorders, on tmpfs.
const SHARED_MEMORY: &str = "/dev/shm";
const PREFIX: &str = "sigmund-arenas-";

/// The folder in which the recorded processes make their arenas, and the drains of those found so far.
pub(super) struct Arenas {
    folder: PathBuf,
    run: PathBuf,
    drains: Vec<Drain<Arena>>,
    /// Polls until the folder is looked at again.
    look_in: u32,
    failed: bool,
}

impl Arenas {
    /// Makes the folder. Those of recorders that were killed are removed.
    pub(super) fn create(run: &Path) -> Result<Arenas> {
        let base = if Path::new(SHARED_MEMORY).is_dir() {
            PathBuf::from(SHARED_MEMORY)
        } else {
            std::env::temp_dir()
        };
        remove_leftovers(&base);
        let folder = base.join(format!("{PREFIX}{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder).with_context(|| folder.display().to_string())?;
        Ok(Arenas { folder, run: run.to_path_buf(), drains: Vec::new(), look_in: 0, failed: false })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.drains.iter().map(|drain| drain.summary().bytes).sum()
    }

    /// Takes what is finished; gives the number of packets.
    pub(super) fn poll(&mut self) -> usize {
        if self.look_in == 0 {
            self.find();
            self.look_in = 4;
        }
        self.look_in -= 1;
        let mut taken = 0;
        for drain in &mut self.drains {
            match drain.poll() {
                Ok(packets) => taken += packets,
                Err(error) if !self.failed => {
                    output::complain(&format!(
                        "{}: {error}; later events will be lost",
                        drain.path().display()
                    ));
                    self.failed = true;
                }
                Err(_) => {}
            }
        }
        taken
    }

    /// The program has ended: takes everything, and gives what there is.
    pub(super) fn finish(mut self) -> Vec<UserSide> {
        self.find();
        let mut sides = Vec::new();
        for drain in std::mem::take(&mut self.drains) {
            let (pid, path) = (drain.pid(), drain.path().to_path_buf());
            let file = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
            let (summary, written) = drain.close();
            if let Err(error) = written {
                output::complain(&format!("{}: {error}", path.display()));
            }
            let DrainSummary { lost, unfinished, unwritten, .. } = summary;
            if unwritten > 0 {
                output::complain(&format!("{}: {unwritten} events could not be written", path.display()));
            }
            sides.push(UserSide { file, pid: pid.0, lost, unfinished, unwritten });
        }
        sides
    }

    /// Opens arenas that are new in the folder.
    fn find(&mut self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let is_new = path.extension().is_some_and(|e| e == "arena");
            if is_new && let Err(error) = self.open(&path) {
                output::complain(&format!("{error:#}"));
            }
        }
    }

    fn open(&mut self, path: &Path) -> Result<()> {
        let arena = Arena::open(path);
        // Both sides have it mapped; nobody else needs the name.
        fs::remove_file(path).with_context(|| path.display().to_string())?;
        let arena = arena?;
        let (trace, file) = self.new_trace(arena.pid())?;
        self.drains.push(Drain::to_file(arena, file, &trace).with_context(|| trace.display().to_string())?);
        Ok(())
    }

    /// `user-PID.fut`; a process that became another program by `exec` has a second, `user-PID-2.fut`.
    fn new_trace(&self, pid: Pid) -> Result<(PathBuf, File)> {
        for number in 1.. {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let trace = self.run.join(format!("user-{pid}{suffix}.fut"));
            match File::create_new(&trace) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return Ok((trace.clone(), made.with_context(|| trace.display().to_string())?)),
            }
        }
        unreachable!("a process becomes another less than 2^31 times")
    }
}

impl Drop for Arenas {
    fn drop(&mut self) {
        // Left behind, it is removed by the next recorder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn remove_leftovers(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
