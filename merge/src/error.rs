//! Why a merge ends without a super-trace.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a merge ends without a super-trace. Damage that affects only a part of an input is a loss, not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// An input does not have the expected contents.
    #[error("{}: {place}: expected {expected}, found {found}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        place: String,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A user trace cannot be opened.
    #[error(transparent)]
    UserTrace(#[from] fut::trace::TraceError),
    /// A kernel trace cannot be opened.
    #[error(transparent)]
    KernelTrace(#[from] fkt_ingest::Error),
    /// The inputs have no clock in common.
    #[error("{}: its clock is {clock}, and there is no snapshot that ties it to {main}: {advice}", path.display())]
    NoCommonClock {
        /// The file.
        path: PathBuf,
        /// The clock of the file.
        clock: &'static str,
        /// The clock of the other inputs.
        main: &'static str,
        /// What can be done.
        advice: &'static str,
    },
    /// The inputs have no clock in common, and their events cannot belong to one recording.
    #[error(
        "{}: its clock is {clock}, no snapshot ties it to {main}, and no offset between the two is possible: LWPs would \
         have recorded events while they were off all CPUs; are these of one recording?", path.display()
    )]
    ClocksContradict {
        /// The file.
        path: PathBuf,
        /// The clock of the file.
        clock: &'static str,
        /// The clock of the other inputs.
        main: &'static str,
    },
    /// The output already exists.
    #[error("{}: is there already; --force overwrites it", .0.display())]
    OutputExists(PathBuf),
    /// A run whose recorder was killed, in a folder that does not belong to the caller.
    #[error("{}: its recorder was killed, or had no room on the disk, and finishing it writes into the folder: {}", .0.display(), .1)]
    Unfinished(PathBuf, io::Error),
    /// A run that is being recorded.
    #[error("{}: is being recorded; merge it when that has ended", .0.display())]
    StillRecording(PathBuf),
    /// The merge was told to stop.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// A Parquet file cannot be written.
    #[error("{}: {error}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The error.
        error: parquet::errors::ParquetError,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |error| Error::Io { path: path.to_path_buf(), error }
    }

    pub(crate) fn bad(path: &Path, place: &str, expected: &str, found: impl Into<String>) -> Error {
        Error::Bad {
            path: path.to_path_buf(),
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
        }
    }
}
