//! The bytes of a trace: a file mapped into memory, or bytes in memory.

mod window;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::{Mmap, UncheckedAdvice};
use sigmund_files::{Folder, open_regular};

pub(crate) use self::window::Window;
use crate::error::Error;

/// The bytes of a file, shared by all streams that read from it, and its name for messages.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    path: Arc<Path>,
    bytes: Arc<Bytes>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap, File),
    Owned(Vec<u8>),
}

impl Input {
    /// Maps a regular file. Anything else is refused without waiting. The bytes are not checked.
    pub(crate) fn open(path: &Path) -> Result<Input, Error> {
        Input::of_file(path, open_regular(path).map_err(|e| Error::io(path, e))?)
    }

    /// Maps a file in a folder; a symbolic link is refused.
    pub(crate) fn open_in(folder: &Folder, name: &OsStr) -> Result<Input, Error> {
        let path = folder.path_of(name);
        let file = folder.open_file(name).map_err(|e| Error::io(&path, e))?;
        Input::of_file(&path, file)
    }

    /// Maps an open regular file; `path` is used in messages only.
    pub(crate) fn of_file(path: &Path, file: File) -> Result<Input, Error> {
        // SAFETY: the map is read-only and private. Another process may still write to the file or truncate it. Changed
        // bytes are harmless: they are plain numbers, checked each time they are used, and no reference into the map is
        // kept as `str` or as a parsed type. A file truncated while it is read ends this process with SIGBUS; a caller
        // that opens a file that is being written accepts that (documented at `open`).
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(path, e))?;
        Ok(Input { path: PathBuf::from(path).into(), bytes: Arc::new(Bytes::Mapped(map, file)) })
    }

    /// Treats bytes in memory as a file of this name.
    pub(crate) fn from_bytes(name: &Path, bytes: Vec<u8>) -> Input {
        Input { path: PathBuf::from(name).into(), bytes: Arc::new(Bytes::Owned(bytes)) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &*self.bytes {
            Bytes::Mapped(map, _) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.bytes().len() as u64
    }

    /// Fills `buffer` with the bytes from `at` on, and returns their number. Unlike mapped bytes, they do not stay in
    /// this process's memory.
    pub(crate) fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Bytes::Mapped(_, file) = &*self.bytes else {
            let from = usize::try_from(at).ok().and_then(|at| self.bytes().get(at..)).unwrap_or_default();
            let len = from.len().min(buffer.len());
            buffer[..len].copy_from_slice(&from[..len]);
            return Ok(len);
        };
        let mut filled = 0;
        while filled < buffer.len() {
            match file.read_at(&mut buffer[filled..], at.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(len) => filled += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Releases the memory of bytes `from..to` of a mapped file. They can still be read again.
    pub(crate) fn release(&self, from: u64, to: u64) {
        let Bytes::Mapped(map, _) = &*self.bytes else { return };
        let (from, to) = (from as usize, to.min(map.len() as u64) as usize);
        if from < to {
            // SAFETY: the map is of a file, private, and never written to. So no byte is lost: the next access to one
            // of these pages reads it from the file again.
            let advised = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, from, to - from) };
            // If the advice is refused, only memory is lost.
            let _ = advised;
        }
    }

    /// The file's name without its folder, for messages.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }
}
