//! The same question as for listings, asked of recordings: a kernel trace (trace.dat) and a user trace of each process,
//! whole or with pages and packets missing.
//!
//! ```text
//!   seed ─► world ─┬─► recorded, parts of it lost ─► trace.dat, user-PID.fut ─► merge ─► every row ─┐
//!                  └─► history: LWPs and threads at every tick ───────────────────────────────────┴─► true?
//! ```
//!
//! Each row is a claim. It must be true, and `unknown` (or NULL) is allowed only from a gap to the next event that
//! determines the state.

mod check;
mod kernel_file;
mod losses;
mod untraced;
mod user_file;
mod world;

use std::{
    fs,
    path::{Path, PathBuf},
};

use sigmund_files::Folder;
use sigmund_merge::{KernelSide, Manifest, MergeOptions, Summary, merge};

use self::losses::Recording;
use crate::{supertrace::folder_in_memory, truth::chance::Chance};
pub(crate) use world::Size;

/// The sides of a recording that are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sides {
    Both,
    Kernel,
    User,
}

/// Simulates, records, merges and checks; `losing` says whether parts of the recording are lost.
pub(crate) fn try_once(seed: u64, size: Size, sides: Sides, losing: bool) -> Result<Told, String> {
    let mut chance = Chance::new(seed);
    let history = world::run(&mut chance, size, losing, sides);
    let recording = losses::record(&mut chance, &history, sides, losing);
    let folder = folder_in_memory();
    let merged = merged(folder.path(), size, sides, &recording);
    if sides == Sides::User && size.processes == 1 && recording.packets.is_empty() {
        // The only input holds nothing, and the merge says what it looked for.
        return match merged {
            Err(error) if error.contains("expected packets with events of an LWP") => Ok(Told::default()),
            _ => Err(format!("expected an error, found {merged:?}")),
        };
    }
    let (out, summary) = merged?;
    check::check(&out, &summary, &history, &recording)
}

/// The same for a recording from which switches are missing without a report of loss: no row may be false.
pub(crate) fn try_any_untraced(seed: u64, size: Size) -> Result<Claimed, String> {
    let mut chance = Chance::new(seed);
    let history = world::run(&mut chance, size, false, Sides::Both);
    let untraced = untraced::choose_any(&mut chance, &history);
    let recording = losses::record_without(&mut chance, &history, Sides::Both, false, untraced);
    let folder = folder_in_memory();
    let (out, _) = merged(folder.path(), size, Sides::Both, &recording)?;
    check::check_claims(&out, &history, &recording)
}

/// The same, of a recording that is whole but for switches that the kernel did not trace, each of which is shown at
/// once; how many.
pub(crate) fn try_untraced(seed: u64, size: Size) -> Result<usize, String> {
    let mut chance = Chance::new(seed);
    let history = world::run(&mut chance, size, false, Sides::Both);
    let untraced = untraced::choose(&mut chance, &history);
    let recording = losses::record_without(&mut chance, &history, Sides::Both, false, untraced);
    let folder = folder_in_memory();
    let (out, summary) = merged(folder.path(), size, Sides::Both, &recording)?;
    check::check_untraced(&out, &summary, &history, &recording)?;
    Ok(recording.untraced.len())
}

/// Writes a recording, and merges it.
fn merged(
    folder: &Path,
    size: Size,
    sides: Sides,
    recording: &Recording,
) -> Result<(PathBuf, Summary), String> {
    let mut inputs: Vec<PathBuf> = Vec::new();
    if sides != Sides::User {
        // The recorder stops when all processes have ended, and the manifest has that time.
        let run = folder.join("run");
        let own = Folder::create_or_take_empty(&run, None).map_err(|e| e.to_string())?;
        let file = kernel_file::write(size.cpus, &recording.pages);
        fs::write(run.join("kernel.dat"), file).map_err(|e| e.to_string())?;
        let (file, means) = (Some("kernel.dat".into()), "tracefs".into());
        let stopped_tick = Some(u64::MAX);
        let kernel_side = KernelSide { file, means, stopped_tick, ..KernelSide::default() };
        Manifest { kernel_side, ..Manifest::default() }.write(&own).map_err(|e| e.to_string())?;
        inputs.push(run);
    }
    if sides != Sides::Kernel {
        for process in 0..size.processes {
            let path = folder.join(format!("user-{}.fut", world::pid(process)));
            fs::write(&path, user_file::write(process, &recording.packets)).map_err(|e| e.to_string())?;
            inputs.push(path);
        }
    }
    let out = folder.join("out.supertrace");
    let summary = merge(&inputs, &out, &MergeOptions::default(), |_| {}).map_err(|e| e.to_string())?;
    Ok((out, summary))
}

/// What is claimed of recordings with switches that were not traced, in ticks of LWPs and user threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claimed {
    pub(crate) untraced: usize,
    /// With a state.
    pub(crate) known: u64,
    /// `unknown`, or `mounted`: the state of the LWP is not known.
    pub(crate) unknown: u64,
    /// Unknown according to the rows of `losses`.
    pub(crate) said_unknown: u64,
}

impl std::ops::AddAssign for Claimed {
    fn add_assign(&mut self, other: Claimed) {
        self.untraced += other.untraced;
        self.known += other.known;
        self.unknown += other.unknown;
        self.said_unknown += other.said_unknown;
    }
}

/// Counts of what a run has checked, so that a test can require enough of each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) events: usize,
    pub(crate) threads: usize,
    pub(crate) lost_events: usize,
    pub(crate) kernel_gaps: usize,
    pub(crate) user_gaps: usize,
    /// LWPs that got the number of their process by `execve`.
    pub(crate) execs: usize,
    /// Rows with a known state.
    pub(crate) known_rows: usize,
    /// Rows with an unknown state.
    pub(crate) unknown_rows: usize,
    /// Rows of these tables.
    pub(crate) syscalls: usize,
    pub(crate) interrupts: usize,
    pub(crate) spans: usize,
    pub(crate) wakeups: usize,
    /// Wakeups with a latency.
    pub(crate) latencies: usize,
    pub(crate) locks: usize,
    /// Requests without missing events.
    pub(crate) exact_locks: usize,
    pub(crate) futexes: usize,
    pub(crate) counters: usize,
    /// Values of which all is known that could be.
    pub(crate) exact_counts: usize,
    pub(crate) processes: usize,
}

impl std::ops::AddAssign for Told {
    fn add_assign(&mut self, other: Told) {
        self.events += other.events;
        self.threads += other.threads;
        self.lost_events += other.lost_events;
        self.kernel_gaps += other.kernel_gaps;
        self.user_gaps += other.user_gaps;
        self.execs += other.execs;
        self.known_rows += other.known_rows;
        self.unknown_rows += other.unknown_rows;
        self.syscalls += other.syscalls;
        self.interrupts += other.interrupts;
        self.spans += other.spans;
        self.wakeups += other.wakeups;
        self.latencies += other.latencies;
        self.locks += other.locks;
        self.exact_locks += other.exact_locks;
        self.futexes += other.futexes;
        self.counters += other.counters;
        self.exact_counts += other.exact_counts;
        self.processes += other.processes;
    }
}
