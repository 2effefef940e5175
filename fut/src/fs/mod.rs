//! Files, with the names of `std::fs`. A call blocks the user thread, but not its LWP.
//!
//! The kernel cannot report when a call on a regular file would not block. So each call of this module runs on an LWP
//! for blocking calls ([`blocking`]). In addition to the call itself, that costs two switches and a wakeup by the
//! kernel. To reduce this cost, read and write large pieces, for example with [`BufReader`](std::io::BufReader), or
//! make several calls of the standard library in one [`blocking`].
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
        /// The errors of the standard library.
        pub fn $name($($path: impl AsRef<Path>),*) -> io::Result<$result> {
            $(let $path = $path.as_ref();)*
            blocking(|| fs::$name($($path),*))
        }
    )* };
}

calls! {
    /// Like [`std::fs::read`].
    read(path) -> Vec<u8>;
    /// Like [`std::fs::read_to_string`].
    read_to_string(path) -> String;
    /// Like [`std::fs::copy`]; returns the number of bytes.
    copy(from, to) -> u64;
    /// Like [`std::fs::rename`].
    rename(from, to) -> ();
    /// Like [`std::fs::hard_link`].
    hard_link(original, link) -> ();
    /// Like [`std::fs::remove_file`].
    remove_file(path) -> ();
    /// Like [`std::fs::create_dir`].
    create_dir(path) -> ();
    /// Like [`std::fs::create_dir_all`].
    create_dir_all(path) -> ();
    /// Like [`std::fs::remove_dir`].
    remove_dir(path) -> ();
    /// Like [`std::fs::remove_dir_all`].
    remove_dir_all(path) -> ();
    /// Like [`std::fs::canonicalize`].
    canonicalize(path) -> PathBuf;
    /// Like [`std::fs::read_link`].
    read_link(path) -> PathBuf;
    /// Like [`std::fs::metadata`].
    metadata(path) -> fs::Metadata;
    /// Like [`std::fs::symlink_metadata`].
    symlink_metadata(path) -> fs::Metadata;
    /// Like [`std::fs::exists`].
    exists(path) -> bool;
}

/// Like [`std::fs::write`].
///
/// # Errors
/// The errors of the standard library.
pub fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let (path, contents) = (path.as_ref(), contents.as_ref());
    blocking(|| fs::write(path, contents))
}

/// The entries of a folder, all at once, in no particular order.
///
/// # Errors
/// The errors of [`std::fs::read_dir`] and of its entries.
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<fs::DirEntry>> {
    let path = path.as_ref();
    blocking(|| fs::read_dir(path)?.collect())
}
