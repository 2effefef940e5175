//! The clock snapshots of a recording. They are in its manifest; until that is complete, they are in a file beside it.
//! A separate thread writes the file, so that the thread that reads the clocks never waits for a disk.

use std::{
    sync::mpsc::{Sender, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use fut::clock;
use sigmund_files::Folder;
use sigmund_merge::{Manifest, ManifestSnapshot, SnapshotLog};

use crate::output;

/// The time between the first two snapshots. It doubles after each further snapshot. So even a recording that is killed
/// early has two.
const FIRST_AFTER: Duration = Duration::from_millis(1);
const AT_MOST_AFTER: Duration = Duration::from_secs(1);

/// The clock snapshots of a running recording.
pub(super) struct Clocks {
    log: Sender<Vec<ManifestSnapshot>>,
    last: Instant,
    next_after: Duration,
}

impl Clocks {
    /// Writes the manifest at the start of a recording, and takes the first clock snapshot.
    pub(super) fn begin(manifest: &mut Manifest, run: &Folder) -> Result<Clocks> {
        let log = SnapshotLog::create(run)?;
        manifest.unfinished = true;
        manifest.write(run)?;
        let mut clocks = Clocks { log: append_to(log)?, last: Instant::now(), next_after: FIRST_AFTER };
        clocks.read(manifest);
        Ok(clocks)
    }

    /// Takes a snapshot if one is due.
    pub(super) fn read_when_due(&mut self, manifest: &mut Manifest) {
        if self.last.elapsed() >= self.next_after {
            self.read(manifest);
            self.next_after = (2 * self.next_after).min(AT_MOST_AFTER);
        }
    }

    pub(super) fn read(&mut self, manifest: &mut Manifest) {
        let snapshots = clock::snapshots().into_iter();
        let snapshots: Vec<_> =
            snapshots.map(|(domain, snapshot)| ManifestSnapshot::new(domain, snapshot)).collect();
        // The receiving thread lives as long as this value.
        let _ = self.log.send(snapshots.clone());
        manifest.snapshots.extend(snapshots);
        self.last = Instant::now();
    }

    /// Completes the manifest and writes it.
    pub(super) fn end(self, manifest: &mut Manifest, run: &Folder) -> Result<()> {
        manifest.unfinished = false;
        manifest.write(run)?;
        Ok(SnapshotLog::remove(run)?)
    }
}

/// Starts the thread that appends to the file.
fn append_to(mut log: SnapshotLog) -> Result<Sender<Vec<ManifestSnapshot>>> {
    let (sender, receiver) = channel::<Vec<ManifestSnapshot>>();
    let append = move || {
        let mut has_failed = false;
        for snapshots in receiver {
            // At the end the manifest has all snapshots. So a full disk does no harm if this process ends normally.
            if let Err(error) = log.append(&snapshots)
                && !std::mem::replace(&mut has_failed, true)
            {
                output::report_error(&format!("clock snapshots: {error}"));
            }
        }
    };
    thread::Builder::new().name("clocks".into()).spawn(append).context("a thread for clock snapshots")?;
    Ok(sender)
}
