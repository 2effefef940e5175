//! An open file.

use std::{
    fs,
    io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write},
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use crate::blocking;

/// An open file, like [`std::fs::File`].
#[derive(Debug)]
pub struct File(fs::File);

/// How a file is opened, like [`std::fs::OpenOptions`].
#[derive(Clone, Debug)]
pub struct OpenOptions(fs::OpenOptions);

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

impl From<fs::OpenOptions> for OpenOptions {
    fn from(options: fs::OpenOptions) -> OpenOptions {
        OpenOptions(options)
    }
}

macro_rules! options {
    ($($name:ident),*) => {
        impl OpenOptions {
            $(
                #[doc = concat!("As [`std::fs::OpenOptions::", stringify!($name), "`].")]
                pub fn $name(&mut self, yes: bool) -> &mut OpenOptions {
                    self.0.$name(yes);
                    self
                }
            )*
        }
    };
}

options!(read, write, append, truncate, create, create_new);

impl OpenOptions {
    /// Options that allow nothing.
    pub fn new() -> OpenOptions {
        OpenOptions(fs::OpenOptions::new())
    }

    /// Opens the file.
    ///
    /// # Errors
    /// The errors of the standard library.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref();
        blocking(|| self.0.open(path)).map(File)
    }
}

impl From<fs::File> for File {
    fn from(file: fs::File) -> File {
        File(file)
    }
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// The errors of the standard library.
    pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().read(true).open(path)
    }

    /// Opens a file for writing. Creates it, or empties it if it exists.
    ///
    /// # Errors
    /// The errors of the standard library.
    pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).open(path)
    }

    /// The file of the standard library, for calls that do not block.
    pub fn as_std(&self) -> &fs::File {
        &self.0
    }

    /// Like `as_std`, but returns the file itself.
    pub fn into_std(self) -> fs::File {
        self.0
    }

    /// Waits until the contents and the metadata of the file are on the disk.
    ///
    /// # Errors
    /// The errors of the standard library.
    pub fn sync_all(&self) -> io::Result<()> {
        blocking(|| self.0.sync_all())
    }

    /// Waits until the contents of the file are on the disk.
    ///
    /// # Errors
    /// The errors of the standard library.
    pub fn sync_data(&self) -> io::Result<()> {
        blocking(|| self.0.sync_data())
    }

    /// Changes the length of the file.
    ///
    /// # Errors
    /// The errors of the standard library.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        blocking(|| self.0.set_len(len))
    }

    /// The metadata of the file.
    ///
    /// # Errors
    /// The errors of the standard library.
    pub fn metadata(&self) -> io::Result<fs::Metadata> {
        blocking(|| self.0.metadata())
    }

    /// Waits for an exclusive lock of the file (`flock(2)`).
    ///
    /// # Errors
    /// The errors of the standard library.
    pub fn lock(&self) -> io::Result<()> {
        blocking(|| self.0.lock())
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// The errors of the standard library.
    pub fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

impl Read for &File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        blocking(|| (&self.0).read(buf))
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        blocking(|| (&self.0).read_vectored(bufs))
    }

    fn read_to_end(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        blocking(|| (&self.0).read_to_end(buf))
    }

    fn read_to_string(&mut self, buf: &mut String) -> io::Result<usize> {
        blocking(|| (&self.0).read_to_string(buf))
    }
}

impl Write for &File {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        blocking(|| (&self.0).write(buf))
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        blocking(|| (&self.0).write_vectored(bufs))
    }

    fn write_all(&mut self, buf: &[u8]) -> io::Result<()> {
        blocking(|| (&self.0).write_all(buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // Seeking only changes a number in the kernel. But on a network, the end of a file may have to be requested
        // from the server.
        match to {
            SeekFrom::End(_) => blocking(|| (&self.0).seek(to)),
            SeekFrom::Start(_) | SeekFrom::Current(_) => (&self.0).seek(to),
        }
    }
}

impl Read for File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(bufs)
    }

    fn read_to_end(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        (&*self).read_to_end(buf)
    }

    fn read_to_string(&mut self, buf: &mut String) -> io::Result<usize> {
        (&*self).read_to_string(buf)
    }
}

impl Write for File {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self).write(buf)
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(bufs)
    }

    fn write_all(&mut self, buf: &[u8]) -> io::Result<()> {
        (&*self).write_all(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
