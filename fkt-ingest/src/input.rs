//! The bytes of a trace: a file mapped into memory, or bytes that are there already.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use crate::error::Error;

/// The bytes of a file, shared by every stream that reads from it, and its name for messages.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    path: Arc<Path>,
    bytes: Arc<Bytes>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Input {
    /// Maps a file. Its bytes are not looked at.
    pub(crate) fn open(path: &Path) -> Result<Input, Error> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        // SAFETY: the map is read-only and private. Another process may still write to the file or cut it.
        // Changed bytes do no harm: they are plain numbers, checked each time they are used, and no reference
        // into the map is kept as `str` or as a parsed type. A file cut while it is read kills this process
        // with SIGBUS; who opens a file that is being written accepts that (documented at `open`).
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(path, e))?;
        Ok(Input { path: PathBuf::from(path).into(), bytes: Arc::new(Bytes::Mapped(map)) })
    }

    /// Bytes that stand for a file of this name.
    pub(crate) fn from_bytes(name: &Path, bytes: Vec<u8>) -> Input {
        Input { path: PathBuf::from(name).into(), bytes: Arc::new(Bytes::Owned(bytes)) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &*self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.bytes().len() as u64
    }

    /// The file's name without its folder, as messages write it.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }
}
