//! Files, with the names of `std::fs`: a call blocks the user thread, and not the LWP.
//!
//! The kernel cannot report when a call on a regular file would not block, so each call of this module runs on an LWP for
//! blocking calls ([`blocking`]): it costs two switches and a wakeup of the kernel more than the
//! call. Read and write large pieces, by [`BufReader`](std::io::BufReader) say, or do several calls of the standard
//! library in one [`blocking`].
//!
//! ```
//! let runtime = fut::Runtime::builder().lwps(1).build()?;
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("greeting");
//! runtime.run(move || {
//!     fut::fs::write(&path, "hello")?;
//!     assert_eq!(fut::fs::read_to_string(&path)?, "hello");
//!     fut::fs::remove_file(&path)
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Outside a runtime, these are the functions of the standard library.

mod file;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::blocking;
pub use file::{File, OpenOptions};

macro_rules! calls {
    ($($(#[$meta:meta])* $name:ident($($path:ident),*) -> $result:ty;)*) => { $(
        $(#[$meta])*
        ///
        /// # Errors
        /// Those of the standard library.
        pub fn $name($($path: impl AsRef<Path>),*) -> io::Result<$result> {
            $(let $path = $path.as_ref();)*
            blocking(|| fs::$name($($path),*))
        }
    )* };
}

calls! {
    /// As [`std::fs::read`].
    read(path) -> Vec<u8>;
    /// As [`std::fs::read_to_string`].
    read_to_string(path) -> String;
    /// As [`std::fs::copy`]; returns the number of bytes.
    copy(from, to) -> u64;
    /// As [`std::fs::rename`].
    rename(from, to) -> ();
    /// As [`std::fs::hard_link`].
    hard_link(original, link) -> ();
    /// As [`std::fs::remove_file`].
    remove_file(path) -> ();
    /// As [`std::fs::create_dir`].
    create_dir(path) -> ();
    /// As [`std::fs::create_dir_all`].
    create_dir_all(path) -> ();
    /// As [`std::fs::remove_dir`].
    remove_dir(path) -> ();
    /// As [`std::fs::remove_dir_all`].
    remove_dir_all(path) -> ();
    /// As [`std::fs::canonicalize`].
    canonicalize(path) -> PathBuf;
    /// As [`std::fs::read_link`].
    read_link(path) -> PathBuf;
    /// As [`std::fs::metadata`].
    metadata(path) -> fs::Metadata;
    /// As [`std::fs::symlink_metadata`].
    symlink_metadata(path) -> fs::Metadata;
    /// As [`std::fs::exists`].
    exists(path) -> bool;
}

/// As [`std::fs::write`].
///
/// # Errors
/// Those of the standard library.
pub fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let (path, contents) = (path.as_ref(), contents.as_ref());
    blocking(|| fs::write(path, contents))
}

/// The entries of a folder, all at once, in no particular order.
///
/// # Errors
/// Those of [`std::fs::read_dir`] and of its entries.
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<fs::DirEntry>> {
    let path = path.as_ref();
    blocking(|| fs::read_dir(path)?.collect())
}
