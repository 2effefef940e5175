//! A run directory: what one `sigmund record` leaves, before the merge.
//!
//! ```text
//! RUN/run.json       this manifest: how, when and where it was recorded, clock snapshots
//! RUN/kernel.dat     the kernel side, a trace.dat; or kernel.perf, a perf.data
//! RUN/user-PID.fut   the user side, a user trace for each process that recorded
//! ```
//!
//! While it is recorded, and after the recorder was killed, the manifest is `unfinished`, and there are besides:
//!
//! ```text
//! RUN/run.snapshots                        clock snapshots, one JSON object a line
//! RUN/kernel.unfinished, kernel.pages-*    what kernel.dat is made of (fkt_ingest::live)
//! ```
//!
//! [`finish`](unfinished::finish) makes a run of that. A recording that is limited is cut into parts: `parts.rs`.

mod parts;
mod snapshots;
mod unfinished;

use std::{io::Read, path::Path};

use serde::{Deserialize, Serialize};
use sigmund_model::{ClockDomain, Lwp, Nanos, Pid, Snapshot, Ticks};

use sigmund_files::Folder;

use crate::error::Error;
pub use parts::{
    Packed, Part, PartFile, Removed, Rotation, user_carried_name, user_part_name, whole_and_part,
};
pub use snapshots::SnapshotLog;
pub use unfinished::is_of_a_run;
pub(crate) use unfinished::{finish, is_unfinished};

/// Name of the manifest in a run directory.
pub(crate) const MANIFEST: &str = "run.json";
/// Names of the kernel side: recorded by tracepoints, by perf.
pub const KERNEL_DAT: &str = "kernel.dat";
/// The same, recorded by perf.
pub const KERNEL_PERF: &str = "kernel.perf";
/// A manifest of a week has a tenth of that, for its clock snapshots.
const MAX_MANIFEST: u64 = 1 << 30;

/// The most parts of a recording that are there: a limit is divided into 16.
const MOST_PARTS: u32 = 1 << 16;

/// What is known about a recording beside its events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// Whether the recording continues, or its recorder was killed: the fields below are as of its start.
    #[serde(default)]
    pub unfinished: bool,
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
    /// Processes that wanted to be recorded and could not be.
    #[serde(default)]
    pub unrecorded_processes: u64,
    /// Why, of the first of them.
    #[serde(default)]
    pub unrecorded_why: Option<String>,
    /// How long it took.
    #[serde(default)]
    pub recorded_ns: u64,
    /// How much time the recorder had on CPUs, to set up and to finish the recording, too.
    #[serde(default)]
    pub recorder_cpu_ns: u64,
    /// How long it took with that.
    #[serde(default)]
    pub recorder_ns: u64,
    /// How it was cut into parts, if it was.
    #[serde(default)]
    pub rotation: Option<Rotation>,
    /// Clock snapshots, taken at the start, every second and at the end.
    pub snapshots: Vec<ManifestSnapshot>,
    /// The LWPs that lived when the recording of the kernel had begun, by process. Older recordings have none.
    #[serde(default)]
    pub processes: Vec<ProcessLwps>,
    /// How long each LWP of the recorded processes had been on CPUs, by the kernel's own sum: read at the start, every
    /// tenth of a second or less often, and at the end. LWPs that lived between two readings are missing. Older
    /// recordings have none.
    #[serde(default)]
    pub lwp_cpu_times: Vec<LwpCpuTime>,
    /// The schemata that it was made by. Older recordings have none.
    #[serde(default)]
    pub schemata: Vec<RecordedSchema>,
    /// Tracepoints of theirs that the kernel did not have, `system:event`.
    #[serde(default)]
    pub missing_tracepoints: Vec<String>,
    /// LWPs that one reading found and that are not in `lwp_cpu_times`, because there were too many.
    #[serde(default)]
    pub lwp_cpu_times_omitted: u64,
}

/// A schema that a recording was made by. The merge passes it on as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSchema {
    /// Its name.
    pub name: String,
    /// Its text, TOML.
    pub text: String,
}

/// The LWPs of one process, as `/proc/PID/task` shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLwps {
    /// The process.
    pub pid: u32,
    /// Its LWPs.
    pub lwps: Vec<u32>,
}

impl ProcessLwps {
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (Lwp, Pid)> {
        self.lwps.iter().map(|lwp| (Lwp(*lwp), Pid(self.pid)))
    }
}

