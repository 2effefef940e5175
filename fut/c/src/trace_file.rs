//! The file of a program's own recording: how it replaces an older file of its name, and how it is moved at the end.
//! An older file is removed when the recording has begun, or, at the end, when the moved trace is complete. Only
//! regular files are replaced.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process,
};

/// The path, independent of the current folder of the process.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    std::path::absolute(path)
}

/// Whether two paths lead to the same file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    identity(one).is_some_and(|found| identity(other) == Some(found))
}

/// An older file, which has another name until it is known whether its own name is needed.
#[must_use]
pub(crate) struct MovedAside {
    path: PathBuf,
    aside: Option<PathBuf>,
}

impl MovedAside {
    /// Moves the file at `path` aside, if there is one.
    pub(crate) fn new(path: &Path) -> io::Result<MovedAside> {
        let aside = if is_regular(path)? {
            let aside = beside(path, "old");
            fs::rename(path, &aside)?;
            Some(aside)
        } else {
            None
        };
        Ok(MovedAside { path: path.to_path_buf(), aside })
    }

    pub(crate) fn remove(self) {
        self.report(|aside, _| fs::remove_file(aside));
    }

    pub(crate) fn move_back(self) {
        self.report(|aside, path| fs::rename(aside, path));
    }

    /// The call that needed this has its own result, so a failure is reported on stderr, with the name of the file.
    fn report(&self, done: impl FnOnce(&Path, &Path) -> io::Result<()>) {
        if let Some(aside) = &self.aside
            && let Err(error) = done(aside, &self.path)
        {
            let (aside, path) = (aside.display(), self.path.display());
            fut::__warn(format_args!("{aside}: the older file of the name {path} stays here: {error}"));
        }
    }
}

/// Moves the trace to `to`. Does nothing if that is the trace itself. If this fails, both files stay as they are.
pub(crate) fn move_to(trace: &Path, to: &Path) -> io::Result<()> {
    if is_same_file(trace, to) {
        return Ok(());
    }
    is_regular(to)?;
    match fs::rename(trace, to) {
        Err(error) if error.raw_os_error() == Some(libc::EXDEV) => {
            fut::__without_file_size_signal(|| copy_to(trace, to))
        }
        renamed => renamed,
    }
}

/// Moves the trace to another file system. The copy gets its name only when it is complete. If the trace cannot be
/// removed then, it is in both places.
fn copy_to(trace: &Path, to: &Path) -> io::Result<()> {
    let unfinished = beside(to, "new");
    let copy = || {
        // A new file, like the trace itself: a link that was created there meanwhile is not followed.
        let mut file = fs::File::create_new(&unfinished)?;
        io::copy(&mut fs::File::open(trace)?, &mut file)?;
        fs::rename(&unfinished, to)
    };
    copy().inspect_err(|_| _ = fs::remove_file(&unfinished))?;
    if let Err(error) = fs::remove_file(trace) {
        fut::__warn(format_args!("{}: the trace is here, too: {error}", trace.display()));
    }
    Ok(())
}

/// Whether there is a regular file at `path`. An error if there is something else.
fn is_regular(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "expected a regular file or nothing, found another kind of file",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A name in the same folder that no other call uses.
fn beside(path: &Path, kind: &str) -> PathBuf {
    path.with_file_name(format!(".fut-{}-{:x}.{kind}", process::id(), fut::clock::ticks()))
}
