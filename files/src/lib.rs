//! Files and folders in places that other users may change.
//!
//! Sigmund runs as root and writes into folders that ordinary users may change: `/tmp`, a home directory, a project. It
//! also reads folders that another user has filled. This crate opens both kinds of folder. It overwrites and removes
//! only what belongs to the caller, and reads only regular files:
//!
//! 1. A [`Folder`] is a descriptor. A name in it is one component, never a path. Renaming the folder, or replacing it
//!    by a symbolic link, has no effect on an open one.
//! 2. A file is created by `openat` with `O_EXCL` and `O_NOFOLLOW`, with mode 0600; a folder by `mkdirat`, with mode
//!    0700. An existing file is opened for writing only to continue it ([`Folder::reopen_file`]): the file and its
//!    folder belong to the caller, and it has no other name.
//! 3. An existing folder is written to only if it belongs to the caller (the effective user, or the [`Owner`] on whose
//!    behalf it runs) and neither its group nor others may write to it. The folders above it may belong to any user:
//!    what is created in `/tmp` or in a user's home still belongs to the caller.
//! 4. A [`Destination`] gets its name when it is complete. A file or folder that already has this name is replaced only
//!    if it belongs to the caller and is of the expected kind. It is removed through descriptors, and links in it are
//!    not followed.
//! 5. Only regular files are read ([`open_regular`], [`Folder::open_file`]). A FIFO, a device or a socket is refused
//!    without being opened, so it cannot block the caller.
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
