//! A finished recording: pages in files, and what the kernel reported about them.

use std::time::Duration;

use sigmund_files::Folder;
use sigmund_model::Cpu;

use super::unfinished::{self, Description, Pages};
use crate::error::Error;

/// A finished recording, whose trace.dat is not written yet.
#[derive(Debug)]
pub struct Recorded {
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
    /// What went wrong while recording, in one line each: a full disk, for instance.
    pub failures: Vec<String>,
    /// Time that moving pages to files took, on all CPUs.
    pub pump_time: Duration,
}

/// What was written of one CPU of one buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSummary {
    /// Empty for the machine's events, `program` for the program's.
    pub buffer: String,
    /// The CPU.
    pub cpu: Cpu,
    /// Bytes of pages.
    pub bytes: u64,
    /// Events the kernel's buffer lost (`overrun`, `commit overrun` and `dropped events` of its `stats`); when the
    /// recorder was killed, the number is unknown, and it is 0.
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
    /// Writes a trace.dat, version 7, not compressed; trace-cmd and KernelShark open it, too. `folder` is the one that
    /// the recording was made in, and `name` the name it gets there.
    ///
    /// The machine's events are its top buffer, the program's an instance named `program`. The file appears under
    /// its name when it is complete; what it was made of is removed then.
    ///
    /// # Errors
    /// When the file cannot be written. It can be finished later: [`finish`](super::finish).
    pub fn write_trace_dat(mut self, folder: &Folder, name: &str) -> Result<Summary, Error> {
        // Should this process die now, what the kernel counted is known.
        self.description.write(folder)?;
        let summary = unfinished::write(folder, name, &self.description, &mut self.pages)?;
        Ok(Summary { failures: self.failures, pump_time: self.pump_time, ..summary })
    }
}
