//! One tracefs instance: a ring buffer of our own, with its own clock, size, events and pid filter. Other users'
//! tracing is not changed, and the files of the function tracer are not opened.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sigmund_model::{Cpu, Pid};

use super::tracefs::{INSTANCE_PREFIX, read, write};
use crate::error::Error;

/// An instance, which is removed when dropped.
#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
    cpus: Vec<Cpu>,
    /// When this file is closed, also because this process is killed, the kernel stops tracing and frees the buffers.
    stops_at_close: Option<File>,
}

impl Instance {
    /// Makes an instance, switched off and without events.
    pub(super) fn create(tracefs: &Path, purpose: &str) -> Result<Instance, Error> {
        let name = format!("{INSTANCE_PREFIX}{}-{purpose}", std::process::id());
        let path = tracefs.join("instances").join(name);
        fs::create_dir(&path).map_err(|e| Error::io(&path, e))?;
        let mut instance = Instance { path, cpus: Vec::new(), stops_at_close: None };
        instance.set("tracing_on", "0")?;
        instance.stops_at_close = instance.open_free_buffer();
        instance.cpus = instance.find_cpus()?;
        Ok(instance)
    }

    /// Writes a control file of this instance.
    pub(super) fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        write(&self.path.join(file), value)
    }

    /// Reads a control file of this instance.
    pub(super) fn get(&self, file: &str) -> Result<String, Error> {
        read(&self.path.join(file))
    }

    /// Enables `system:event`.
    pub(super) fn enable(&self, event: &str) -> Result<(), Error> {
        let (system, name) = event.split_once(':').unwrap_or(("", event));
        self.set(&format!("events/{system}/{name}/enable"), "1")
    }

    /// Makes the kernel keep only those records of `system:event` for which `condition` holds.
    pub(super) fn filter(&self, event: &str, condition: &str) -> Result<(), Error> {
        let (system, name) = event.split_once(':').unwrap_or(("", event));
        let file = format!("events/{system}/{name}/filter");
        self.set(&file, condition).map_err(|error| match self.get(&file) {
            // The file then contains the reason: the condition, a mark below it, and a sentence.
            Ok(why) if why.contains("parse_error") => {
                let why = why.split("parse_error:").last().unwrap_or_default().trim();
                let found = format!("{condition:?}: {why}");
                Error::in_line(&self.path.join(&file), 1, "a condition on fields of the event".into(), found)
            }
            _ => error,
        })
    }

    /// Limits it to events of this process, of its current and later LWPs, and of its children.
    pub(super) fn follow(&self, program: Pid) -> Result<(), Error> {
        self.set("options/event-fork", "1")?;
        let tasks = Path::new("/proc").join(program.to_string()).join("task");
        let entries = fs::read_dir(&tasks).map_err(|e| Error::io(&tasks, e))?;
        let tids: Vec<String> =
            entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        self.set("set_event_pid", &tids.join(" "))
    }

    /// Its folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// Opens the pages of a CPU. Reading removes them from the buffer, and never waits.
    pub(super) fn open_pages(&self, cpu: Cpu) -> Result<File, Error> {
        let path = self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        options.open(&path).map_err(|e| Error::io(&path, e))
    }

    /// Size of a page ("sub-buffer") in bytes. Kernels before 6.8 have no file for it: 4096.
    pub(super) fn page_size(&self) -> usize {
        let kb = self.get("buffer_subbuf_size_kb").ok().and_then(|kb| kb.trim().parse::<usize>().ok());
        kb.filter(|kb| (1..=1024).contains(kb)).map_or(4096, |kb| kb * 1024)
    }

    /// Documentation/trace/ftrace.rst, `free_buffer`. Without it, tracing in an instance continues until the next
    /// recorder removes it.
    fn open_free_buffer(&self) -> Option<File> {
        self.set("options/disable_on_free", "1").ok()?;
        OpenOptions::new().write(true).open(self.path.join("free_buffer")).ok()
    }

    fn find_cpus(&self) -> Result<Vec<Cpu>, Error> {
        let folder = self.path.join("per_cpu");
        let entries = fs::read_dir(&folder).map_err(|e| Error::io(&folder, e))?;
        let names = entries.flatten().filter_map(|e| e.file_name().into_string().ok());
        let mut cpus: Vec<Cpu> =
            names.filter_map(|n| Some(Cpu(n.strip_prefix("cpu")?.parse().ok()?))).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // An instance with an open file cannot be removed.
        self.stops_at_close = None;
        // The kernel disables an instance's events when it removes it. A removal that fails (a program has one of its
        // files open) is retried by `remove_leftovers` at the next start.
        let _ = fs::remove_dir(&self.path);
    }
}
