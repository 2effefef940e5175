//! The super-traces that an executor has open, by the place and identity in plans.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use datafusion::{
    common::{DataFusionError, Result},
    execution::{object_store::ObjectStoreRegistry, runtime_env::RuntimeEnvBuilder},
    object_store::ObjectStore,
};
use sigmund_sql::{OpenOptions, Opened, SuperTrace};
use tokio::sync::OnceCell;
use url::Url;

use crate::{files::Files, place::Place, stores};

/// The maximum number of open super-traces.
const MOST: usize = 64;

/// Open super-traces. The most recently used one is the last.
#[derive(Debug, Default)]
pub(crate) struct Traces(Mutex<Vec<Arc<Entry>>>);

/// Finds the files that plans name by their URLs.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles(Arc<Traces>);

impl NamedFiles {
    /// The files of these super-traces.
    pub(crate) fn of(traces: Arc<Traces>) -> NamedFiles {
        NamedFiles(traces)
    }

    /// The runtime in which plans are executed or decoded.
    pub(crate) fn runtime(self) -> RuntimeEnvBuilder {
        RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(self))
    }
}

struct Entry {
    place: Place,
    opened: Opened,
    /// Made when it is first needed.
    trace: OnceCell<SuperTrace>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("place", &self.place).finish_non_exhaustive()
    }
}

/// A super-trace with a session.
#[derive(Debug)]
pub(crate) struct OpenTrace(Arc<Entry>);

impl OpenTrace {
    /// Its files, by `TABLE/NAME`.
    pub(crate) fn files(&self) -> Arc<dyn ObjectStore> {
        self.0.opened.files()
    }

    /// The super-trace.
    pub(crate) async fn get(&self) -> Result<&SuperTrace, sigmund_sql::Error> {
        self.0.trace.get_or_try_init(|| self.0.opened.super_trace()).await
    }
}

impl Traces {
    /// The super-trace at a place. It may block.
    ///
    /// # Errors
    /// When it cannot be opened, or has another identity.
    pub(crate) fn open(&self, place: &Place) -> Result<OpenTrace> {
        let entries = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut entries = entries();
            if let Some(found) = entries.iter().position(|entry| entry.place == *place) {
                let entry = entries.remove(found);
                entries.push(Arc::clone(&entry));
                return Ok(OpenTrace(entry));
            }
        }
        let opened = stores::open_files(Path::new(&place.at), OpenOptions::default());
        let opened = opened.map_err(|error| DataFusionError::External(Box::new(error)))?;
        if opened.identity() != place.identity {
            let message = format!(
                "{}: expected the super-trace of the client, found another: it was replaced meanwhile, or the \
                 executor has another folder of this name; ask again",
                place.at
            );
            return Err(DataFusionError::External(message.into()));
        }
        let entry = Arc::new(Entry { place: place.clone(), opened, trace: OnceCell::new() });
        let mut entries = entries();
        if entries.len() >= MOST {
            entries.remove(0);
        }
        entries.push(Arc::clone(&entry));
        Ok(OpenTrace(entry))
    }
}

impl ObjectStoreRegistry for NamedFiles {
    fn register_store(&self, _: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        // Plans read only super-traces.
        Some(store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::new(Files::new(Arc::clone(&self.0), Place::parse(url.as_str())?)))
    }
}
