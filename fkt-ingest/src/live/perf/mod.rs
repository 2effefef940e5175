//! Records the context switches of one program's LWPs, for users that may not use tracefs.
//!
//! ```text
//!   perf_event_open(dummy event, LWP, CPU), for each LWP the program has and each CPU; inherited by later ones
//!        │ context switches, comm, fork, exit: records with (pid, tid, time, cpu, id) after them
//!        ▼
//!   one ring in shared memory for each CPU  ──drained every 10 ms──▶  perf.data
//! ```
//!
//! The clock is `CLOCK_MONOTONIC_RAW`, which is linear in the TSC, so two snapshots convert it to ticks. Not recorded:
//! other LWPs on the CPU, interrupts, wakers, and why an LWP slept.

mod drain;
mod event;
mod ring;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use sigmund_files::Folder;
use sigmund_model::{Cpu, Pid};

use self::drain::{Drain, PerfFile};
use self::event::{SwitchEvent, refusal};
use self::ring::Ring;
use super::tracefs::Unavailable;
use crate::error::Error;

/// Largest number of scans for LWPs of a program that are not followed yet. LWPs that a followed one creates are
/// followed from their start, so the second scan finds none unless one was created during the first.
const MOST_LOOKS: usize = 16;

/// Whether context switches of the user's own LWPs can be recorded.
///
/// # Errors
/// The reason why they cannot be recorded.
pub fn perf_fallback_available() -> Result<(), Unavailable> {
    SwitchEvent::open(0, -1).map(drop).map_err(|error| Unavailable(refusal(&error)))
}

/// A running recording by perf events. When dropped, it stops and completes the file.
#[derive(Debug)]
pub struct PerfRecorder {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    events: Arc<[SwitchEvent]>,
    thread: Option<JoinHandle<std::io::Result<PerfSummary>>>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfSummary {
    /// Size of the file, in bytes.
    pub bytes: u64,
}

impl PerfRecorder {
    /// Starts recording `program`, with its current and later LWPs, to a perf.data of this name in the folder. If this
    /// process is killed, the file can be read up to its last complete record.
    ///
    /// # Errors
    /// If the program belongs to another user, [`perf_fallback_available`] returns an error, or the file cannot be
    /// created.
    pub fn start(program: Pid, folder: &Folder, name: &str) -> Result<PerfRecorder, Error> {
        let path = folder.path_of(name);
        let fail = |error| Error::io(&path, error);
        let cpus = online_cpus()?;
        let mut rings: Vec<Ring> = Vec::new();
        let mut events = Vec::new();
        let mut seen: Vec<u32> = Vec::new();
        // Repeats until a scan finds no new LWP: an LWP created in between by one that is not followed yet would be
        // missed. A process that creates LWPs faster than they can be followed ends the loop.
        for _ in 0..MOST_LOOKS {
            let new: Vec<u32> = tids(program)?.into_iter().filter(|tid| !seen.contains(tid)).collect();
            if new.is_empty() {
                break;
            }
            for tid in new {
                seen.push(tid);
                for (index, cpu) in cpus.iter().enumerate() {
                    let event = match SwitchEvent::open(tid as i32, cpu.0 as i32) {
                        Ok(event) => event,
                        // It has exited in the meantime.
                        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                        Err(error) => {
                            return Err(Error::io(Path::new(&format!("perf events of LWP {tid}")), error));
                        }
                    };
                    match rings.get(index) {
                        None => rings.push(Ring::map(&event).map_err(fail)?),
                        Some(ring) => event.output_to(ring.event()).map_err(fail)?,
                    }
                    events.push(event);
                }
            }
        }
        let ids = events.iter().map(SwitchEvent::id).collect::<Result<Vec<u64>, _>>().map_err(fail)?;
        let mut file =
            folder.create_file(name).and_then(|file| PerfFile::create(file, &ids)).map_err(fail)?;
        for tid in &seen {
            let comm = fs::read(format!("/proc/{program}/task/{tid}/comm")).unwrap_or_default();
            file.comm(program, *tid, comm.trim_ascii_end()).map_err(fail)?;
        }
        for event in &events {
            event.enable().map_err(fail)?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let events: Arc<[SwitchEvent]> = events.into();
        let drain = Drain { rings, events: Arc::clone(&events), file, stop: Arc::clone(&stop) };
        let thread = std::thread::Builder::new().name("sigmund-perf".to_owned());
        let thread = thread.spawn(move || drain.run()).map_err(fail)?;
        Ok(PerfRecorder { path, stop, events, thread: Some(thread) })
    }

    /// Stops recording events immediately, whatever the drain waits for: it only disables the events in the kernel, and
    /// uses no disk. [`stop`](PerfRecorder::stop) writes what was recorded before.
    ///
    /// # Errors
    /// If the kernel refuses, which is not expected.
    pub fn halt(&self) -> Result<(), Error> {
        let switched: Vec<_> = self.events.iter().map(SwitchEvent::disable).collect();
        switched.into_iter().collect::<std::io::Result<()>>().map_err(|e| Error::io(&self.path, e))
    }

    /// Stops recording, and completes the file.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn stop(mut self) -> Result<PerfSummary, Error> {
        self.finish().map_err(|e| Error::io(&self.path, e))
    }

    fn finish(&mut self) -> std::io::Result<PerfSummary> {
        let Some(thread) = self.thread.take() else { return Ok(PerfSummary::default()) };
        // Release: pairs with the Acquire in Drain::run.
        self.stop.store(true, Ordering::Release);
        thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the draining thread panicked")))
    }
}

impl Drop for PerfRecorder {
    fn drop(&mut self) {
        // A caller that drops a recorder instead of stopping it does not need the error.
        let _ = self.finish();
    }
}

fn tids(program: Pid) -> Result<Vec<u32>, Error> {
    let folder = PathBuf::from(format!("/proc/{program}/task"));
    let entries = fs::read_dir(&folder).map_err(|e| Error::io(&folder, e))?;
    Ok(entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
}

fn online_cpus() -> Result<Vec<Cpu>, Error> {
    let path = Path::new("/sys/devices/system/cpu/online");
    let text = fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    Ok(cpu_list(&text))
}

/// `0-1,4` → 0, 1, 4.
fn cpu_list(text: &str) -> Vec<Cpu> {
    let ranges = text.trim().split(',').filter_map(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        Some(from.parse::<u32>().ok()?..=to.parse::<u32>().ok()?)
    });
    ranges.flatten().map(Cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_list_is_ranges_and_numbers() {
        assert_eq!(cpu_list("0-1,4\n"), [Cpu(0), Cpu(1), Cpu(4)]);
        assert_eq!(cpu_list("0\n"), [Cpu(0)]);
    }
}
