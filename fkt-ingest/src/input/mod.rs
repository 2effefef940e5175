//! The bytes of a trace: a file mapped into memory, or bytes that are there already.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::{Mmap, UncheckedAdvice};

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

    /// Bytes `from..to` are not needed soon: a mapped file need not keep them in this process's memory. They can be read
    /// again at any time.
    pub(crate) fn release(&self, from: u64, to: u64) {
        let Bytes::Mapped(map) = &*self.bytes else { return };
        let (from, to) = (from as usize, to.min(map.len() as u64) as usize);
        if from < to {
            // SAFETY: the map is of a file, private, and never written to. So the system forgets no byte of it: who
            // reads one of these pages again gets it from the file, as at the first time.
            let advised = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, from, to - from) };
            // Advice that is not taken costs memory, nothing else.
            let _ = advised;
        }
    }

    /// The file's name without its folder, as messages write it.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }
}
