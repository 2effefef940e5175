//! Clock snapshots during a recording. They are appended to a file, so that they are kept if the recorder is killed.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
};

use sigmund_files::Folder;

use super::{MAX_MANIFEST, ManifestSnapshot};
use crate::error::Error;

pub(super) const SNAPSHOTS: &str = "run.snapshots";

/// The file, open for appending. It is [removed](SnapshotLog::remove) when the manifest that contains all snapshots has
/// been written.
#[derive(Debug)]
pub struct SnapshotLog(File);

impl SnapshotLog {
    /// Creates the file.
    ///
    /// # Errors
    /// If it cannot be created, or already exists.
    pub fn create(run: &Folder) -> Result<SnapshotLog, Error> {
        run.create_file(SNAPSHOTS).map(SnapshotLog).map_err(Error::io(&run.path_of(SNAPSHOTS)))
    }

    /// Appends snapshots.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn append(&mut self, snapshots: &[ManifestSnapshot]) -> io::Result<()> {
        let mut lines = Vec::new();
        for snapshot in snapshots {
            serde_json::to_writer(&mut lines, snapshot)?;
            lines.push(b'\n');
        }
        self.0.write_all(&lines)
    }

    /// Removes the file, if it exists.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(run: &Folder) -> Result<(), Error> {
        match run.remove_file(SNAPSHOTS) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(&run.path_of(SNAPSHOTS))(error))
            }
            _ => Ok(()),
        }
    }
}

/// The snapshots of a recorder that was killed. The last line may be incomplete.
pub(super) fn read(run: &Folder) -> Result<Vec<ManifestSnapshot>, Error> {
    if !run.has(SNAPSHOTS) {
        return Ok(Vec::new());
    }
    let path = run.path_of(SNAPSHOTS);
    let file = run.open_file(SNAPSHOTS).map_err(Error::io(&path))?;
    let mut snapshots = Vec::new();
    for line in BufReader::new(file.take(MAX_MANIFEST)).split(b'\n') {
        snapshots.extend(serde_json::from_slice(&line.map_err(Error::io(&path))?).ok());
    }
    Ok(snapshots)
}
