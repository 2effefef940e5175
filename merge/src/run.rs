//! A run directory: what one `sigmund record` leaves, before the merge.
//!
//! ```text
//! RUN/run.json       this manifest: how, when and where it was recorded, clock snapshots
//! RUN/kernel.dat     the kernel side, a trace.dat; or kernel.perf, a perf.data
//! RUN/user-PID.fut   the user side, a user trace for each process that recorded
//! ```

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};
use sigmund_model::{ClockDomain, Nanos, Snapshot, Ticks};

use crate::error::Error;

/// Name of the manifest in a run directory.
pub(crate) const MANIFEST: &str = "run.json";

/// What is known about a recording beside its events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// The program that was recorded, and its arguments.
    pub command: Vec<String>,
    /// How it ended: `exit 0`, `signal 9`, …
    pub ended: String,
    /// The machine.
    pub host: String,
    /// `uname -srvm` of it.
    pub kernel: String,
    /// CPUs that are online.
    pub cpus: u32,
    /// Version of the recorder.
    pub recorder: String,
    /// The kernel side.
    pub kernel_side: KernelSide,
    /// The user side, one for each process.
    pub user_side: Vec<UserSide>,
    /// How long it took.
    #[serde(default)]
    pub recorded_ns: u64,
    /// How much of that time the recorder had on CPUs.
    #[serde(default)]
    pub recorder_cpu_ns: u64,
    /// Clock snapshots, taken at the start, every second and at the end.
    pub snapshots: Vec<ManifestSnapshot>,
}

/// The kernel side of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KernelSide {
    /// File name in the run directory; `None` if it was not recorded.
    pub file: Option<String>,
    /// How it was recorded: `tracefs`, `perf` or `none`.
    pub means: String,
    /// Why not by better means, if so.
    pub why: Option<String>,
    /// Whether switches among LWPs that are not the program's were left out, on purpose.
    #[serde(default)]
    pub others_unseen: bool,
    /// Events lost on each CPU, where the kernel counted them.
    pub lost: Vec<(u32, u64)>,
}

/// The user side of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UserSide {
    /// File name in the run directory.
    pub file: String,
    /// The process.
    pub pid: u32,
    /// Records that found no room.
    pub lost: u64,
    /// Records that were never finished.
    pub unfinished: u64,
    /// Records that could not be written: the disk was full.
    #[serde(default)]
    pub unwritten: u64,
}

/// A clock snapshot, as the manifest keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ManifestSnapshot {
    /// Name of the other clock.
    pub clock: String,
    /// TSC before.
    pub before: u64,
    /// TSC after.
    pub after: u64,
    /// The other clock, in nanoseconds.
    pub ns: u64,
}

impl ManifestSnapshot {
    /// From a snapshot.
    pub fn new(domain: ClockDomain, snapshot: Snapshot) -> ManifestSnapshot {
        ManifestSnapshot {
            clock: domain.name().into(),
            before: snapshot.before.0,
            after: snapshot.after.0,
            ns: snapshot.ns.0,
        }
    }

    /// As a snapshot; `None` if the clock is not known.
    pub fn snapshot(&self) -> Option<(ClockDomain, Snapshot)> {
        let domain = ClockDomain::from_name(&self.clock)?;
        Some((domain, Snapshot { before: Ticks(self.before), after: Ticks(self.after), ns: Nanos(self.ns) }))
    }
}

impl Manifest {
    /// Reads the manifest of a run directory.
    ///
    /// # Errors
    /// When there is none, or it is not one.
    pub fn read(run: &Path) -> Result<Manifest, Error> {
        let path = run.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        serde_json::from_str(&text).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            Error::bad(&path, &place, "the manifest of a run", error.to_string())
        })
    }

    /// Writes it into a run directory.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, run: &Path) -> Result<(), Error> {
        let path = run.join(MANIFEST);
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::bad(&path, "end", "JSON", e.to_string()))?;
        fs::write(&path, text + "\n").map_err(Error::io(&path))
    }
}
