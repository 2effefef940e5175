//! Cuts a running recording into parts: each pump changes to new files between two pages.
//!
//! ```text
//!            part 1     │     part 2       │  part 3
//!   CPU 0  |page|page|page|page|page|page|page|page|
//!   CPU 1  |page        |page            |page     |
//!                       └ next_part()      └ next_part()
//! ```
//!
//! Every event that is recorded after `next_part` has returned is in the new part or a later one. Every event of the
//! closed part was recorded before `next_part` returned. If a CPU has few events, its page was not full when the part
//! was closed: then the new part also has older events of this CPU.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use sigmund_files::Folder;
use sigmund_model::Cpu;

use super::file_names::FileNames;
use super::pump::{NewFiles, PumpControl, RouteAtSwitch};
use super::stats::{lost, read_events, since};
use super::unfinished::{Description, Pages, remove_files};
use crate::error::Error;

/// The part that is being recorded.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) files: FileNames,
    pub(super) description: Description,
    pub(super) pages: Pages,
    /// The kernel's counts when this part began, for each CPU of each buffer. The texts are empty in the first part.
    pub(super) stats_before: Vec<Vec<String>>,
}

/// Cuts a recording into parts, from any thread. It must be dropped before the recorder is stopped.
#[derive(Debug)]
pub struct Rotator {
    pub(super) current: Arc<Mutex<Current>>,
    pub(super) pumps: Vec<Sender<NewFiles>>,
    /// For each pump, the destinations of its routes: a buffer, and the index of the CPU in it.
    pub(super) places: Vec<Vec<(usize, usize)>>,
    pub(super) shared: Arc<PumpControl>,
}

/// A closed part: nothing is added to it any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosedPart {
    /// Its number.
    pub part: u32,
    /// The number of events in it, by the kernel's count.
    pub events: u64,
    /// The number of events that the kernel's buffers lost during this part, for each CPU of each buffer.
    pub lost: Vec<(Cpu, u64)>,
    /// The reason why its description could not be written to the disk. Then the names of its LWPs and these counts are
    /// those from the beginning of the part.
    pub not_described: Option<String>,
}

impl Rotator {
    /// Bytes of pages that were moved to files so far, in all parts.
    pub fn bytes(&self) -> u64 {
        // Relaxed: it need not be exact.
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Closes the current part, and records into the next one. The pumps need up to 200 ms to notice.
    ///
    /// # Errors
    /// If the files of the next part cannot be created. Recording then continues into the current part.
    pub fn next_part(&mut self, folder: &Folder) -> Result<ClosedPart, Error> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let files = FileNames(current.files.0.map(|part| part + 1));
        let mut description = current.description.clone();
        let pages = Pages::create(folder, files, &description.buffers)?;
        // Reads the names of LWPs at the beginning of the next part. Names of LWPs that ended long ago are not passed
        // on.
        description.system.read_names_again();
        let switched = description.write(folder, files).and_then(|()| self.switch(&pages, folder));
        let at_switch = switched.inspect_err(|_| drop(remove_files(folder, files)))?;

        let mut next_stats = current.stats_before.clone();
        let mut closed = ClosedPart { part: current.files.0.unwrap_or(0), ..ClosedPart::default() };
        let before = std::mem::take(&mut current.stats_before);
        for (buffer, cpu, route) in at_switch {
            let part = since(&route.stats, &before[buffer][cpu]);
            let of_cpu = &mut current.description.buffers[buffer].cpus[cpu];
            of_cpu.lost = lost(&part);
            closed.events += read_events(&part);
            closed.lost.push((Cpu(of_cpu.cpu), of_cpu.lost));
            of_cpu.stats = part;
            next_stats[buffer][cpu] = route.stats;
        }
        current.description.system.read_names();
        let written = current.description.write(folder, current.files);
        closed.not_described = written.err().map(|error| error.to_string());
        *current = Current { files, description, pages, stats_before: next_stats };
        Ok(closed)
    }

    /// Gives new files to the pumps. Returns their reports, each with the index of its buffer and CPU.
    fn switch(&self, pages: &Pages, folder: &Folder) -> Result<Vec<(usize, usize, RouteAtSwitch)>, Error> {
        let mut answers: Vec<(usize, Receiver<Vec<RouteAtSwitch>>)> = Vec::new();
        let mut new = Vec::new();
        for places in &self.places {
            let files = places.iter().map(|(buffer, cpu)| pages.0[*buffer][*cpu].try_clone());
            new.push(files.collect::<Result<Vec<_>, _>>().map_err(|e| Error::io(folder.path(), e))?);
        }
        for (index, (pump, files)) in self.pumps.iter().zip(new).enumerate() {
            let (answer, receiver) = channel();
            // A pump that has failed has ended, and is reported at the end of the recording.
            if pump.send(NewFiles { files, answer }).is_ok() {
                answers.push((index, receiver));
            }
        }
        let mut routes = Vec::new();
        for (index, receiver) in answers {
            for ((buffer, cpu), route) in self.places[index].iter().zip(receiver.recv().unwrap_or_default()) {
                routes.push((*buffer, *cpu, route));
            }
        }
        Ok(routes)
    }
}

/// Where a pump finds the kernel's counts of a CPU.
pub(super) fn stats_path(instance: &Path, cpu: Cpu) -> PathBuf {
    instance.join(format!("per_cpu/cpu{cpu}/stats"))
}
