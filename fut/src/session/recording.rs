//! Recording without a recorder: the arena, the drain on a thread of its own, and the trace, in one process.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use sigmund_model::Pid;

use super::{Session, Starting, current, install, is_on};
use crate::{
    drain::{Drain, DrainSummary},
    probe::stop_recording,
    shm::{Arena, Geometry, Mode},
};

/// How long the drain sleeps when it found nothing: a ring of 4 MiB lasts four times as long.
const NAP: Duration = Duration::from_millis(1);

/// This process records into a file, until [`finish`](Recording::finish). One in a process's life.
#[derive(Debug)]
pub struct Recording {
    /// The process that began it: a child that `fork` made has a copy, without the thread that drains.
    pid: u32,
    stop: Arc<AtomicBool>,
    drain: Option<thread::JoinHandle<(DrainSummary, io::Result<()>)>>,
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
        let file = File::create_new(path)?;
        let session = start_alone(geometry, Mode::Discard).inspect_err(|_| {
            // Nothing will ever be in it.
            let _ = std::fs::remove_file(path);
        })?;
        let mut drain = Drain::to_file(&session.arena, file, path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let body = move || {
            block_file_size_signal();
            let mut failed = None;
            // Acquire: pairs with the Release in `finish`.
            while !stopped.load(Ordering::Acquire) {
                match drain.poll() {
                    Ok(0) => thread::sleep(NAP),
                    Ok(_) => {}
                    // From here on it only counts.
                    Err(error) => failed = Some(error),
                }
            }
            let (summary, written) = drain.close();
            (summary, failed.map_or(written, Err))
        };
        let drain = thread::Builder::new().name("fut-drain".into()).spawn(body)?;
        Ok(Recording { pid: std::process::id(), stop, drain: Some(drain) })
    }

    /// Stops recording and completes the file. Events that other threads are just recording may miss it.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn finish(self) -> io::Result<RecordingSummary> {
        let (summary, written) = self.close();
        written.map(|()| summary)
    }

    /// As [`finish`](Recording::finish), and what was recorded is known also if the file could not be written to its end:
    /// it then holds what was written before, and `unwritten` counts the rest.
    ///
    /// In a child that `fork` made, this is an error at once: the recording is its parent's, and continues.
    pub fn close(mut self) -> (RecordingSummary, io::Result<()>) {
        if self.pid != std::process::id() {
            std::mem::forget(self.drain.take());
            let why = format!("the recording is that of process {}, which forked this one", self.pid);
            return (RecordingSummary::default(), Err(io::Error::other(why)));
        }
        let switched_off = stop_recording();
        // Release: pairs with the Acquire in the drain's thread.
        self.stop.store(true, Ordering::Release);
        match self.drain.take().map(thread::JoinHandle::join) {
            Some(Ok((summary, written))) => (summary, written.and_then(|()| Ok(switched_off?))),
            _ => (RecordingSummary::default(), Err(io::Error::other("the drain panicked"))),
        }
    }
}

/// Begins a session of this process for itself, with a private arena.
pub(super) fn start_alone(geometry: Geometry, mode: Mode) -> io::Result<&'static Session> {
    let _starting = Starting::take();
    if is_on() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "this process records already"));
    }
    super::leave_parent();
    let pid = Pid(std::process::id());
    install(Session::begin(pid, false, |describe| {
        let arena = Arena::alone(geometry, mode)?;
        describe(&arena);
        Ok(arena)
    })?)?;
    current().ok_or_else(|| io::Error::other("the session was not installed"))
}

/// A file that grows beyond RLIMIT_FSIZE is an error for the drain, and must not kill the program.
fn block_file_size_signal() {
    // SAFETY: a signal set is plain bits; it is filled in next.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is ours.
    unsafe { libc::sigemptyset(&raw mut set) };
    // SAFETY: `set` is initialised, and the signal exists.
    unsafe { libc::sigaddset(&raw mut set, libc::SIGXFSZ) };
    // SAFETY: `set` is initialised; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}
