//! A fleet: the super-traces of several hosts as one. Each table and view has the rows of all hosts, and a column
//! `host`.
//!
//! In a fleet, names without a schema refer to all hosts. The tables of a single host are `HOST.events` and so on.
//! Ticks are those of each host's own clock, and nanoseconds count from the first event of each host. Only the time of
//! day is common to all hosts. So functions of times need to know the host (`clocks.rs`), and functions over intervals
//! combine only rows of the same host (`intervals/times.rs`).

use std::{collections::HashSet, path::Path, sync::Arc};

use async_trait::async_trait;
use datafusion::{
    catalog::{SchemaProvider, TableProvider},
    datasource::{ViewTable, provider_as_source},
    error::{DataFusionError, Result},
    logical_expr::{LogicalPlan, LogicalPlanBuilder, ident, lit},
};

use crate::{
    Error, ErrorKind, OpenOptions, SuperTrace, perfetto,
    session_views::SessionViews,
    supertrace::{INFORMATION_SCHEMA, OWN_SCHEMA},
};
use futures::future::BoxFuture;

/// The column with the name of the host.
pub(crate) const HOST: &str = "host";

/// The description of that column.
pub(crate) const HOST_SENTENCE: &str = "The name of the host: that of its super-trace in the fleet.";

/// The new name of an event's own field with the name `host`.
const FIELD_HOST: &str = "field_host";

/// The schema of the fleet.
const FLEET: &str = "fleet";

impl OpenOptions {
    /// Opens a fleet: each `HOST.supertrace` in this folder.
    ///
    /// # Errors
    /// When there is none; and those of [`open`](Self::open) for each host. With [`keep_going`](Self::keep_going), a
    /// host that cannot be opened is left out, as long as another one can be.
    pub fn open_fleet(
        self,
        folder: impl AsRef<Path>,
    ) -> BoxFuture<'static, std::result::Result<Fleet, Error>> {
        let folder = folder.as_ref().to_path_buf();
        Box::pin(async move {
            let folder = folder.as_path();
            let unreadable =
                |error: std::io::Error| Error::at(ErrorKind::Unreadable, folder, error.to_string());
            let mut paths = Vec::new();
            for entry in std::fs::read_dir(folder).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                if path.extension().is_some_and(|extension| extension == "supertrace") {
                    paths.push(path);
                }
            }
            paths.sort();
            let (mut hosts, mut left_out) = (Vec::new(), Vec::new());
            for path in paths {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                match self.open(&path).await {
                    Ok(trace) => hosts.push((name, trace)),
                    Err(error) if self.keep_going => left_out.push(error),
                    Err(error) => return Err(error),
                }
            }
            if hosts.is_empty()
                && let Some(error) = left_out.pop()
            {
                return Err(error);
            }
            Ok(Fleet { left_out, ..Fleet::of(folder, hosts)? })
        })
    }
}

/// An open fleet.
pub struct Fleet {
    /// The super-trace of the first host. Its session has all hosts: [`SuperTrace::hosts`].
    pub trace: SuperTrace,
    /// Why hosts were left out.
    pub left_out: Vec<Error>,
}

impl Fleet {
    /// A fleet of these hosts. `folder` is the place where they were found.
    ///
    /// # Errors
    /// When there is no host, or one has a name that is taken.
    pub fn of(folder: &Path, hosts: Vec<(String, SuperTrace)>) -> std::result::Result<Fleet, Error> {
        let mut hosts = hosts.into_iter();
        let Some((name, mut trace)) = hosts.next() else {
            let message = "expected a folder of super-traces, HOST.supertrace, found none in it";
            return Err(Error::at(ErrorKind::NotASuperTrace, folder, message));
        };
        let name = free_name(name);
        trace.name(&name)?;
        for (name, other) in hosts {
            trace.attach(&free_name(name), other)?;
        }
        trace.join(name)?;
        Ok(Fleet { trace, left_out: Vec::new() })
    }
}

