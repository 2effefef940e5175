//! Recording without a recorder: the arena, the drain on a thread of its own, and the trace, in one process.

use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::Duration,
};

use sigmund_model::Pid;

use super::{Session, arena, current, install, is_on};
use crate::{
    drain::{Drain, DrainSummary},
    probe::stop_recording,
    shm::Geometry,
};

/// How long the drain sleeps when it found nothing: a ring of 4 MiB lasts four times as long.
const NAP: Duration = Duration::from_millis(1);

/// This process records into a file, until [`finish`](Recording::finish). One in a process's life.
#[derive(Debug)]
pub struct Recording {
    stop: Arc<AtomicBool>,
    drain: Option<thread::JoinHandle<io::Result<DrainSummary>>>,
}

/// What a recording came to.
pub type RecordingSummary = DrainSummary;

impl Recording {
    /// Starts to record into a new file at `path`.
    ///
    /// # Errors
    /// When this process records already, when the file exists or cannot be made, or shared memory cannot.
    pub fn start(path: &Path, geometry: Geometry) -> io::Result<Recording> {
        if is_on() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "this process records already"));
        }
        let pid = Pid(std::process::id());
        let shared = shared_memory_path(pid);
        let arena = arena(&shared, geometry, pid)?;
        // The mapping keeps the memory; nobody else needs the name.
        std::fs::remove_file(&shared)?;
        install(Session { arena, pid })?;
        let Some(session) = current() else { return Err(io::Error::other("the session was not installed")) };
        let mut drain = Drain::new(&session.arena, path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let body = move || {
            // Acquire: pairs with the Release in `finish`.
            while !stopped.load(Ordering::Acquire) {
                if drain.poll()? == 0 {
                    thread::sleep(NAP);
                }
            }
            drain.finish()
        };
        let drain = thread::Builder::new().name("fut-drain".into()).spawn(body)?;
        Ok(Recording { stop, drain: Some(drain) })
    }

    /// Stops recording and completes the file. Events that other threads are just recording may miss it.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn finish(mut self) -> io::Result<RecordingSummary> {
        let switched_off = stop_recording();
        self.stop.store(true, Ordering::Release);
        match self.drain.take().map(thread::JoinHandle::join) {
            Some(Ok(summary)) => summary.and_then(|summary| Ok(switched_off.map(|()| summary)?)),
            _ => Err(io::Error::other("the drain panicked")),
        }
    }
}

fn shared_memory_path(pid: Pid) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let tmpfs = Path::new("/dev/shm");
    let dir = if tmpfs.is_dir() { tmpfs.to_path_buf() } else { std::env::temp_dir() };
    dir.join(format!("fut-{pid}-{}.arena", COUNT.fetch_add(1, Ordering::Relaxed)))
}
