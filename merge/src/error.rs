//! Why a merge ends without a super-trace.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a merge ends without a super-trace. What costs only a part of an input is a loss, not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// An input is not what it should be.
    #[error("{}: {place}: expected {expected}, found {found}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: String,
        /// What should have been there.
        expected: String,
        /// What was.
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
        /// Its clock.
        clock: &'static str,
        /// The clock of the others.
        main: &'static str,
        /// What can be done.
        advice: &'static str,
    },
    /// The inputs have no clock in common, and their events cannot be of one recording.
    #[error(
        "{}: its clock is {clock}, no snapshot ties it to {main}, and no offset between the two is possible: LWPs would \
         have recorded events while they were off all CPUs; are these of one recording?", path.display()
    )]
    ClocksContradict {
        /// The file.
        path: PathBuf,
        /// Its clock.
        clock: &'static str,
        /// The clock of the others.
        main: &'static str,
    },
    /// The output is there already.
    #[error("{}: is there already; --force overwrites it", .0.display())]
    OutputExists(PathBuf),
    /// A run whose recorder was killed, in a folder that is not the caller's own.
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
        /// Which.
        path: PathBuf,
        /// Why.
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
