//! The bytes of an index: a file that is mapped.
//!
//! ```text
//! | arrays, each at a multiple of 8 … | header: JSON | its length: u64 | "sigmund view 3\n\n" |
//! ```
//!
//! It is a cache. It is written under another name, and renamed when it is complete. It may be removed at any time. It
//! is made again if the super-trace or this layout has changed.

// Two unsafe operations: mapping the file, and giving its pages back.
#![allow(unsafe_code)]

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use memmap2::{Mmap, UncheckedAdvice};
use rustix::{fs::OFlags, process::geteuid};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

/// The last bytes of a file. When the layout changes, the number changes.
const MAGIC: &[u8; 16] = b"sigmund view 3\n\n";

/// The position of an array in the file.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Span {
    offset: u64,
    length: u64,
}

impl Span {
    /// Bytes of the array.
    pub(crate) fn length(self) -> usize {
        usize::try_from(self.length).unwrap_or(usize::MAX)
    }
}

/// An index that is being written.
pub(crate) struct Writer {
    sink: Sink,
    offset: u64,
}

/// The destination: the cache, or a file without a name if there is no cache.
enum Sink {
    Named(NamedTempFile, PathBuf),
    Unnamed(File),
}

impl Sink {
    fn file(&self) -> &File {
        match self {
            Sink::Named(file, _) => file.as_file(),
            Sink::Unnamed(file) => file,
        }
    }
}

impl Writer {
    /// An index that will be at `path`. If it cannot be written there, it is made in a temporary file without a name.
    ///
    /// # Errors
    /// If temporary files cannot be created either.
    pub(crate) fn new(path: Option<&Path>) -> io::Result<Writer> {
        let named = path.and_then(|path| {
            let folder = path.parent()?;
            fs::create_dir_all(folder).ok()?;
            Some(Sink::Named(NamedTempFile::new_in(folder).ok()?, path.to_path_buf()))
        });
        let sink = match named {
            Some(named) => named,
            None => Sink::Unnamed(tempfile::tempfile()?),
        };
        Ok(Writer { sink, offset: 0 })
    }

    /// Reserves space for an array of this length.
    pub(crate) fn reserve(&mut self, length: usize) -> Span {
        let span = Span { offset: self.offset, length: length as u64 };
        self.offset += (length as u64).next_multiple_of(8);
        span
    }

    /// Writes a part of an array. It may be called from any thread, in any order.
    ///
    /// # Errors
    /// If it cannot be written, for example because the disk is full.
    pub(crate) fn write(&self, span: Span, at: usize, bytes: &[u8]) -> io::Result<()> {
        debug_assert!(at as u64 + bytes.len() as u64 <= span.length);
        self.sink.file().write_all_at(bytes, span.offset + at as u64)
    }

    /// Writes an array.
    ///
    /// # Errors
    /// Like [`write`](Self::write).
    pub(crate) fn array(&mut self, bytes: &[u8]) -> io::Result<Span> {
        let span = self.reserve(bytes.len());
        self.write(span, 0, bytes)?;
        Ok(span)
    }

    /// Writes the header, gives the file its final name, and maps it.
    ///
    /// # Errors
    /// Like [`write`](Self::write).
    pub(crate) fn finish(self, header: &impl Serialize) -> io::Result<Mapped> {
        let mut end = serde_json::to_vec(header)?;
        let length = end.len() as u64;
        end.extend(length.to_le_bytes());
        end.extend(MAGIC);
        self.sink.file().write_all_at(&end, self.offset)?;
        let file = match self.sink {
            Sink::Named(file, path) => file.persist(path).map_err(|error| error.error)?,
            Sink::Unnamed(file) => file,
        };
        Mapped::of(&file)
    }
}

/// A complete index, mapped.
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// The index at `path`, if that is a regular file of this user that only this user can write to. The check is
    /// needed because the cache may be in a folder that others can write to.
    pub(crate) fn open(path: &Path) -> Option<Mapped> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
        let meta = file.metadata().ok()?;
        let is_own = meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0;
        if meta.is_file() && is_own { Mapped::of(&file).ok() } else { None }
    }

    fn of(file: &File) -> io::Result<Mapped> {
        // Another process of this user that writes to it changes plain numbers, which are read by value and checked before
        // they are used as positions; one that truncates it ends this process with SIGBUS.
        //
        // SAFETY: the map is read-only. Only this user can write to the file (checked in `open`; `Writer` creates it so),
        // and this program does not write to it after `finish`.
        let map = unsafe { Mmap::map(file) }?;
        Ok(Mapped(map))
    }

    /// The header of the file.
    pub(crate) fn header<'m, H: Deserialize<'m>>(&'m self) -> Option<H> {
        let rest = self.0.strip_suffix(MAGIC)?;
        let (rest, length) = rest.split_last_chunk::<8>()?;
        let begin = rest.len().checked_sub(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        serde_json::from_slice(&rest[begin..]).ok()
    }

    /// An array; empty if the file is too short for it.
    pub(crate) fn array(&self, span: Span) -> &[u8] {
        let begin = usize::try_from(span.offset).unwrap_or(usize::MAX);
        let end = begin.saturating_add(usize::try_from(span.length).unwrap_or(usize::MAX));
        self.0.get(begin..end).unwrap_or_default()
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.0.len()
    }

    /// Gives back the pages that were read so far. They no longer count as memory of this process, but the kernel may
    /// keep them in the page cache. Reading such a page again costs a page fault.
    pub(crate) fn give_back(&self) {
        // SAFETY: the map is shared and read-only, so nothing is lost: pages that are read again come from the file
        // (madvise(2), MADV_DONTNEED), with the bytes they had. References into it stay valid.
        let _ = unsafe { self.0.unchecked_advise(UncheckedAdvice::DontNeed) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_given_back_are_read_again() {
        let mut writer = Writer::new(None).unwrap();
        let bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let span = writer.array(&bytes).unwrap();
        let mapped = writer.finish(&"a header").unwrap();
        let before = mapped.array(span);
        assert_eq!(before, bytes);
        mapped.give_back();
        assert_eq!(before, bytes, "through a reference from before, too");
        assert_eq!(mapped.header::<String>().as_deref(), Some("a header"));
    }
}
