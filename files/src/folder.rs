//! A folder, opened by descriptor, and operations on names in it.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, fchmod, flock, fstat,
    fsync, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::kind::kind_name;
use crate::owner::{Owner, check_owner};
use crate::regular::{READ, check_regular};

const OPEN_FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const FOLDER_MODE: Mode = Mode::RWXU;
/// Nesting depth to which [`Folder::remove_tree`] removes folders; ours have three levels.
const MOST_LEVELS: u32 = 16;

/// An open folder. Names are looked up in this folder, even if its path now leads to another.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
    owner: Option<Owner>,
}

/// The identity of a file or folder, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Folder {
    /// Opens a folder for reading; it may belong to any user. Symbolic links to it are followed.
    ///
    /// # Errors
    /// When it does not exist, or may not be read.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let descriptor = openat(CWD, path, OPEN_FOLDER, Mode::empty())?;
        Ok(Folder { descriptor, path: path.to_path_buf(), owner: None })
    }

    /// Opens a folder that belongs to the caller, for writing. A symbolic link is refused.
    ///
    /// # Errors
    /// When it does not exist; [`io::ErrorKind::PermissionDenied`] when it belongs to another user or others may write
    /// to it.
    pub fn open_own(path: &Path, owner: Option<Owner>) -> io::Result<Folder> {
        // With a slash at the end of the path, a link would be followed.
        let path: &Path = path.components().as_path();
        let opened = openat(CWD, path, OPEN_FOLDER | OFlags::NOFOLLOW, Mode::empty());
        let descriptor = opened.map_err(|error| match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if !is_folder(&found) => {
                let found = kind_name(FileType::from_raw_mode(found.st_mode));
                let message = format!("expected a folder, found {found}");
                io::Error::new(io::ErrorKind::NotADirectory, message)
            }
            _ => error.into(),
        })?;
        let folder = Folder { descriptor, path: path.to_path_buf(), owner };
        folder.check_own()?;
        Ok(folder)
    }

    /// Creates a folder, and missing folders above it; or takes an existing folder, if it is empty and belongs to the
    /// caller. Its mode is then 0700. `owner`, if given, becomes its owner.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when it is not empty; those of [`open_own`](Folder::open_own); and when it
    /// cannot be created.
    pub fn create_or_take_empty(path: &Path, owner: Option<Owner>) -> io::Result<Folder> {
        match Folder::open_own(path, owner) {
            Ok(folder) => {
                if !folder.names()?.is_empty() {
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the folder is not empty"));
                }
                folder.make_private()?;
                Ok(folder)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_parents(path)?;
                let (parent, name) = Folder::parent_of(path, owner)?;
                parent.create_folder(&name)
            }
            Err(error) => Err(error),
        }
    }

    /// The folder that contains `path`, or will contain it, and the last component of `path`. The folder may belong to
    /// any user: files created in it belong to the caller, or to `owner`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when the folder does not exist; [`io::ErrorKind::InvalidInput`] when the path does
    /// not end in a name.
    pub fn parent_of(path: &Path, owner: Option<Owner>) -> io::Result<(Folder, OsString)> {
        let Some(name) = path.file_name() else {
            let message = format!("expected a path that ends in a name, found {}", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        let parent = parent(path);
        match Folder::open(parent) {
            Ok(folder) => Ok((Folder { owner, ..folder }, name.to_os_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("there is no folder {}", parent.display());
                Err(io::Error::new(io::ErrorKind::NotFound, message))
            }
            Err(error) => Err(error),
        }
    }

    /// The path by which it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a name in it, for messages.
    pub fn path_of(&self, name: impl AsRef<OsStr>) -> PathBuf {
        // For a file in the current folder, the name is enough.
        if self.path.as_os_str() == "." { name.as_ref().into() } else { self.path.join(name.as_ref()) }
    }

    /// Whether the path by which it was opened still leads to this folder. `false` if it leads to another folder, or to
    /// none.
    pub fn has_its_path(&self) -> bool {
        let path = Folder::open(&self.path).and_then(|folder| folder.identity());
        path.is_ok_and(|found| self.identity().is_ok_and(|own| own == found))
    }

    /// The owner of new files.
    pub fn owner(&self) -> Option<Owner> {
        self.owner
    }

    /// Creates a file, for reading and writing; mode 0600.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when the name exists, even as a dangling symbolic link.
    pub fn create_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = component(name.as_ref())?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.descriptor, name, flags, FILE_MODE)?;
        // Independent of the umask and of the folder's default access list.
        fchmod(&file, FILE_MODE)?;
        if let Some(owner) = self.owner {
            owner.give(&file)?;
        }
        Ok(file.into())
    }

    /// Creates a folder in it; mode 0700.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when the name exists.
    pub fn create_folder(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        let name = component(name.as_ref())?;
        mkdirat(&self.descriptor, name, FOLDER_MODE)?;
        let descriptor = openat(&self.descriptor, name, OPEN_FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        let folder = Folder { descriptor, path: self.path.join(name), owner: self.owner };
        // If other users may rename in this folder, `name` may already be another folder.
        folder.check_own()?;
        folder.make_private()?;
        Ok(folder)
    }

    /// Opens for writing a file that this or another process has created here with [`create_file`](Self::create_file).
    /// Use it only in folders that belong to the caller.
    ///
    /// # Errors
    /// Those of [`open_file`](Self::open_file); and when it belongs to another user or has a second name.
    pub fn reopen_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = component(name.as_ref())?;
        self.check_own()?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        check_regular(FileType::from_raw_mode(self.stat(name)?.st_mode))?;
        let file = openat(&self.descriptor, name, flags, Mode::empty())?;
        let found = fstat(&file)?;
        check_regular(FileType::from_raw_mode(found.st_mode))?;
        check_owner(found.st_uid, self.owner)?;
        if found.st_nlink != 1 {
            let message = format!("expected a file with one name, found one with {}", found.st_nlink);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(file.into())
    }

    /// Opens a regular file in it for reading. It never blocks.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] when `name` is not a single plain component (`../x`, `/etc/passwd`), or is the
    /// name of a symbolic link, a folder, a FIFO, a device or a socket.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = component(name.as_ref())?;
        check_regular(FileType::from_raw_mode(self.stat(name)?.st_mode))?;
        let file = openat(&self.descriptor, name, READ | OFlags::NOFOLLOW, Mode::empty())?;
        check_regular(FileType::from_raw_mode(fstat(&file)?.st_mode))?;
        Ok(file.into())
    }

    /// Opens a folder in it for reading; symbolic links are refused.
    ///
    /// # Errors
    /// When it does not exist, or `name` is not a single plain component.
    pub fn open_folder(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        let name = component(name.as_ref())?;
        let descriptor = openat(&self.descriptor, name, OPEN_FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Folder { descriptor, path: self.path.join(name), owner: self.owner })
    }

    /// Whether the name exists, even as a dangling symbolic link.
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        component(name.as_ref()).is_ok_and(|name| self.stat(name).is_ok())
    }

    /// Whether the name is that of a folder; a symbolic link to a folder does not count.
    pub fn has_folder(&self, name: impl AsRef<OsStr>) -> bool {
        component(name.as_ref()).and_then(|name| self.stat(name)).is_ok_and(|found| is_folder(&found))
    }

    /// The names in it, sorted.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_os_string());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Renames a file or folder to a name that does not exist.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when the new name exists.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (from, to) = (component(from.as_ref())?, component(to.as_ref())?);
        match renameat_with(&self.descriptor, from, &self.descriptor, to, RenameFlags::NOREPLACE) {
            // Not every file system supports the check.
            Err(Errno::INVAL | Errno::NOSYS) if self.stat(to).is_ok() => {
                Err(io::ErrorKind::AlreadyExists.into())
            }
            Err(Errno::INVAL | Errno::NOSYS) => Ok(renameat(&self.descriptor, from, &self.descriptor, to)?),
            renamed => Ok(renamed?),
        }
    }

    /// Renames a file in it, replacing the file with the new name. Use it only in folders that belong to the caller.
    ///
    /// # Errors
    /// When the folder does not belong to the caller.
    pub fn replace(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (from, to) = (component(from.as_ref())?, component(to.as_ref())?);
        self.check_own()?;
        Ok(renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Writes a file completely. An existing file of this name is kept until the new one is complete. Use it only in
    /// folders that belong to the caller.
    ///
    /// # Errors
    /// When it cannot be written; no part of the new file is left.
    pub fn write_file(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> io::Result<()> {
        let name = component(name.as_ref())?;
        let partial = free_name(name, "partial");
        let mut file = self.create_file(&partial)?;
        let written = io::Write::write_all(&mut file, bytes).and_then(|()| self.replace(&partial, name));
        if written.is_err() {
            // The first error is the one to report.
            let _ = self.remove_file(&partial);
        }
        written
    }

    /// Removes a name other than a folder's.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, component(name.as_ref())?, AtFlags::empty())?)
    }

    /// Removes a file, or a folder with its content. Symbolic links are removed, not followed.
    ///
    /// # Errors
    /// When a part of it cannot be removed, or folders are nested deeper than 16 levels.
    pub fn remove_tree(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        remove_tree(self.descriptor.as_fd(), component(name.as_ref())?, MOST_LEVELS)
    }

    /// Removes this folder with its content, if it still has its name.
    ///
    /// # Errors
    /// Those of [`remove_tree`](Self::remove_tree).
    pub fn remove(self) -> io::Result<()> {
        for inside in self.names()? {
            self.remove_tree(inside)?;
        }
        let (parent, name) = Folder::parent_of(&self.path, None)?;
        if parent.identity_of(&name)? == self.identity()? {
            unlinkat(&parent.descriptor, &name, AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }

    /// Locks the folder for as long as it is open. Returns `false` if another process has locked it. The kernel
    /// releases the lock when the process ends.
    pub fn lock(&self) -> bool {
        // On file systems without locks on folders, it always succeeds.
        flock(&self.descriptor, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
    }

    /// Releases the lock.
    pub fn unlock(&self) {
        // If it was not locked, nothing has to be released.
        let _ = flock(&self.descriptor, FlockOperation::Unlock);
    }

    /// Waits until its entries are on the disk.
    ///
    /// # Errors
    /// When they could not be written.
    pub fn sync(&self) -> io::Result<()> {
        Ok(fsync(&self.descriptor)?)
    }

    /// Checks rule 3 of this crate: the folder belongs to the caller, and no other user may write to it.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] if not, with the owner or the mode that was found.
    pub fn check_own(&self) -> io::Result<()> {
        let found = fstat(&self.descriptor)?;
        check_owner(found.st_uid, self.owner)?;
        let mode = found.st_mode & 0o7777;
        if mode & 0o022 == 0 {
            return Ok(());
        }
        let message = format!("its group or others may write to it (mode {mode:04o}): chmod go-w");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    fn make_private(&self) -> io::Result<()> {
        fchmod(&self.descriptor, FOLDER_MODE)?;
        self.owner.map_or(Ok(()), |owner| owner.give(&self.descriptor))
    }

    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    pub(crate) fn identity_of(&self, name: &OsStr) -> io::Result<Identity> {
        Ok(Identity::of(&self.stat(name)?))
    }

    pub(crate) fn identity(&self) -> io::Result<Identity> {
        Identity::of_file(&self.descriptor)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Identity {
    pub(crate) fn of(found: &Stat) -> Identity {
        Identity { device: found.st_dev, inode: found.st_ino }
    }

    pub(crate) fn of_file(file: impl AsFd) -> io::Result<Identity> {
        Ok(Identity::of(&fstat(file)?))
    }
}

pub(crate) fn is_folder(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

/// A name in the same folder that another user cannot predict.
pub(crate) fn free_name(name: &OsStr, what: &str) -> OsString {
    let mut free = name.to_os_string();
    free.push(format!(".{what}-{:016x}", RandomState::new().hash_one(std::process::id())));
    free
}

/// Creates missing folders above `path`.
pub(crate) fn create_parents(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(parent(path))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The name, if it is a single plain component of a path.
fn component(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') || bytes.contains(&0) {
        let message = format!("expected the name of a file in this folder, found {name:?}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(name)
}

fn remove_tree(folder: BorrowedFd<'_>, name: &OsStr, levels: u32) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        removed => return Ok(removed?),
    }
    if levels == 0 {
        return Err(io::Error::other(format!("folders nested deeper than {MOST_LEVELS} levels")));
    }
    let inner = openat(folder, name, OPEN_FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    for entry in Dir::read_from(&inner)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            remove_tree(inner.as_fd(), OsStr::from_bytes(name), levels - 1)?;
        }
    }
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}
