//! The flight recorder: the last events of every LWP in memory, and snapshots of them on request.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use super::{Session, current, recording::start_alone, snapshots};
use crate::{
    drain::{self, DrainSummary},
    file_size_signal::without_file_size_signal,
    shm::{Geometry, Mode},
};

/// Keeps the last events of this process in memory, until the process ends. Their number depends on the size of its
/// rings.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path();
/// fut::events! {
///     fn handled(id: u64);
/// }
///
/// let recorder = fut::FlightRecorder::start(fut::FlightRecorder::GEOMETRY)?;
/// recorder.snapshot_on_signal(libc::SIGUSR2, path)?;
/// (0..1_000_000).for_each(handled);
/// let summary = recorder.snapshot(&path.join("now.fut"))?;
/// assert!(summary.records > 0 && summary.lost == 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FlightRecorder {
    session: &'static Session,
}

impl FlightRecorder {
    /// The last MiB of each of 128 LWPs: 15 000 to 60 000 events each. The ring of an ended LWP keeps its events until
    /// another LWP needs it.
    pub const GEOMETRY: Geometry = Geometry { packets: 16, rings: 128 };

    /// Starts to record, in overwrite mode. Possible once per process.
    ///
    /// # Errors
    /// If this process already records, or no shared memory is available.
    pub fn start(geometry: Geometry) -> io::Result<FlightRecorder> {
        start_alone(geometry, Mode::Overwrite).map(|session| FlightRecorder { session })
    }

    /// The flight recorder of this process, if it runs. It may have been started by [`start`](FlightRecorder::start) or
    /// by `sigmund record`.
    pub fn running() -> Option<FlightRecorder> {
        let session = current().filter(|session| session.arena.mode() == Mode::Overwrite)?;
        Some(FlightRecorder { session })
    }

    pub(super) fn is_of_this_process(&self) -> bool {
        self.session.pid.0 == std::process::id()
    }

    /// Writes the contents of the rings to a new user trace at `path`. Other threads continue to record meanwhile.
    /// Packets that they overwrite before these are copied are counted as overwritten.
    ///
    /// # Errors
    /// If the file exists, or cannot be written. In the latter case it is removed.
    pub fn snapshot(&self, path: &Path) -> io::Result<DrainSummary> {
        super::note_modules();
        let file = File::create_new(path)?;
        let written = without_file_size_signal(|| drain::snapshot_of_own(&self.session.arena, file));
        written.inspect_err(|_| drop(fs::remove_file(path)))
    }

    /// Takes a snapshot to `snapshot-PID-NUMBER.fut` in `folder` whenever `signal` arrives. The handler only wakes a
    /// sleeping thread. It replaces the previous handler of the signal. A later call changes the folder for all
    /// signals.
    ///
    /// # Errors
    /// If there is no such signal, or no thread can be created.
    pub fn snapshot_on_signal(&self, signal: i32, folder: &Path) -> io::Result<()> {
        snapshots::on_signal(*self, signal, folder)
    }

    /// Takes a snapshot to `snapshot-PID-NUMBER.fut` in `folder` when a thread panics, before the panic is reported.
    /// Only the first eight panics cause snapshots, so that a program that survives many panics does not fill the disk.
    pub fn snapshot_on_panic(&self, folder: &Path) {
        snapshots::on_panic(*self, folder);
    }
}
