//! A completed recording: pages in files, and what the kernel reported about them.

use std::time::Duration;

use sigmund_files::Folder;
use sigmund_model::Cpu;

use super::file_names::FileNames;
use super::rotator::ClosedPart;
use super::stats::read_events;
use super::unfinished::{self, Description, Pages};
use super::writer::Compression;
use crate::error::Error;

/// A completed recording whose trace.dat has not been written.
#[derive(Debug)]
pub struct Recorded {
    pub(super) files: FileNames,
    pub(super) description: Description,
    pub(super) pages: Pages,
    pub(super) failures: Vec<String>,
    pub(super) pump_time: Duration,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// One for each CPU of each buffer.
    pub cpus: Vec<CpuSummary>,
    /// Failures during the recording, for example a full disk, in one line each.
    pub failures: Vec<String>,
    /// CPU time for moving pages to files.
    pub pump_time: Duration,
}

/// The result for one CPU of one buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSummary {
    /// Empty for the machine's events, `program` for the program's.
    pub buffer: String,
    /// The CPU.
    pub cpu: Cpu,
    /// Bytes of pages.
    pub bytes: u64,
    /// Events lost in the kernel's buffer (`overrun`, `commit overrun` and `dropped events` of its `stats`); 0 if the
    /// recorder was killed and the number is unknown.
    pub lost: u64,
}

impl Summary {
    /// Events lost on all CPUs.
    pub fn lost(&self) -> u64 {
        self.cpus.iter().map(|c| c.lost).sum()
    }

    /// Bytes of pages of all CPUs.
    pub fn page_bytes(&self) -> u64 {
        self.cpus.iter().map(|c| c.bytes).sum()
    }
}

impl Recorded {
    /// Writes a trace.dat, version 7, uncompressed, which trace-cmd and KernelShark also read. `folder` is that of the
    /// recording, and `name` the file's name in it.
    ///
    /// The machine's events are its top buffer, the program's an instance named `program`. The file gets its name when
    /// it is complete; its parts are then removed.
    ///
    /// # Errors
    /// If the file cannot be written. It can be finished later: [`finish`](super::finish).
    pub fn write_trace_dat(mut self, folder: &Folder, name: &str) -> Result<Summary, Error> {
        // If this process is killed from here on, the kernel's counts are on the disk.
        self.description.write(folder, self.files)?;
        let (files, none) = (self.files, Compression::None);
        let summary = unfinished::write(folder, files, name, &self.description, &mut self.pages, none)?;
        Ok(Summary { failures: self.failures, pump_time: self.pump_time, ..summary })
    }

    /// Closes the last part of a recording in parts, of which [`write_part`](super::write_part) makes a trace.dat.
    /// Returns it, and failures during the recording, in one line each.
    ///
    /// # Errors
    /// If its description cannot be written.
    pub fn close_part(self, folder: &Folder) -> Result<(ClosedPart, Vec<String>), Error> {
        self.description.write(folder, self.files)?;
        let cpus = || self.description.buffers.iter().flat_map(|buffer| &buffer.cpus);
        let closed = ClosedPart {
            part: self.files.0.unwrap_or(0),
            events: cpus().map(|cpu| read_events(&cpu.stats)).sum(),
            lost: cpus().map(|cpu| (Cpu(cpu.cpu), cpu.lost)).collect(),
            not_described: None,
        };
        Ok((closed, self.failures))
    }
}