/// The name of a host. `host_NAME` if the session already has a schema of that name.
fn free_name(name: String) -> String {
    let is_taken = [OWN_SCHEMA, INFORMATION_SCHEMA, FLEET].contains(&name.as_str());
    if is_taken { format!("host_{name}") } else { name }
}

impl SuperTrace {
    /// From now on, names without a schema refer to all hosts: this one, and those that are attached.
    fn join(&mut self, name: String) -> std::result::Result<(), Error> {
        let of_fleet = |error| Error::from_datafusion(FLEET, error);
        let missing = || of_fleet(DataFusionError::Internal("a session has no schema".into()));
        let catalog_name = self.session().state().config_options().catalog.default_catalog.clone();
        let catalog = self.session().catalog(&catalog_name).ok_or_else(missing)?;
        if catalog.schema(FLEET).is_some() {
            return Err(Error::unknown(format!(
                "expected another name for a host, found `{FLEET}`, which is taken"
            )));
        }
        let mut hosts = vec![(name, catalog.schema(OWN_SCHEMA).ok_or_else(missing)?)];
        for host in self.attached().keys() {
            hosts.push((host.clone(), catalog.schema(host).ok_or_else(missing)?));
        }
        let defined = self.define_for();
        catalog.register_schema(FLEET, Arc::new(FleetSchema { hosts, defined })).map_err(of_fleet)?;
        let state = self.session().state_ref();
        state.write().config_mut().options_mut().catalog.default_schema = FLEET.into();
        self.set_fleet();
        Ok(())
    }
}

#[derive(Debug)]
struct FleetSchema {
    hosts: Vec<(String, Arc<dyn SchemaProvider>)>,
    /// The views that the session has defined. They are queries on the fleet, and have the column `host` if they select
    /// it.
    defined: Arc<SessionViews>,
}

#[async_trait]
impl SchemaProvider for FleetSchema {
    /// The tables of the first host, then those that only others have, then the views that the session has defined.
    fn table_names(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let names =
            self.hosts.iter().flat_map(|(_, tables)| tables.table_names()).chain(self.defined.names());
        names.filter(|name| seen.insert(name.clone())).collect()
    }

    fn table_exist(&self, name: &str) -> bool {
        self.defined.has(name) || self.hosts.iter().any(|(_, tables)| tables.table_exist(name))
    }

    /// The rows of all hosts that have a table or event with this name. A host that was merged without the table is an
    /// error, as it is without a fleet: without its rows, an answer would look complete.
    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(view) = self.defined.get(name) {
            return Ok(Some(view));
        }
        let mut of_hosts = Vec::new();
        for (host, tables) in &self.hosts {
            of_hosts.push(tables.table(name).await.map_err(|error| error.context(format!("host {host}")))?);
        }
        let rows = self.rows(name, of_hosts)?;
        Ok(rows.map(|rows| Arc::new(ViewTable::new(rows, None)) as Arc<dyn TableProvider>))
    }
}

impl FleetSchema {
    /// The rows of the tables of this name that the hosts have.
    fn rows(&self, name: &str, of_hosts: Vec<Option<Arc<dyn TableProvider>>>) -> Result<Option<LogicalPlan>> {
        let mut of_all: Option<LogicalPlanBuilder> = None;
        for (number, ((host, _), table)) in self.hosts.iter().zip(of_hosts).enumerate() {
            let Some(table) = table else { continue };
            let schema = table.schema();
            let columns = schema.fields().iter().map(|field| match field.name().as_str() {
                HOST => ident(HOST).alias(FIELD_HOST),
                column if perfetto::is_of_perfetto(name) => perfetto::of_host(name, column, number),
                other => ident(other),
            });
            let columns = std::iter::once(lit(host.as_str()).alias(HOST)).chain(columns);
            let rows = LogicalPlanBuilder::scan(name, provider_as_source(table), None)?.project(columns)?;
            of_all = Some(match of_all {
                Some(others) => others.union_by_name(rows.build()?)?,
                None => rows,
            });
        }
        of_all.map(LogicalPlanBuilder::build).transpose()
    }
}
