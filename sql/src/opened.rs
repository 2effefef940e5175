//! A super-trace whose files are open, without a session. For programs with their own sessions, such as executors of a
//! cluster.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use datafusion::object_store::ObjectStore;

use crate::{
    Error, Info, OpenOptions, SuperTrace,
    files::{Files, Store},
};

/// Open files.
#[derive(Clone, Debug)]
pub struct Opened {
    path: PathBuf,
    files: Arc<Files>,
    info: Info,
    memory: Option<usize>,
}

impl OpenOptions {
    /// Opens the files of a super-trace in the directory `NAME.supertrace`, or in a store: `path` is then only used in
    /// messages. It may block.
    ///
    /// # Errors
    /// As [`open`](Self::open); when the store does not answer.
    pub fn open_files(self, path: impl AsRef<Path>, store: Option<Arc<dyn Store>>) -> Result<Opened, Error> {
        let path = path.as_ref();
        let (files, info) = Files::open_all(path, store.as_ref(), self.keep_going)?;
        Ok(Opened { path: path.to_path_buf(), files: Arc::new(files), info, memory: self.memory })
    }
}

impl Opened {
    /// The path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A number that distinguishes it from other super-traces at this path. It is the same in all processes that have
    /// opened this super-trace.
    pub fn identity(&self) -> u64 {
        self.files.identity()
    }

    /// The files, by `TABLE/NAME`. They can only be read.
    pub fn files(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.files.store())
    }

    /// The super-trace, with a session of its own.
    ///
    /// # Errors
    /// When the table `event_types` cannot be read.
    pub async fn super_trace(&self) -> Result<SuperTrace, Error> {
        SuperTrace::of_files(&self.path, Arc::clone(&self.files), self.info.clone(), self.memory).await
    }
}
