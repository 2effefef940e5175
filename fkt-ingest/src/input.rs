//! A file, mapped into memory and shared by every stream that reads from it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use crate::error::Error;

/// The bytes of a file, and its name for messages.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    path: Arc<Path>,
    map: Arc<Mmap>,
}

impl Input {
    /// Maps a file. Its bytes are not looked at.
    pub(crate) fn open(path: &Path) -> Result<Input, Error> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        // SAFETY: the map is read-only and private. Another process may still write to the file or cut it.
        // Changed bytes do no harm: they are plain numbers, checked each time they are used, and no reference
        // into the map is kept as `str` or as a parsed type. A file cut while it is read kills this process
        // with SIGBUS; who opens a file that is being written accepts that (documented at `TraceDat::open`).
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(path, e))?;
        Ok(Input { path: PathBuf::from(path).into(), map: Arc::new(map) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    pub(crate) fn len(&self) -> u64 {
        self.map.len() as u64
    }

    /// The file's name without its folder, as messages write it.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }
}
