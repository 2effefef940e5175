//! Opens input files: regular files only.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};

use crate::kind::kind_name;

/// O_NONBLOCK, because another process could put a FIFO here between `stat` and `open`. Opening a FIFO would block
/// until it has a writer.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens a regular file for reading; symbolic links to it are followed. It never blocks.
///
/// # Errors
/// When it does not exist, or cannot be read; [`io::ErrorKind::InvalidInput`] for a folder, a FIFO, a device or a
/// socket, which is not opened.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Checked before opening, because opening some devices has side effects.
    check_regular(FileType::from_raw_mode(statat(CWD, path, AtFlags::empty())?.st_mode))?;
    let file = openat(CWD, path, READ, Mode::empty())?;
    check_regular(FileType::from_raw_mode(fstat(&file)?.st_mode))?;
    Ok(file.into())
}

pub(crate) fn check_regular(found: FileType) -> io::Result<()> {
    if found == FileType::RegularFile {
        return Ok(());
    }
    let message = format!("expected a regular file, found {}", kind_name(found));
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
