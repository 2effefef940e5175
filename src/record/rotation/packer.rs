//! Compresses closed parts of the kernel side: they become trace.dat files with zstd, if a CPU is free. This runs on a
//! thread with the lowest priority. A part that the thread has not reached remains as it is until the end of the
//! recording, or until it is removed.

use std::{
    collections::VecDeque,
    ffi::OsString,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use fkt_ingest::live::{remove_part, write_part_compressed};
use rustix::time::{ClockId, clock_gettime};
use sigmund_files::Folder;
use sigmund_merge::{Packed, Part};

use crate::output;

/// A closed part that was not removed.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    pub(super) part: Part,
    /// When it ended.
    pub(super) ended: std::time::Instant,
    /// The bytes of all its files, including those that describe it.
    bytes: u64,
    is_packed: bool,
    has_failed: bool,
}

impl Closed {
    pub(super) fn new(part: Part, run: &Folder) -> Closed {
        let bytes = bytes_on_disk(run, &part);
        Closed { part, ended: std::time::Instant::now(), bytes, is_packed: false, has_failed: false }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds the size of a new file beside the part.
    pub(super) fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

/// The size of all files of a part. If the folder cannot be read: the size of the files that the part lists.
fn bytes_on_disk(run: &Folder, part: &Part) -> u64 {
    let mark = format!("part-{:05}.", part.number);
    let is_of_part =
        |name: &OsString| name.as_encoded_bytes().windows(mark.len()).any(|at| at == mark.as_bytes());
    let length =
        |name: OsString| run.open_file(&name).and_then(|file| file.metadata()).map_or(0, |data| data.len());
    let listed = part.files.iter().map(|file| file.bytes).sum();
    run.names().map_or(listed, |names| names.into_iter().filter(is_of_part).map(length).sum())
}

/// The closed parts, the oldest first. The packer and the rotation share them.
#[derive(Debug, Default)]
pub(super) struct ClosedParts {
    pub(super) parts: Mutex<VecDeque<Closed>>,
    changed: Condvar,
    stop: AtomicBool,
    packed: Mutex<Packed>,
}

impl ClosedParts {
    pub(super) fn push(&self, closed: Closed) {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push_back(closed);
        self.changed.notify_one();
    }

    /// The bytes of all closed parts.
    pub(super) fn bytes(&self) -> u64 {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().map(Closed::bytes).sum()
    }

    pub(super) fn packed(&self) -> Packed {
        *self.packed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the packer end soon, even in the middle of a part.
    pub(super) fn stop(&self) {
        // Release: not needed, and costs nothing. The lock ensures that a packer which is about to wait sees the flag.
        self.stop.store(true, Ordering::Release);
        let _parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_one();
    }

    /// Waits for a part that is not compressed. `None` when the packer has to stop.
    fn next(&self) -> Option<u32> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.stop.load(Ordering::Acquire) {
                return None;
            }
            if let Some(closed) = parts.iter().find(|closed| !closed.is_packed && !closed.has_failed) {
                return Some(closed.part.number);
            }
            let waited = self.changed.wait_timeout(parts, Duration::from_secs(1));
            parts = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Starts the packer.
pub(super) fn start(run: &Arc<Folder>, closed: &Arc<ClosedParts>) -> Result<thread::JoinHandle<()>> {
    let (run, closed) = (Arc::clone(run), Arc::clone(closed));
    let pack = move || {
        // Lowering the priority is always permitted. It changes only the priority of the calling thread.
        let _ = rustix::process::setpriority_process(None, 19);
        while let Some(number) = closed.next() {
            pack_one(&run, &closed, number);
        }
    };
    thread::Builder::new().name("sigmund-pack".into()).spawn(pack).context("a thread that compresses")
}

fn pack_one(run: &Folder, closed: &ClosedParts, number: u32) {
    let before = thread_cpu_ns();
    let written = write_part_compressed(run, number, &closed.stop);
    let cpu_ns = thread_cpu_ns() - before;
    let mut parts = closed.parts.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(entry) = parts.iter_mut().find(|entry| entry.part.number == number) else {
        // The part was removed in the meantime.
        let _ = remove_part(run, number);
        return;
    };
    let name = fkt_ingest::live::part_name(number);
    match written {
        Ok(Some(finished)) => {
            entry.is_packed = true;
            let file = entry.part.files.iter_mut().find(|file| file.name == name);
            if let Some(file) = file {
                (file.bytes, file.to_be_made) = (finished.summary.bytes, false);
            }
            entry.bytes = bytes_on_disk(run, &entry.part);
            // If it cannot be written, the existing description says that the file is still to be made.
            if let Err(error) = entry.part.write(run) {
                output::report_error(&format!("{error:#}"));
            }
            let mut packed = closed.packed.lock().unwrap_or_else(PoisonError::into_inner);
            packed.parts += 1;
            packed.page_bytes += finished.summary.page_bytes();
            packed.bytes += finished.summary.bytes;
            packed.cpu_ns += cpu_ns;
        }
        Ok(None) => entry.is_packed = true,
        // It is written at the end of the recording instead.
        Err(_) if closed.stop.load(Ordering::Acquire) => {}
        Err(error) => {
            entry.has_failed = true;
            output::report_error(&format!("compressing part {number}: {error}"));
        }
    }
}

pub(super) fn thread_cpu_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec.unsigned_abs() * 1_000_000_000 + used.tv_nsec.unsigned_abs()
}
