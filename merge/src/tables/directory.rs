//! The directory of a super-trace: it gets its name when it is whole.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use sigmund_model::tables::Table;

use super::{parts::Parts, writer::TableWriter};
use crate::{error::Error, helpers::Helpers};

/// A super-trace that is being written, beside the place where it will be.
pub(crate) struct Directory {
    target: PathBuf,
    partial: PathBuf,
    helpers: Option<Arc<Helpers>>,
    /// Bytes of the rows that are in their files.
    written: Arc<AtomicU64>,
    finished: bool,
}

impl Directory {
    /// Begins a super-trace that will be at `target`; its rows are encoded by the helpers, if there are any.
    pub(crate) fn create(
        target: &Path,
        force: bool,
        helpers: Option<Arc<Helpers>>,
    ) -> Result<Directory, Error> {
        if target.exists() && !force {
            return Err(Error::OutputExists(target.to_path_buf()));
        }
        if target.exists() && !target.join("info").is_dir() {
            return Err(Error::bad(target, "folder", "a super-trace to overwrite", "something else"));
        }
        let partial = beside(target, "partial");
        fs::create_dir_all(&partial).map_err(Error::io(&partial))?;
        let (target, written) = (target.to_path_buf(), Arc::default());
        Ok(Directory { target, partial, helpers, written, finished: false })
    }

    /// Bytes of the rows that are in their files so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// A writer for one of its tables.
    pub(crate) fn table(&self, table: &'static Table) -> Result<TableWriter, Error> {
        Ok(TableWriter::new(table, self.parts(table)?))
    }

    /// The files of one of its tables.
    pub(super) fn parts(&self, table: &'static Table) -> Result<Parts, Error> {
        let folder = self.partial.join(table.name);
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        Parts::create(table, &folder, self.helpers.clone(), Arc::clone(&self.written))
    }

    /// All tables are written: gives it its name. What had that name before goes away then, and not earlier.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        let before = beside(&self.target, "replaced");
        let replaces = self.target.exists();
        if replaces {
            fs::rename(&self.target, &before).map_err(Error::io(&self.target))?;
        }
        if let Err(error) = fs::rename(&self.partial, &self.target) {
            if replaces {
                // The old one is better than none; if this fails too, it is still there under the other name.
                let _ = fs::rename(&before, &self.target);
            }
            return Err(Error::io(&self.target)(error));
        }
        self.finished = true;
        if replaces {
            fs::remove_dir_all(&before).map_err(Error::io(&before))?;
        }
        Ok(())
    }
}

/// A name of this process's own in the same folder, so that a rename is all it takes.
fn beside(target: &Path, what: &str) -> PathBuf {
    let mut name = target.as_os_str().to_os_string();
    name.push(format!(".{what}-{}", std::process::id()));
    PathBuf::from(name)
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing of a merge that failed stays under any name. That this fails too, nobody can mend here.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}
