//! A run directory, the result of one `sigmund record` before the merge.
//!
//! ```text
//! RUN/run.json       this manifest: how, when and where it was recorded, clock snapshots
//! RUN/kernel.dat     the kernel side, a trace.dat; or kernel.perf, a perf.data
//! RUN/user-PID.fut   the user side, a user trace for each process that recorded
//! ```
//!
//! While a run is recorded, and after its recorder was killed, the manifest is `unfinished`, and there are additional
//! files:
//!
//! ```text
//! RUN/run.snapshots                        clock snapshots, one JSON object a line
//! RUN/kernel.unfinished, kernel.pages-*    what kernel.dat is made of (fkt_ingest::live)
//! ```
//!
//! [`finish`](unfinished::finish) completes such a run. A recording that is limited is cut into parts: see `parts.rs`.

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
/// Name of the kernel side, recorded by tracepoints.
pub const KERNEL_DAT: &str = "kernel.dat";
/// Name of the kernel side, recorded by perf.
pub const KERNEL_PERF: &str = "kernel.perf";
/// Maximum length of a manifest. That of a recording of a week has a tenth of this, because of its clock snapshots.
const MAX_MANIFEST: u64 = 1 << 30;

/// Maximum number of parts of a recording at one time. A limit is divided into 16 parts.
const MOST_PARTS: u32 = 1 << 16;

/// What is known about a recording in addition to its events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// Whether the recording continues, or its recorder was killed. Then the fields below describe its start.
    #[serde(default)]
    pub unfinished: bool,
    /// The program that was recorded, and its arguments.
    pub command: Vec<String>,
    /// How the program ended: `exit 0`, `signal 9`, …
    pub ended: String,
    /// The machine.
    pub host: String,
    /// The machine's `uname -srvm`.
    pub kernel: String,
    /// Number of online CPUs.
    pub cpus: u32,
    /// Version of the recorder.
    pub recorder: String,
    /// The kernel side.
    pub kernel_side: KernelSide,
    /// The user side, one for each process.
    pub user_side: Vec<UserSide>,
    /// Number of processes that were to be recorded and could not be.
    #[serde(default)]
    pub unrecorded_processes: u64,
    /// The reason for the first of them.
    #[serde(default)]
    pub unrecorded_why: Option<String>,
    /// Length of the recording.
    #[serde(default)]
    pub recorded_ns: u64,
    /// CPU time of the recorder, including the time to set up and to finish the recording.
    #[serde(default)]
    pub recorder_cpu_ns: u64,
    /// The elapsed time to which this CPU time belongs.
    #[serde(default)]
    pub recorder_ns: u64,
    /// How the recording was cut into parts, if it was.
    #[serde(default)]
    pub rotation: Option<Rotation>,
    /// Clock snapshots, taken at the start, every second and at the end.
    pub snapshots: Vec<ManifestSnapshot>,
    /// The LWPs that lived when the recording of the kernel had begun, by process. Older recordings do not have this.
    #[serde(default)]
    pub processes: Vec<ProcessLwps>,
    /// Time on CPUs of each LWP of the recorded processes, as summed by the kernel. It is read at the start, every
    /// tenth of a second or less often, and at the end. LWPs that lived only between two readings are missing. Older
    /// recordings do not have this.
    #[serde(default)]
    pub lwp_cpu_times: Vec<LwpCpuTime>,
    /// The schemata with which the recording was made. Older recordings have none.
    #[serde(default)]
    pub schemata: Vec<RecordedSchema>,
    /// Tracepoints of these schemata that the kernel did not have, as `system:event`.
    #[serde(default)]
    pub missing_tracepoints: Vec<String>,
    /// Number of LWPs that one reading found but that are not in `lwp_cpu_times`, because there were too many.
    #[serde(default)]
    pub lwp_cpu_times_omitted: u64,
}

/// A schema with which a recording was made. The merge passes it on unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSchema {
    /// Its name.
    pub name: String,
    /// Its text, in TOML.
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

/// The kernel's own sum of one LWP's time on CPUs, at two instants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LwpCpuTime {
    /// The process.
    pub pid: u32,
    /// The LWP.
    pub tid: u32,
    /// The reading at the start of the recording. `None`: the LWP did not exist yet, and had no CPU time.
    #[serde(default)]
    pub begin: Option<CpuTimeReading>,
    /// The last reading at which the LWP existed. That is at the end of the recording. If the LWP ended earlier, it is
    /// up to a tenth of a second before that end (more if readings take long). `None`: the LWP existed only at the
    /// start.
    #[serde(default)]
    pub end: Option<CpuTimeReading>,
}

