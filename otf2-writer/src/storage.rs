//! Where the files of an archive are created.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// The subdirectory of an archive with a file of events and a file of definitions for each location.
pub(crate) const LOCATIONS: &str = "traces";

/// Creates and reopens the files of one archive.
///
/// [`Directory`] creates them by path in a directory. A program with other requirements (permissions, descriptors
/// instead of paths, no file system) implements this trait and calls [`Archive::create_in`](crate::Archive::create_in).
///
/// Names are relative, with `/` between components: `traces.otf2`, `traces.def`, `traces/17.evt`, `traces/17.def`. Data
/// is appended to files, and sometimes written at an earlier offset (chunk headers); no file is open between two calls
/// of [`Archive`](crate::Archive).
pub trait Storage: fmt::Debug + Send + Sync {
    /// Creates a file for writing, at offset 0.
    ///
    /// # Errors
    /// If it exists, or cannot be created.
    fn create(&self, name: &str) -> io::Result<File>;

    /// Opens a file that [`create`](Self::create) made, for writing; its contents are kept.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn reopen(&self, name: &str) -> io::Result<File>;
}

/// A directory of the file system.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Creates a directory, or uses an existing empty one, and creates `traces` in it. Parent directories are not
    /// created.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is a file with this name, or a directory that is not empty. Other
    /// errors if it cannot be created.
    pub fn create(path: &Path) -> io::Result<Directory> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_empty = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
                if !is_empty {
                    let why = format!("{}: expected a new or empty directory", path.display());
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
                }
            }
            made => made?,
        }
        fs::create_dir(path.join(LOCATIONS))?;
        Ok(Directory { path: path.to_path_buf() })
    }
}

impl Storage for Directory {
    fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(self.path.join(name))
    }

    fn reopen(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path.join(name))
    }
}
