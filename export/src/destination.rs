//! Where an export goes. A file or a folder gets its name when it is whole: until then it has another one beside it,
//! and if something fails nothing stays.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Something that is being written.
#[derive(Debug)]
pub struct Destination {
    target: PathBuf,
    partial: PathBuf,
    finished: bool,
}

impl Destination {
    /// Begins something that will be at `target`. What is there already stays until [`finish`](Self::finish).
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when something is there and `force` is not given; [`io::ErrorKind::NotFound`]
    /// when there is no such folder to put it in.
    pub fn new(target: &Path, force: bool) -> io::Result<Destination> {
        if !force && target.symlink_metadata().is_ok() {
            let message = format!("{}: exists already; --force overwrites it", target.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let message = format!("{}: there is no folder {}", target.display(), folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        let partial = beside(target, "partial");
        remove(&partial)?;
        Ok(Destination { target: target.to_path_buf(), partial, finished: false })
    }

    /// The path to write to until it is finished. Nothing is there yet.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// It is whole: gives it its name. What had that name goes away.
    ///
    /// # Errors
    /// When it cannot be renamed; what had that name is still there then.
    pub fn finish(mut self) -> io::Result<()> {
        let before = beside(&self.target, "replaced");
        let replaces = self.target.symlink_metadata().is_ok();
        if replaces {
            fs::rename(&self.target, &before)?;
        }
        if let Err(error) = fs::rename(&self.partial, &self.target) {
            if replaces {
                // The old one is better than none; if this fails too, it is still there under the other name.
                let _ = fs::rename(&before, &self.target);
            }
            return Err(error);
        }
        self.finished = true;
        if replaces { remove(&before) } else { Ok(()) }
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if !self.finished {
            // That this fails too, nobody can mend here.
            let _ = remove(&self.partial);
        }
    }
}

/// A name of this process's own in the same folder, so that a rename is all it takes.
fn beside(target: &Path, what: &str) -> PathBuf {
    let mut name = target.as_os_str().to_os_string();
    name.push(format!(".{what}-{}", std::process::id()));
    PathBuf::from(name)
}

fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        fs::write(&target, "old").unwrap();
        assert_eq!(Destination::new(&target, false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let given_up = Destination::new(&target, true).unwrap();
        fs::write(given_up.path(), "half").unwrap();
        drop(given_up);
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        // A folder takes the place of a file.
        let whole = Destination::new(&target, true).unwrap();
        fs::create_dir(whole.path()).unwrap();
        fs::write(whole.path().join("y"), "new").unwrap();
        whole.finish().unwrap();
        assert_eq!(fs::read_to_string(target.join("y")).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_folder_that_is_not_there_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let error = Destination::new(&folder.path().join("no/x"), false).unwrap_err();
        assert!(error.to_string().contains("there is no folder"), "{error}");
    }
}
