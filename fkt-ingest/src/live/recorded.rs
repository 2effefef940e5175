//! A finished recording: pages in files, and what the kernel said about them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sigmund_model::Cpu;

use super::system::System;
use super::writer;
use crate::error::Error;

/// A finished recording, not yet a file.
#[derive(Debug)]
pub struct Recorded {
    pub(super) system: System,
    pub(super) buffers: Vec<BufferFiles>,
    pub(super) failures: Vec<String>,
    pub(super) pump_time: Duration,
}

/// The pages of one instance.
#[derive(Debug)]
pub(super) struct BufferFiles {
    /// Its name in the file; empty for the top buffer.
    pub(super) name: &'static str,
    /// `trace_clock`, as the kernel writes it.
    pub(super) clock: String,
    pub(super) page_size: usize,
    pub(super) cpus: Vec<CpuFile>,
}

/// The pages of one CPU.
#[derive(Debug)]
pub(super) struct CpuFile {
    pub(super) cpu: Cpu,
    pub(super) file: File,
    /// `per_cpu/cpuN/stats`, as the kernel writes it.
    pub(super) stats: String,
    pub(super) lost: u64,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// One for each CPU of each buffer.
    pub cpus: Vec<CpuSummary>,
    /// What went wrong while recording, in one line each: a full disk, for instance.
    pub failures: Vec<String>,
    /// Time that moving pages to files took, on all CPUs.
    pub pump_time: Duration,
}

/// What was written of one CPU of one buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSummary {
    /// Empty for the machine's events, `program` for the program's.
    pub buffer: &'static str,
    /// The CPU.
    pub cpu: Cpu,
    /// Bytes of pages.
    pub bytes: u64,
    /// Events the kernel's buffer lost (`overrun`, `commit overrun` and `dropped events` of its `stats`).
    pub lost: u64,
}

impl Summary {
    /// Events lost on all CPUs.
    pub fn lost(&self) -> u64 {
        self.cpus.iter().map(|c| c.lost).sum()
    }
}

impl Recorded {
    /// Writes a trace.dat, version 7, not compressed; trace-cmd and KernelShark open it, too.
    ///
    /// The machine's events are its top buffer, the program's an instance named `program`. The file appears under
    /// its name when it is complete.
    ///
    /// # Errors
    /// When the file cannot be written. What was written is removed.
    pub fn write_trace_dat(mut self, path: &Path) -> Result<Summary, Error> {
        let unfinished = unfinished_name(path);
        let written = self.write_and_rename(&unfinished, path);
        if written.is_err() {
            // The first error is the one to tell.
            let _ = fs::remove_file(&unfinished);
        }
        written.map_err(|e| Error::io(path, e))
    }

    fn write_and_rename(&mut self, unfinished: &Path, path: &Path) -> io::Result<Summary> {
        let mut out = File::create(unfinished)?;
        let mut summary = writer::write(&self.system, &mut self.buffers, &mut out)?;
        fs::rename(unfinished, path)?;
        summary.failures = std::mem::take(&mut self.failures);
        summary.pump_time = self.pump_time;
        Ok(summary)
    }
}

/// Beside the file itself, so that renaming stays within one file system.
pub(super) fn unfinished_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    PathBuf::from(name)
}
