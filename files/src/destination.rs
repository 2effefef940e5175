//! Where an output goes. A file or a folder gets its name when it is whole: until then it has another one beside it,
//! and if something fails nothing stays.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::FileType;

use crate::folder::{Folder, Identity, create_parents, free_name, is_folder};
use crate::kind::kind_name;
use crate::owner::{Owner, check_owner};

/// What an output may take the place of.
#[derive(Clone, Copy, Debug)]
pub struct Replaceable {
    /// For messages: `a super-trace`.
    pub expected: &'static str,
    /// Whether a file or a symbolic link may be. The link is removed, not what it points to.
    pub files: bool,
    /// Whether this folder may be.
    pub folder: fn(&Folder) -> bool,
}

/// Something that is being written.
#[derive(Debug)]
pub struct Destination {
    parent: Folder,
    name: OsString,
    partial: OsString,
    /// What was made, held open: so nothing else gets its inode's number when it is removed.
    made: Option<OwnedFd>,
    replaceable: Option<Replaceable>,
}

impl Destination {
    /// Begins something that will be at `target`. What is there already, and may be replaced, stays until
    /// [`finish`](Self::finish). `owner` gets what is made.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when something is there and nothing may be replaced;
    /// [`io::ErrorKind::PermissionDenied`] if it belongs to another user; [`io::ErrorKind::InvalidInput`] when it is
    /// of another kind than what may be replaced; [`io::ErrorKind::NotFound`] when there is no such folder to put it in.
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

    /// The same, where folders above `target` may be missing: they are made.
    ///
    /// # Errors
    /// As those of [`new`](Self::new).
    pub fn with_parents(
        target: &Path,
        replaceable: Option<Replaceable>,
        owner: Option<Owner>,
    ) -> io::Result<Destination> {
        create_parents(target)?;
        Destination::new(target, replaceable, owner)
    }

    /// Makes it a file, and gives that.
    ///
    /// # Errors
    /// When it cannot be made, or was made before.
    pub fn file(&mut self) -> io::Result<File> {
        let file = self.parent.create_file(&self.partial)?;
        self.made = Some(file.as_fd().try_clone_to_owned()?);
        Ok(file)
    }

    /// Makes it a folder, and gives that.
    ///
    /// # Errors
    /// When it cannot be made, or was made before.
    pub fn folder(&mut self) -> io::Result<Folder> {
        let folder = self.parent.create_folder(&self.partial)?;
        self.made = Some(folder.as_fd().try_clone_to_owned()?);
        Ok(folder)
    }

    /// It is whole: gives it its name. What had that name is removed.
    ///
    /// # Errors
    /// When it cannot be renamed, or another process has replaced it; what had the name is still there then.
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
                    // The old one is better than none; if this fails too, it is still there under the other name.
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

    /// Whether what was made has still the name it was made with.
    fn is_there(&self) -> bool {
        let Some(made) = &self.made else { return false };
        let found = self.parent.identity_of(&self.partial);
        found.is_ok_and(|found| Identity::of_file(made).is_ok_and(|made| made == found))
    }

    /// What has its name now and will be replaced, if anything has it.
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
            // That this fails, nobody can mend here.
            let _ = self.parent.remove_tree(&self.partial);
        }
    }
}

fn changed() -> io::Error {
    io::Error::other("somebody has put something else in its place while it was written")
}
