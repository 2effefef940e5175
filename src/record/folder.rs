//! The recorder's own folder, in which the program finds its sockets. The recording itself is somewhere else.
//!
//! The folder has an unpredictable name, is made for this recorder only, and is locked (`flock`) as long as the
//! recorder lives. So the folder of a killed recorder can be recognised: it belongs to the same user, has such a name
//! and mode, and is not locked. Nothing else is ever removed, and no link is followed.

use std::{
    ffi::OsStr,
    fs::{self, File, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use rustix::{
    fs::{AtFlags, CWD, Dir, Mode, OFlags, open, unlinkat},
    io::Errno,
};

/// The preferred place of such folders. The path has to be short, because it is part of the names of sockets.
const SHARED_MEMORY: &str = "/dev/shm";
const PREFIX: &str = "sigmund-arenas-";
/// Only the recorder's user has access. With `--user`, the other user may traverse the folder, but not list it.
const MODES: [u32; 2] = [0o700, 0o711];
/// The maximum number of entries that are removed from it, because a program may have filled it.
const MOST_ENTRIES: usize = 1000;
/// How many folders are tried. Another recorder may take a new folder for an abandoned one, and remove it before it is
/// locked.
const TRIES: usize = 10;

/// A folder of sockets, removed at the end.
pub(super) struct SocketFolder {
    path: PathBuf,
    /// The locked folder.
    handle: File,
}

impl SocketFolder {
    /// Makes the folder. With `for_another`, another user may use it; the sockets in it then have to be given to that
    /// user.
    pub(super) fn create(for_another: bool) -> Result<SocketFolder> {
        let usual = Path::new(SHARED_MEMORY);
        let made = SocketFolder::create_in(usual, for_another);
        // The usual place may be missing or full.
        made.or_else(|error| {
            let other = SocketFolder::create_in(&std::env::temp_dir(), for_another);
            other.with_context(|| format!("{error:#}"))
        })
    }

    fn create_in(base: &Path, for_another: bool) -> Result<SocketFolder> {
        remove_leftovers(base);
        for _ in 0..TRIES {
            let made = tempfile::Builder::new()
                .prefix(&format!("{PREFIX}{}-", std::process::id()))
                .rand_bytes(12)
                .permissions(Permissions::from_mode(MODES[0]))
                .tempdir_in(base);
            let path = made.with_context(|| base.display().to_string())?.keep();
            let folder = opened(&path).filter(|handle| handle.try_lock().is_ok() && is_at(handle, &path));
            let Some(handle) = folder else { continue };
            if for_another {
                let mode = Permissions::from_mode(MODES[1]);
                handle.set_permissions(mode).with_context(|| path.display().to_string())?;
            }
            return Ok(SocketFolder { path, handle });
        }
        bail!("{}: another process removed the new folder, {TRIES} times", base.display())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder. It may be called again. Needed because a drain that was given up would otherwise keep its
    /// folder.
    pub(super) fn remove(&self) {
        if is_at(&self.handle, &self.path) {
            remove(&self.handle, &self.path);
        }
    }

    /// The number of arenas that processes have made here themselves, because they cannot ask for one.
    pub(super) fn foreign_arenas(&self) -> u64 {
        let entries = Dir::read_from(&self.handle).into_iter().flatten().take(MOST_ENTRIES).flatten();
        entries.filter(|entry| entry.file_name().to_bytes().ends_with(b".arena")).count() as u64
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes the folders of this user's recorders that were killed.
fn remove_leftovers(base: &Path) {
    let own = rustix::process::geteuid().as_raw();
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten().filter(|entry| is_name(&entry.file_name())) {
        let path = entry.path();
        let Some(handle) = opened(&path) else { continue };
        let is_ours = handle.metadata().is_ok_and(|f| f.uid() == own && MODES.contains(&(f.mode() & 0o7777)));
        if is_ours && handle.try_lock().is_ok() {
            remove(&handle, &path);
        }
    }
}

/// `sigmund-arenas-PID-RANDOM`.
fn is_name(name: &OsStr) -> bool {
    let parts = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
    parts.is_some_and(|(pid, random)| {
        pid.parse::<u32>().is_ok() && random.len() == 12 && random.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

/// Opens the folder itself, and never the target of a link.
fn opened(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).ok().map(File::from)
}

/// Whether the path still leads to the folder that is open.
fn is_at(handle: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let there = fs::symlink_metadata(path).ok().map(identity);
    there.is_some() && there == handle.metadata().ok().map(identity)
}

/// Removes the folder and its entries. A folder in it is removed only if it is empty; otherwise both remain.
fn remove(handle: &File, path: &Path) {
    let entries = Dir::read_from(handle).into_iter().flatten().take(MOST_ENTRIES).flatten();
    for entry in entries.filter(|entry| ![c".", c".."].contains(&entry.file_name())) {
        if unlinkat(handle, entry.file_name(), AtFlags::empty()) == Err(Errno::ISDIR) {
            let _ = unlinkat(handle, entry.file_name(), AtFlags::REMOVEDIR);
        }
    }
    // If it remains, the next recorder removes it.
    let _ = unlinkat(CWD, path, AtFlags::REMOVEDIR);
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_leftover_folders_of_dead_recorders_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let place = |name: &str| base.path().join(name);
        let make = |name: &str, mode| {
            fs::create_dir(place(name)).unwrap();
            fs::set_permissions(place(name), Permissions::from_mode(mode)).unwrap();
        };
        make("sigmund-arenas-1-deadDEAD0000", 0o700);
        UnixListener::bind(place("sigmund-arenas-1-deadDEAD0000/arenas")).unwrap();
        make("sigmund-arenas-2-givenGIVEN00", 0o711);
        // In use; open to others, so not ours; of a name that we do not give; and one that leads elsewhere.
        make("sigmund-arenas-3-livesLIVES00", 0o700);
        let lives = opened(&place("sigmund-arenas-3-livesLIVES00")).unwrap();
        lives.try_lock().unwrap();
        make("sigmund-arenas-4-writable0000", 0o777);
        make("sigmund-arenas-5", 0o700);
        make("elsewhere", 0o700);
        fs::write(place("elsewhere/precious"), "").unwrap();
        symlink(place("elsewhere"), place("sigmund-arenas-6-linkLINK0000")).unwrap();

        remove_leftovers(base.path());
        let left = [
            "elsewhere",
            "sigmund-arenas-3-livesLIVES00",
            "sigmund-arenas-4-writable0000",
            "sigmund-arenas-5",
            "sigmund-arenas-6-linkLINK0000",
        ];
        assert_eq!(names(base.path()), left);
        assert_eq!(names(&place("elsewhere")), ["precious"]);
    }

    #[test]
    fn a_folder_is_for_its_user_alone_has_a_name_that_nobody_guesses_and_leaves_nothing() {
        let (one, two) = (SocketFolder::create(false).unwrap(), SocketFolder::create(true).unwrap());
        assert_ne!(one.path(), two.path());
        let mode = |folder: &SocketFolder| fs::symlink_metadata(folder.path()).unwrap().mode() & 0o7777;
        assert_eq!((mode(&one), mode(&two)), (0o700, 0o711));
        // A program may put into it what it likes.
        symlink("/etc", one.path().join("link")).unwrap();
        fs::create_dir(one.path().join("folder")).unwrap();
        let paths = [one.path().to_path_buf(), two.path().to_path_buf()];
        // The next recorder leaves the folders of those that live.
        drop(SocketFolder::create(false).unwrap());
        assert!(paths.iter().all(|path| path.is_dir()));
        drop((one, two));
        assert!(!paths.iter().any(|path| path.exists()) && Path::new("/etc").is_dir());
    }
}
