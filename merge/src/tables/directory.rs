//! The directory of a super-trace: it gets its name when it is whole.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sigmund_model::tables::Table;

use super::writer::TableWriter;
use crate::error::Error;

/// A super-trace that is being written, beside the place where it will be.
pub(crate) struct Directory {
    target: PathBuf,
    partial: PathBuf,
    finished: bool,
}

impl Directory {
    /// Begins a super-trace that will be at `target`.
    pub(crate) fn create(target: &Path, force: bool) -> Result<Directory, Error> {
        if target.exists() && !force {
            return Err(Error::OutputExists(target.to_path_buf()));
        }
        if target.exists() && !target.join("info").is_dir() {
            return Err(Error::bad(target, "folder", "a super-trace to overwrite", "something else"));
        }
        let mut name = target.as_os_str().to_os_string();
        name.push(format!(".partial-{}", std::process::id()));
        let partial = PathBuf::from(name);
        fs::create_dir_all(&partial).map_err(Error::io(&partial))?;
        Ok(Directory { target: target.to_path_buf(), partial, finished: false })
    }

    /// A writer for one of its tables.
    pub(crate) fn table(&self, table: &'static Table) -> Result<TableWriter, Error> {
        let folder = self.partial.join(table.name);
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        TableWriter::create(table, &folder.join("part-00000.parquet"))
    }

    /// All tables are written: gives it its name.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        if self.target.exists() {
            fs::remove_dir_all(&self.target).map_err(Error::io(&self.target))?;
        }
        fs::rename(&self.partial, &self.target).map_err(Error::io(&self.target))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing of a merge that failed stays under any name. That this fails too, nobody can mend here.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}