/// `sum_exec_runtime` of an LWP, as `/proc/PID/task/TID/schedstat` shows it (kernel/sched/core.c, v6.12).
///
/// The kernel updates it at each switch and each timer tick, not when it is read. So an LWP that is on a CPU during the
/// reading may have run for up to one tick more (1 to 10 ms; longer with `nohz_full`).
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
    /// Why it was not recorded by better means, if there are any.
    pub why: Option<String>,
    /// Whether switches between LWPs other than the program's were left out, on purpose.
    #[serde(default)]
    pub others_unseen: bool,
    /// Whether the recorder was killed. Then the events that were still in the kernel's buffers are missing at its end.
    #[serde(default)]
    pub cut: bool,
    /// Number of events lost on each CPU, where the kernel counted them.
    pub lost: Vec<(u32, u64)>,
    /// Whether the recorder is in a PID namespace other than that of the kernel's events. Then no LWP of the user side
    /// can be found among them.
    #[serde(default)]
    pub has_other_numbers: bool,
    /// TSC at which recording was stopped. The user side after this time has no kernel side.
    #[serde(default)]
    pub stopped_tick: Option<u64>,
}

/// The user side of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UserSide {
    /// File name in the run directory. If there are several parts, the name that one file for all of them would have.
    pub file: String,
    /// If the recording was cut: the parts in which this process has a file ([`user_part_name`]).
    #[serde(default)]
    pub parts: Vec<u32>,
    /// The process.
    pub pid: u32,
    /// Number of records for which there was no room.
    pub lost: u64,
    /// Number of records that were never finished.
    pub unfinished: u64,
    /// Number of records that could not be written, because the disk was full.
    #[serde(default)]
    pub unwritten: u64,
    /// Whether an LWP got no buffer because there was no memory for one. If false, all buffers were in use.
    #[serde(default)]
    pub no_memory: bool,
    /// Whether the process was still running when the recording ended. What it recorded afterwards is missing.
    #[serde(default)]
    pub cut: bool,
    /// The numbers of the process and its LWPs outside, if the process is in a PID namespace other than that of the
    /// recorder.
    #[serde(default)]
    pub namespace: Option<NamespaceNumbers>,
}

/// The numbers of a process in another PID namespace, as its recorder sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceNumbers {
    /// The process; 0 if unknown.
    pub pid: u32,
    /// For each LWP that was found: its number in its own namespace, and its number for the recorder.
    pub lwps: Vec<(u32, u32)>,
}

/// Marks the name of a user trace whose process is in another PID namespace. So this is known even if the recorder was
/// killed before it wrote the numbers.
pub const NAMESPACE_MARK: &str = "-namespace";

/// A clock snapshot, in the form that the manifest contains.
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
    /// Converts a snapshot to this form.
    pub fn new(domain: ClockDomain, snapshot: Snapshot) -> ManifestSnapshot {
        ManifestSnapshot {
            clock: domain.name().into(),
            before: snapshot.before.0,
            after: snapshot.after.0,
            ns: snapshot.ns.0,
        }
    }

    /// Converts this to a snapshot; `None` if the clock is unknown.
    pub fn snapshot(&self) -> Option<(ClockDomain, Snapshot)> {
        let domain = ClockDomain::from_name(&self.clock)?;
        Some((domain, Snapshot { before: Ticks(self.before), after: Ticks(self.after), ns: Nanos(self.ns) }))
    }
}

impl Manifest {
    /// Reads the manifest of a run directory.
    ///
    /// # Errors
    /// If there is none, or it is not a manifest.
    pub fn read(run: &Path) -> Result<Manifest, Error> {
        Manifest::read_in(&Folder::open(run).map_err(Error::io(run))?)
    }

    /// The same, for a folder that is already open. For an unfinished run, it includes the snapshots taken so far.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
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

    /// Writes the manifest to a run directory that belongs to the caller. An existing manifest is replaced atomically.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, run: &Folder) -> Result<(), Error> {
        let path = run.path_of(MANIFEST);
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::bad(&path, "end", "JSON", e.to_string()))?;
        run.write_file(MANIFEST, (text + "\n").as_bytes()).map_err(Error::io(&path))
    }
}
