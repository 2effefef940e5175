//! Files and folders in places where others may write, too.
//!
//! Sigmund runs as root and writes into folders that ordinary users may change: `/tmp`, a home directory, a project. It
//! also reads folders that another user has filled. This crate opens both, so that nothing is overwritten or removed
//! that does not belong to the caller, and nothing is read that is not an ordinary file:
//!
//! 1. A [`Folder`] is a descriptor. A name in it is one component, never a path. Whoever renames the folder meanwhile,
//!    or puts a symbolic link in its place, changes nothing.
//! 2. A file is made by `openat` with `O_EXCL` and `O_NOFOLLOW`, with mode 0600; a folder by `mkdirat`, with mode 0700.
//!    A file that exists is opened for writing only to continue with it ([`Folder::reopen_file`]): it and its folder are the
//!    caller's own, and it has no other name.
//! 3. A folder that exists is written to only if it belongs to the caller (the effective user, or the [`Owner`] on whose
//!    behalf it runs) and neither its group nor others may write to it. The folders above it may be anybody's: what is
//!    made in `/tmp` or in a user's home is the caller's own all the same.
//! 4. A [`Destination`] gets its name when it is whole. What had that name is put away only if it belongs to the caller
//!    and is of the kind that is expected; it is removed through descriptors, and links in it are not followed.
//! 5. What is read is a regular file ([`open_regular`], [`Folder::open_file`]). A FIFO, a device or a socket is refused
//!    without being opened, so it cannot make us wait.
//!
//! ```
//! # let temporary = tempfile::tempdir()?;
//! # let path = temporary.path().join("run");
//! use std::io::Write;
//! use sigmund_files::Folder;
//!
//! let folder = Folder::create_or_take_empty(&path, None)?;
//! folder.create_file("notes")?.write_all(b"mine")?;
//! assert_eq!(folder.names()?, ["notes"]);
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

mod destination;
mod folder;
mod kind;
mod owner;
mod regular;

pub use destination::{Destination, Replaceable};
pub use folder::Folder;
pub use owner::Owner;
pub use regular::open_regular;