/// The kernel's own sum of one LWP's time on CPUs, between two instants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LwpCpuTime {
    /// The process.
    pub pid: u32,
    /// The LWP.
    pub tid: u32,
    /// The reading at the start of the recording. `None`: the LWP was not there yet, and had no CPU time.
    #[serde(default)]
    pub begin: Option<CpuTimeReading>,
    /// The last reading at which the LWP was there: at the end of the recording, or, if it has ended before, up to a
    /// tenth of a second earlier than that (more where readings take long). `None`: it was there at the start only.
    #[serde(default)]
    pub end: Option<CpuTimeReading>,
}

/// `sum_exec_runtime` of an LWP, as `/proc/PID/task/TID/schedstat` shows it (kernel/sched/core.c, v6.12).
///
/// The kernel brings it up to date at each switch and each timer tick, not when it is read: an LWP that is on a CPU while
/// it is read may have run for up to a tick more (1 to 10 ms; longer with `nohz_full`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimeReading {
    /// TSC before the file was read.
    pub before: u64,
    /// TSC after it was read.
    pub after: u64,
    /// Nanoseconds on CPUs since the LWP began.
    pub ns: u64,
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
    /// Whether the recorder was killed: what was still in the kernel's buffers is missing at its end.
    #[serde(default)]
    pub cut: bool,
    /// Events lost on each CPU, where the kernel counted them.
    pub lost: Vec<(u32, u64)>,
    /// Whether the recorder is in another PID namespace than the kernel's events, so that no LWP of the user side can be
    /// found among them.
    #[serde(default)]
    pub has_other_numbers: bool,
    /// TSC at which it was told to record no more. What is on the user side and later has no kernel side.
    #[serde(default)]
    pub stopped_tick: Option<u64>,
}

/// The user side of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UserSide {
    /// File name in the run directory; of several parts, what it would be if they were one file.
    pub file: String,
    /// The parts of a recording that was cut in which it has a file ([`user_part_name`]).
    #[serde(default)]
    pub parts: Vec<u32>,
    /// The process.
    pub pid: u32,
    /// Records that found no room.
    pub lost: u64,
    /// Records that were never finished.
    pub unfinished: u64,
    /// Records that could not be written: the disk was full.
    #[serde(default)]
    pub unwritten: u64,
    /// Whether an LWP got no buffer because there was no memory for one. Otherwise, all buffers were in use.
    #[serde(default)]
    pub no_memory: bool,
    /// Whether the process lived on when the recording ended: what it recorded afterwards is missing.
    #[serde(default)]
    pub cut: bool,
    /// What its LWPs are called outside, if the process is in another PID namespace than the recorder.
    #[serde(default)]
    pub namespace: Option<NamespaceNumbers>,
}

/// The numbers of a process in another PID namespace, as its recorder sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceNumbers {
    /// The process; 0 if that is not known.
    pub pid: u32,
    /// Of each LWP that was found: its number in its own namespace, and the one that the recorder sees.
    pub lwps: Vec<(u32, u32)>,
}

/// Marks the name of a user trace whose process is in another PID namespace, so that a run is known for what it is whose
/// recorder was killed before it wrote the numbers.
pub const NAMESPACE_MARK: &str = "-namespace";

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
        Manifest::read_in(&Folder::open(run).map_err(Error::io(run))?)
    }

    /// The same, of a folder that is open. Of an unfinished run, the snapshots taken so far are in it.
    ///
    /// # Errors
    /// As those of [`read`](Self::read).
    pub fn read_in(run: &Folder) -> Result<Manifest, Error> {
        let path = run.path_of(MANIFEST);
        let file = run.open_file(MANIFEST).map_err(Error::io(&path))?;
        let mut text = String::new();
        file.take(MAX_MANIFEST).read_to_string(&mut text).map_err(Error::io(&path))?;
        let mut manifest: Manifest = serde_json::from_str(&text).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            Error::bad(&path, &place, "the manifest of a run", error.to_string())
        })?;
        if let Some(Rotation { first, last, .. }) = manifest.rotation
            && (first == 0 || last < first || last - first > MOST_PARTS)
        {
            let expected = format!("parts from 1 on, at most {MOST_PARTS}");
            return Err(Error::bad(&path, "rotation", &expected, format!("{first} to {last}")));
        }
        if manifest.unfinished {
            manifest.snapshots.append(&mut snapshots::read(run)?);
        }
        Ok(manifest)
    }

    /// Writes it into a run directory of the caller's own; one that is there is replaced by the whole new one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, run: &Folder) -> Result<(), Error> {
        let path = run.path_of(MANIFEST);
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::bad(&path, "end", "JSON", e.to_string()))?;
        run.write_file(MANIFEST, (text + "\n").as_bytes()).map_err(Error::io(&path))
    }
}
