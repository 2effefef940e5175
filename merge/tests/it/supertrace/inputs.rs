//! Inputs of a merge: drawn listings, ftrace's text, user traces, run directories.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sigmund_files::Folder;
use sigmund_merge::{Error, Manifest, MergeOptions, merge};
use tempfile::TempDir;

use super::{
    Merged,
    user_file::{Message, user_trace},
};

/// The columns of [`Inputs::listing`].
const COLUMNS: &str = "type date_tick pid cpu name params";

/// Inputs of one merge, in a folder that is removed when this is dropped.
pub(crate) struct Inputs {
    folder: TempDir,
    paths: Vec<PathBuf>,
}

/// A folder in memory, if that is possible: of thousands of small files, ext4 takes a quarter of the time of their merges.
pub(crate) fn folder_in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

impl Inputs {
    pub(crate) fn new() -> Inputs {
        Inputs { folder: folder_in_memory(), paths: Vec::new() }
    }

    /// Adds an existing file.
    pub(crate) fn path(mut self, path: &Path) -> Inputs {
        self.paths.push(path.to_path_buf());
        self
    }

    /// Adds a file with these bytes.
    pub(crate) fn file(self, name: &str, bytes: impl AsRef<[u8]>) -> Inputs {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        self.path(&path)
    }

    /// Adds a listing, drawn as for [`tsv`] without the line of the columns: `type date_tick pid cpu name params`.
    pub(crate) fn listing(self, name: &str, drawn: &str) -> Inputs {
        self.file(name, tsv(&format!("{COLUMNS}\n{drawn}")))
    }

    /// Adds ftrace's text of events `(tick, cpu, lwp, event)`, with the TSC as its clock.
    pub(crate) fn ftrace(self, name: &str, events: &[(u64, u32, u32, &str)]) -> Inputs {
        self.file(name, ftrace_text(events))
    }

    /// Adds the user trace of process 60 with these messages.
    pub(crate) fn user_trace(self, messages: &[Message]) -> Inputs {
        self.file("user-60.fut", user_trace(messages))
    }

    /// Adds a run directory with these files; without a manifest, its recorder was killed.
    pub(crate) fn run(self, files: &[(&str, &[u8])], manifest: Option<&Manifest>) -> Inputs {
        let run = self.folder.path().join("run");
        let folder = Folder::create_or_take_empty(&run, None).unwrap();
        for (name, bytes) in files {
            fs::write(run.join(name), bytes).unwrap();
        }
        manifest.into_iter().for_each(|manifest| manifest.write(&folder).unwrap());
        self.path(&run)
    }

    /// Merges the inputs, which must succeed.
    pub(crate) fn merge(self) -> Merged {
        self.try_merge(&MergeOptions::default()).unwrap()
    }

    /// Merges the inputs. A merge that fails must not leave an output.
    pub(crate) fn try_merge(self, options: &MergeOptions) -> Result<Merged, Error> {
        let out = self.folder.path().join("out.supertrace");
        match merge(&self.paths, &out, options, |_| {}) {
            Ok(summary) => Ok(Merged { folder: self.folder, summary }),
            Err(error) => {
                assert!(!out.exists(), "a merge that failed leaves no output");
                Err(error)
            }
        }
    }
}

/// The text of a listing that is drawn with blanks between its cells: in a cell, `,` is a blank; `_` is an empty cell.
pub(crate) fn tsv(drawn: &str) -> String {
    let lines = drawn.lines().map(str::trim_start).filter(|line| !line.is_empty());
    lines.map(|line| tsv_line(line) + "\n").collect()
}

fn tsv_line(line: &str) -> String {
    if line.starts_with('#') {
        return line.to_string();
    }
    let cell = |cell: &str| if cell == "_" { String::new() } else { cell.replace(',', " ") };
    line.split_whitespace().map(cell).collect::<Vec<_>>().join("\t")
}

/// ftrace's text of events `(tick, cpu, lwp, event)`.
pub(crate) fn ftrace_text(events: &[(u64, u32, u32, &str)]) -> String {
    let line = |(tick, cpu, lwp, event): &(u64, u32, u32, &str)| {
        format!(" p{lwp}-{lwp} [{cpu:03}] d..2. {tick}: {event}\n")
    };
    "# tracer: nop\n".to_string() + &events.iter().map(line).collect::<String>()
}

/// ftrace's text of a `sched_switch`; `state` is the letter of the LWP that leaves.
pub(crate) fn switch(prev: u32, state: &str, next: u32) -> String {
    format!(
        "sched_switch: prev_comm=p{prev} prev_pid={prev} prev_prio=120 prev_state={state} ==> \
         next_comm=p{next} next_pid={next} next_prio=120"
    )
}
