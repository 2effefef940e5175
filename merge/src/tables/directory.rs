//! The directory of a super-trace, which is renamed to its final name when it is complete.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use sigmund_files::{Destination, Folder, Replaceable};
use sigmund_model::tables::{CHECKSUMS, INFO, Table};

use super::writer::TableWriter;
use crate::{
    encoding::{Output, Parts},
    error::Error,
    merge::MergeOptions,
    worker_pool::WorkerPool,
};

/// What `force` may overwrite.
const SUPER_TRACE: Replaceable =
    Replaceable { expected: "a super-trace", files: false, folder: |folder| folder.has_folder(INFO.name) };

/// A super-trace that is being written, in a temporary directory next to its final path.
pub(crate) struct Directory {
    target: PathBuf,
    destination: Destination,
    partial: Folder,
    pool: Option<Arc<WorkerPool>>,
    output: Output,
}

impl Directory {
    /// Creates a super-trace with the final path `target`. If there is a pool, it encodes the rows.
    pub(crate) fn create(
        target: &Path,
        options: &MergeOptions,
        pool: Option<Arc<WorkerPool>>,
    ) -> Result<Directory, Error> {
        let replaceable = options.force.then_some(SUPER_TRACE);
        let mut destination = match Destination::with_parents(target, replaceable, options.owner) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::OutputExists(target.to_path_buf()));
            }
            begun => begun.map_err(Error::io(target))?,
        };
        let partial = destination.folder().map_err(Error::io(target))?;
        Ok(Directory { target: target.to_path_buf(), destination, partial, pool, output: Output::default() })
    }

    /// Bytes of the rows written to files so far.
    pub(crate) fn written(&self) -> u64 {
        self.output.bytes.load(Ordering::Relaxed)
    }

    /// Creates a writer for one table.
    pub(crate) fn table(&self, table: &'static Table) -> Result<TableWriter, Error> {
        Ok(TableWriter::new(table, self.parts(table)?))
    }

    /// Creates the files of one table.
    pub(super) fn parts(&self, table: &'static Table) -> Result<Parts, Error> {
        let folder = self.partial.create_folder(table.name);
        let folder = folder.map_err(Error::io(&self.partial.path_of(table.name)))?;
        Parts::create(table, folder, self.pool.clone(), self.output.clone())
    }

    /// Renames the complete super-trace to its final name. An existing one is removed only now.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let checksums = self.output.checksums().text();
        let written = self.partial.write_file(CHECKSUMS, checksums.as_bytes());
        written.map_err(Error::io(&self.partial.path_of(CHECKSUMS)))?;
        self.destination.finish().map_err(Error::io(&self.target))
    }
}
