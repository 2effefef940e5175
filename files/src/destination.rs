//! The destination of an output. The file or folder gets its final name only when it is complete. Until then it has a
//! temporary name in the same folder. On failure it is removed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::FileType;

use crate::folder::{Folder, Identity, create_parents, free_name, is_folder};
use crate::kind::kind_name;
use crate::owner::{Owner, check_owner};

/// What an output may replace.
#[derive(Clone, Copy, Debug)]
pub struct Replaceable {
    /// The expected kind, for messages: `a super-trace`.
    pub expected: &'static str,
    /// Whether it may replace a file or a symbolic link. The link is removed, not its target.
    pub files: bool,
    /// Whether it may replace this folder.
    pub folder: fn(&Folder) -> bool,
}

/// An output that is being written.
#[derive(Debug)]
pub struct Destination {
    parent: Folder,
    name: OsString,
    partial: OsString,
    /// The file or folder. It is held open so that the number of its inode is not reused if it is removed.
    made: Option<OwnedFd>,
    replaceable: Option<Replaceable>,
}

impl Destination {
    /// Begins an output at `target`. An existing target that may be replaced is kept until [`finish`](Self::finish).
    /// `owner` becomes the owner of the output.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when the target exists and nothing may be replaced;
    /// [`io::ErrorKind::PermissionDenied`] when it belongs to another user; [`io::ErrorKind::InvalidInput`] when it is
    /// of a kind that may not be replaced; [`io::ErrorKind::NotFound`] when its parent folder does not exist.
    pub fn new(
        target: &Path,
        replaceable: Option<Replaceable>,
        owner: Option<Owner>,
    ) -> io::Result<Destination> {
        let (parent, name) = Folder::parent_of(target, owner)?;
        let partial = free_name(&name, "partial");
        let destination = Destination { parent, name, partial, made: None, replaceable };
        destination.replaced()?;
        Ok(destination)
    }

    /// As [`new`](Self::new), but creates missing folders above `target`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_parents(
        target: &Path,
        replaceable: Option<Replaceable>,
        owner: Option<Owner>,
    ) -> io::Result<Destination> {
        create_parents(target)?;
        Destination::new(target, replaceable, owner)
    }

    /// Creates the output as a file, and returns it.
    ///
    /// # Errors
    /// When it cannot be created, or was already created.
    pub fn file(&mut self) -> io::Result<File> {
        let file = self.parent.create_file(&self.partial)?;
        self.made = Some(file.as_fd().try_clone_to_owned()?);
        Ok(file)
    }

    /// Creates the output as a folder, and returns it.
    ///
    /// # Errors
    /// When it cannot be created, or was already created.
    pub fn folder(&mut self) -> io::Result<Folder> {
        let folder = self.parent.create_folder(&self.partial)?;
        self.made = Some(folder.as_fd().try_clone_to_owned()?);
        Ok(folder)
    }

    /// Completes the output: gives it its final name, and removes the file or folder that had this name.
    ///
    /// # Errors
    /// When it cannot be renamed, or another process has replaced it. The file or folder that had the name is then
    /// kept.
    pub fn finish(mut self) -> io::Result<()> {
        if !self.is_there() {
            return Err(changed());
        }
        match self.replaced()? {
            None => self.parent.rename(&self.partial, &self.name)?,
            Some(old) => {
                let before = free_name(&self.name, "replaced");
                self.parent.rename(&self.name, &before)?;
                let renamed = match self.parent.identity_of(&before)? == old {
                    true => self.parent.rename(&self.partial, &self.name),
                    false => Err(changed()),
                };
                if let Err(error) = renamed {
                    // The old output is better than none. If this renaming fails too, the old output still exists under
                    // its temporary name.
                    let _ = self.parent.rename(&before, &self.name);
                    return Err(error);
                }
                self.made = None;
                self.parent.remove_tree(&before)?;
            }
        }
        self.made = None;
        Ok(())
    }

    /// Whether its temporary name still refers to it.
    fn is_there(&self) -> bool {
        let Some(made) = &self.made else { return false };
        let found = self.parent.identity_of(&self.partial);
        found.is_ok_and(|found| Identity::of_file(made).is_ok_and(|made| made == found))
    }

    /// What will be replaced: the file or folder that now has the name, if there is one.
    fn replaced(&self) -> io::Result<Option<Identity>> {
        let found = match self.parent.stat(&self.name) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(Replaceable { expected, files, folder }) = self.replaceable else {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "exists already; --force overwrites it",
            ));
        };
        check_owner(found.st_uid, self.parent.owner())?;
        let file_type = FileType::from_raw_mode(found.st_mode);
        let may_be = match file_type {
            FileType::RegularFile | FileType::Symlink => files,
            FileType::Directory => {
                let inner = self.parent.open_folder(&self.name)?;
                inner.identity()? == Identity::of(&found) && folder(&inner)
            }
            _ => false,
        };
        if may_be {
            return Ok(Some(Identity::of(&found)));
        }
        let other = if is_folder(&found) { "another folder" } else { kind_name(file_type) };
        let message = format!("expected {expected} to overwrite, found {other}");
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if self.is_there() {
            // A failure cannot be handled here.
            let _ = self.parent.remove_tree(&self.partial);
        }
    }
}

fn changed() -> io::Error {
    io::Error::other("another process replaced it while it was written")
}
