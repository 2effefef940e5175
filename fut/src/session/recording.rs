//! Recording without a recorder. The arena, the drain (on its own thread) and the trace are all in one process.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use sigmund_model::Pid;

use super::{Session, Starting, current, install, is_on};
use crate::{
    drain::{BegunTrace, Drain, DrainSummary},
    file_size_signal::without_file_size_signal,
    probe::{is_recording, stop_recording},
    service_thread,
    shm::{Arena, Geometry, Mode},
    warning::warn,
};

/// How long the drain sleeps when it has found nothing. Filling a ring of 4 MiB takes four times as long.
const NAP: Duration = Duration::from_millis(1);

/// Records this process to a file, until [`finish`](Recording::finish) or until it is dropped. Possible once per
/// process.
#[derive(Debug)]
#[must_use = "the recording ends when this is dropped"]
pub struct Recording {
    /// The process that began the recording. A forked child has a copy of this value, but not the thread of the drain.
    pid: u32,
    stop: Arc<AtomicBool>,
    drain: Option<thread::JoinHandle<(DrainSummary, io::Result<()>)>>,
}

/// The totals of a recording.
pub type RecordingSummary = DrainSummary;

impl Recording {
    /// Starts to record to a new file at `path`.
    ///
    /// # Errors
    /// If this process already records, the file exists, or the file or shared memory cannot be created.
    pub fn start(path: &Path, geometry: Geometry) -> io::Result<Recording> {
        if is_on() {
            return Err(has_session());
        }
        let file = File::create_new(path)?;
        Recording::to_file(file, path, geometry).inspect_err(|_| {
            // There is nothing to read in it.
            let _ = std::fs::remove_file(path);
        })
    }

    /// Does everything that can fail before the session starts, because a process has only one session.
    fn to_file(file: File, path: &Path, geometry: Geometry) -> io::Result<Recording> {
        {
            // In a child made by a raw `clone`, the drain must not be counted among the threads of its parent.
            let _starting = Starting::take();
            super::leave_parent();
        }
        let begun = without_file_size_signal(|| BegunTrace::new(file))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (sender, receiver) = mpsc::channel::<Drain<&'static Arena>>();
        let body = move || {
            // An error: the session could not start.
            let Ok(mut drain) = receiver.recv() else { return (DrainSummary::default(), Ok(())) };
            let mut failed = None;
            // Acquire: pairs with the Release in `end`.
            while !stopped.load(Ordering::Acquire) {
                match drain.poll() {
                    Ok(0) => thread::sleep(NAP),
                    Ok(_) => {}
                    // From here on, the drain only counts records.
                    Err(error) => failed = Some(error),
                }
            }
            let (summary, written) = drain.close();
            (summary, failed.map_or(written, Err))
        };
        let drain = service_thread::spawn("fut-drain", body)?;
        let session = start_alone(geometry, Mode::Discard)?;
        let sent = sender.send(Drain::of_own(&session.arena, begun, path)?);
        sent.map_err(|_| io::Error::other("the drain has ended"))?;
        Ok(Recording { pid: std::process::id(), stop, drain: Some(drain) })
    }

    /// Stops recording and completes the file. Events that other threads record at this moment may be missing.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn finish(self) -> io::Result<RecordingSummary> {
        let (summary, written) = self.close();
        written.map(|()| summary)
    }

    /// Like [`finish`](Recording::finish), but returns the totals even if the file could not be written completely. The
    /// file then contains the data written before the error, and `unwritten` counts the other records.
    ///
    /// In a forked child, this returns an error at once: the recording belongs to the parent, and continues.
    pub fn close(mut self) -> (RecordingSummary, io::Result<()>) {
        match self.end() {
            Some(ended) => ended,
            None => {
                let why = format!("the recording belongs to process {}, which forked this one", self.pid);
                (RecordingSummary::default(), Err(io::Error::other(why)))
            }
        }
    }

    /// Ends the recording. `None` in a forked child, or if the recording was ended before.
    fn end(&mut self) -> Option<(RecordingSummary, io::Result<()>)> {
        let drain = self.drain.take()?;
        if self.pid != std::process::id() {
            std::mem::forget(drain);
            return None;
        }
        let switched_off = stop_recording();
        // Release: pairs with the Acquire in the drain's thread.
        self.stop.store(true, Ordering::Release);
        Some(match drain.join() {
            Ok((summary, written)) => (summary, written.and_then(|()| Ok(switched_off?))),
            Err(_) => (RecordingSummary::default(), Err(io::Error::other("the drain panicked"))),
        })
    }
}

/// Ends the recording like [`finish`](Recording::finish). An error is reported on stderr.
impl Drop for Recording {
    fn drop(&mut self) {
        if let Some((_, Err(error))) = self.end() {
            warn(format_args!("the trace is not complete: {error}"));
        }
    }
}

/// Why another recording cannot start.
fn has_session() -> io::Error {
    let why = if is_recording() {
        "this process already records"
    } else {
        "this process has recorded already, which is possible once"
    };
    io::Error::new(io::ErrorKind::AlreadyExists, why)
}

/// Starts a session without a recorder, with a private arena.
pub(super) fn start_alone(geometry: Geometry, mode: Mode) -> io::Result<&'static Session> {
    let _starting = Starting::take();
    if is_on() {
        return Err(has_session());
    }
    super::leave_parent();
    let pid = Pid(std::process::id());
    let begin = || {
        Session::begin(pid, false, |describe| {
            let arena = Arena::alone(geometry, mode)?;
            describe(&arena);
            Ok(arena)
        })
    };
    install(without_file_size_signal(begin)?)?;
    current().ok_or_else(|| io::Error::other("the session was not installed"))
}
