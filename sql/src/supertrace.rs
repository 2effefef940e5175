//! Opens a super-trace: checks it, registers its tables and views, and caches small facts.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::datatypes::SchemaRef;
use datafusion::{
    common::SchemaError,
    common::TableReference,
    error::DataFusionError,
    logical_expr::{Expr, LogicalPlan},
    prelude::{DataFrame, SQLOptions, SessionContext},
    sql::{parser::Statement, sqlparser::ast},
};
use futures::future::BoxFuture;
use sigmund_model::{
    Hertz, Thread, Ticks,
    tables::{EVENT_TYPES, EVENTS, THREADS, Table},
};
use url::Url;

use crate::{
    DeclaredEvent, Error, Info, LwpNames, OpenOptions, Parameters, QueryResult, RowCondition, RowGroups,
    ThreadNames,
    clocks::{Clocks, TraceClock},
    declared, distinct_calls,
    event_views::EventViews,
    files::{Files, Sources, is_of_a_file},
    foreign, functions, intervals,
    lwps::AllLwps,
    named_arguments, nearest,
    opaque::Opaque,
    own_views::OwnViews,
    parameters,
    session::session,
    session_views::SessionViews,
    sqlite_words,
    tables::{self, Root},
    threads::{self, AllThreads},
};

/// A schema that DataFusion has in each catalog.
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";

/// The schema of a session that has the tables of its own super-trace.
pub(crate) const OWN_SCHEMA: &str = "public";

/// An open super-trace. It is never written to.
pub struct SuperTrace {
    path: PathBuf,
    /// The open files.
    files: Arc<Files>,
    root: Root,
    context: Opaque<SessionContext>,
    info: Info,
    event_types: Arc<[DeclaredEvent]>,
    event_views: Arc<EventViews>,
    /// The views that its session has defined, in the schema that names without a schema refer to.
    defined: Arc<SessionViews>,
    threads: AllThreads,
    lwps: AllLwps,
    /// The clocks of this super-trace and of others that its session can read.
    clocks: Arc<Clocks>,
    /// Other super-traces that its session can read, by the names of their schemas.
    attached: BTreeMap<String, SuperTrace>,
    /// Its name among the super-traces of its session.
    name: Option<String>,
    /// Whether these super-traces are hosts of a fleet.
    is_fleet: bool,
    memory: Option<usize>,
}

impl SuperTrace {
    /// Opens the directory `NAME.supertrace`, as [`OpenOptions::open`] without options.
    ///
    /// # Errors
    /// When it is no super-trace, has another schema version, or a table is missing, unreadable or has other
    /// columns. The message names the file.
    pub async fn open(path: impl AsRef<Path>) -> Result<SuperTrace, Error> {
        OpenOptions::default().open(path).await
    }

    /// A super-trace with a session that has the tables of these files, and views of them.
    pub(crate) async fn of_files(
        path: &Path,
        files: Arc<Files>,
        info: Info,
        memory: Option<usize>,
    ) -> Result<SuperTrace, Error> {
        let in_path = |e| Error::from_datafusion(path.display().to_string(), e);
        let context = session(memory).map_err(in_path)?;
        let root = Root::of(files.store()).map_err(in_path)?;
        root.register(&context);
        for table in files.tables() {
            tables::register(&context, &root, table).map_err(in_path)?;
        }
        let clock = functions::NamedClock::of_files(&files, &info);
        let clocks = Arc::new(Clocks::of(TraceClock::new(root.url().as_str(), &info, clock)));
        intervals::register(&context, &clocks).map_err(in_path)?;
        functions::register(&context, &clocks);
        let event_types = match declared::read(&context, path).await {
            Ok(event_types) => Arc::<[DeclaredEvent]>::from(event_types),
            Err(error) => return Err(files.damage(Some(&EVENT_TYPES)).unwrap_or(error)),
        };
        let event_views = event_views(&context, &files, &event_types, &info).await.map_err(in_path)?;
        let defined = Arc::clone(event_views.defined());
        Ok(SuperTrace {
            path: path.to_path_buf(),
            files,
            root,
            context: Opaque::new(context),
            info,
            event_types,
            event_views,
            defined,
            threads: AllThreads::default(),
            lwps: AllLwps::default(),
            clocks,
            attached: BTreeMap::new(),
            name: None,
            is_fleet: false,
            memory,
        })
    }

    /// The memory limit of its queries in bytes, if there is one: [`OpenOptions::memory`].
    pub fn memory(&self) -> Option<usize> {
        self.memory
    }

    /// Why files and tables were left out: [`OpenOptions::keep_going`]. Answers lack their rows.
    pub fn left_out(&self) -> &[Error] {
        self.files.left_out()
    }

    /// Also makes its tables and views available in a schema with this name: `name.events`.
    ///
    /// # Errors
    /// When the session has a schema of this name.
    pub fn name(&mut self, name: &str) -> Result<(), Error> {
        self.add_schema(name, &self.context)?;
        self.clocks.name(name);
        self.name = Some(name.to_string());
        Ok(())
    }

    /// From now on, queries can also read another super-trace: its table `events` is `name.events`. Names without a
    /// schema, and measures that name no super-trace, refer to this one.
    ///
    /// # Errors
    /// When the session has a schema of this name.
    pub fn attach(&mut self, name: &str, other: SuperTrace) -> Result<(), Error> {
        self.add_schema(name, &other.context)?;
        other.root.register(&self.context);
        self.clocks.attach(name, &other.clocks);
        // The session caches footers by the path below the root. That path is the same in both super-traces, so the
        // cache is switched off.
        self.context.runtime_env().cache_manager.get_file_metadata_cache().update_cache_limit(0);
        self.attached.insert(name.to_string(), other);
        Ok(())
    }

    fn add_schema(&self, name: &str, of: &SessionContext) -> Result<(), Error> {
        let in_name = |error| Error::from_datafusion(name, error);
        let missing = || in_name(DataFusionError::Internal("a session has no schema".to_string()));
        let names = of.state().config_options().catalog.clone();
        let schema = of.catalog(&names.default_catalog).and_then(|catalog| catalog.schema(OWN_SCHEMA));
        let catalog = self.context.catalog(&names.default_catalog);
        let (schema, catalog) = schema.zip(catalog).ok_or_else(missing)?;
        if name == INFORMATION_SCHEMA || catalog.schema(name).is_some() {
            return Err(Error::unknown(format!(
                "expected another name for a super-trace, found `{name}`, which is taken"
            )));
        }
        catalog.register_schema(name, schema).map_err(in_name)?;
        Ok(())
    }

    /// The path of the directory, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The attached super-traces, by name.
    pub fn attached(&self) -> &BTreeMap<String, SuperTrace> {
        &self.attached
    }

    /// The hosts of its fleet, by name, itself first; empty if it is not part of a fleet.
    pub fn hosts(&self) -> Vec<(&str, &SuperTrace)> {
        if self.is_fleet { self.named().collect() } else { Vec::new() }
    }

    /// All super-traces that its session can read and that have a name, itself first.
    pub fn named(&self) -> impl Iterator<Item = (&str, &SuperTrace)> {
        let own = self.name.iter().map(move |name| (name.as_str(), self));
        own.chain(self.attached.iter().map(|(name, trace)| (name.as_str(), trace)))
    }

    pub(crate) fn set_fleet(&mut self) {
        self.is_fleet = true;
        self.clocks.join();
    }

    /// What is known about the recording.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Ticks per second of the main clock; `None` if unknown.
    pub fn tick_hz(&self) -> Option<Hertz> {
        self.info.tick_hz()
    }

    /// Tick of the first event; `None` if there is no event.
    pub fn first_tick(&self) -> Option<Ticks> {
        self.info.first_tick()
    }

    /// Tick of the last event; `None` if there is no event.
    pub fn last_tick(&self) -> Option<Ticks> {
        self.info.last_tick()
    }

    /// The declared events, in the order of the table `event_types`.
    pub fn event_types(&self) -> &[DeclaredEvent] {
        &self.event_types
    }

    /// The view with the events of this name. It has the name of the event, unless that name was taken.
    pub fn event_view(&self, event: &str) -> Option<&str> {
        self.event_views.of(event)
    }

    /// Notes on fields that were left out of the event views that queries have used so far: a view has at most 1000 columns
    /// of fields.
    pub fn notes(&self) -> Vec<String> {
        self.event_views.notes()
    }

    /// Whether it has any user thread.
    pub fn has_threads(&self) -> bool {
        self.files.rows(&THREADS) > 0
    }

    /// The number of rows of a table, without reading it; 0 if it was left out.
    pub fn row_count(&self, table: &Table) -> u64 {
        self.files.rows(table)
    }

    /// The number of rows of the table `threads`, without reading it.
    pub fn thread_count(&self) -> u64 {
        self.files.rows(&THREADS)
    }

    /// All user threads and their names. The table is read when this is first called.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn threads(&self) -> Result<&ThreadNames, Error> {
        self.threads.get(&self.files)
    }

    /// All LWPs and processes and their names. The tables are read when this is first called.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn lwps(&self) -> Result<&LwpNames, Error> {
        self.lwps.get(&self.files)
    }

    /// The names of the threads in this list that exist. It reads little, even if the table has many threads.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn threads_among<'a>(&'a self, threads: &'a [Thread]) -> BoxFuture<'a, Result<ThreadNames, Error>> {
        Box::pin(async move { self.of_threads(threads, ThreadNames::among).await })
    }

    /// Which threads of this list exist. It reads less than [`threads_among`](Self::threads_among).
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn existing_threads<'a>(
        &'a self,
        threads: &'a [Thread],
    ) -> BoxFuture<'a, Result<BTreeSet<Thread>, Error>> {
        Box::pin(async move { self.of_threads(threads, threads::existing).await })
    }

    async fn of_threads<T: Send + 'static>(
        &self,
        threads: &[Thread],
        read: fn(&Files, &[Thread]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (files, threads) = (Arc::clone(&self.files), threads.to_vec());
        let unread = |_| Error::unknown("the threads could not be read: this is a defect of sigmund".into());
        tokio::task::spawn_blocking(move || read(&files, &threads)).await.map_err(unread)?
    }

    /// The URL of its files in plans.
    pub fn files_url(&self) -> &Url {
        self.root.url()
    }

    /// A number that distinguishes it from other super-traces at this path:
    /// [`Opened::identity`](crate::Opened::identity).
    pub fn identity(&self) -> u64 {
        self.files.identity()
    }

    /// The DataFusion session, to build plans on.
    pub fn session(&self) -> &SessionContext {
        &self.context
    }

    /// A table of the model as it is stored in Parquet, without nanoseconds.
    ///
    /// # Errors
    /// When the session does not have the table.
    pub fn raw<'a>(&'a self, table: &'a Table) -> BoxFuture<'a, Result<DataFrame, Error>> {
        Box::pin(async move {
            let name = tables::raw_name(table);
            let frame = self.context.table(TableReference::partial(OWN_SCHEMA, name.clone())).await;
            frame.map_err(|e| self.error(&name, e))
        })
    }

    /// Reads all pages of all files, and compares them with their checksums.
    ///
    /// # Errors
    /// That of the first damaged file, with its name.
    pub fn verify(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let files = Arc::clone(&self.files);
            match tokio::task::spawn_blocking(move || files.first_damage()).await {
                Ok(None) => Ok(()),
                Ok(Some(error)) => Err(error),
                Err(_) => {
                    Err(Error::unknown("the files could not be read: this is a defect of sigmund".into()))
                }
            }
        })
    }

    /// Some columns of a table as it is stored. They can be read by row groups, in any order and on any thread. A table
    /// that was left out has no row groups.
    ///
    /// # Errors
    /// When a footer cannot be read. The message names the file.
    pub fn row_groups(&self, table: &Table, columns: &[&str]) -> Result<RowGroups, Error> {
        self.files.row_groups(table, columns)
    }

    /// A condition on the rows of a table as it is stored, for [`RowGroups::read_if`].
    ///
    /// # Errors
    /// When the table does not have its columns, or when it is not a condition.
    pub fn row_condition(&self, table: &Table, condition: Expr) -> Result<RowCondition, Error> {
        RowCondition::new(&self.context, table, condition).map_err(|error| self.error(table.name, error))
    }

    /// Plans a query. It runs when rows are requested from the result.
    ///
    /// # Errors
    /// [`Query`](crate::ErrorKind::Query) when it is wrong, [`Refused`](crate::ErrorKind::Refused) when it would
    /// change anything (DDL, DML, COPY, SET).
    pub async fn sql(&self, query: &str) -> Result<QueryResult, Error> {
        // Without parameters: the caller may bind the parameters of the plan.
        self.plan(query, None).await
    }

    /// [`sql`](Self::sql), with values for the parameters of the query (`$name`).
    ///
    /// # Errors
    /// As [`sql`](Self::sql); when a parameter has no value.
    pub fn sql_with<'a>(
        &'a self,
        query: &'a str,
        parameters: &'a Parameters,
    ) -> BoxFuture<'a, Result<QueryResult, Error>> {
        Box::pin(async move { self.plan(query, Some(parameters)).await })
    }

    /// From the first event to the last. `None` if that is unknown, or if the session has several super-traces.
    pub(crate) fn bounds(&self) -> Option<sqlite_words::Bounds> {
        let (first, last, hz) = (self.first_tick()?, self.last_tick()?, self.tick_hz()?);
        let end = i64::try_from(hz.to_nanos(Ticks(last.0.saturating_sub(first.0))).0).ok()?;
        self.attached.is_empty().then_some(sqlite_words::Bounds { start: 0, end })
    }

    async fn plan(&self, query: &str, parameters: Option<&Parameters>) -> Result<QueryResult, Error> {
        let state = self.context.state();
        let in_query = |error| self.in_query(error);
        if let Some(error) = foreign::refused(query) {
            return Err(error);
        }
        let query = parameters::numbered(query);
        let mut statement = sqlite_words::parsed(&state, &query).map_err(in_query)?;
        if let Some(parameters) = parameters {
            parameters.apply(&mut statement)?;
        }
        if let Some((schema, table)) = described_table(&statement) {
            let of = match schema {
                Some(schema) if !self.schema_names().contains(&schema) => {
                    return Err(self.unknown_name(&format!("{schema}.{table}")));
                }
                schema => schema.and_then(|schema| self.attached.get(&schema)).unwrap_or(self),
            };
            return Ok(QueryResult::new(of.description(&table).await?, "query", self.sources()));
        }
        named_arguments::by_place(&mut statement);
        sqlite_words::in_our_words(&mut statement, self.bounds());
        distinct_calls::name(&mut statement);
        let plan = state.statement_to_plan(statement).await.map_err(|error| self.in_text(&query, error))?;
        let plan = self.clocks.bind(plan).map_err(in_query)?;
        let read_only =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        if read_only.verify_plan(&plan).is_err() {
            let what = plan.display().to_string();
            return Err(Error::refused(what.split([':', ' ']).next().unwrap_or("a statement")));
        }
        Ok(QueryResult::new(DataFrame::new(state, plan), "query", self.sources()))
    }

    pub(crate) fn clock_bound(&self, plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
        self.clocks.bind(plan)
    }

    /// The error for a query. If a table or table function does not exist, it has the nearest names.
    pub(crate) fn in_query(&self, error: DataFusionError) -> Error {
        if let DataFusionError::Plan(message) = error.find_root() {
            let missing = |what| Some(message.strip_prefix(what)?.split_once("' not found")?.0);
            if let Some(name) = missing("table '") {
                return self.unknown_name(name);
            }
            if let Some(name) = missing("table function '") {
                return self.unknown_function(name);
            }
        }
        Error::from_datafusion("query", error)
    }

    /// As [`in_query`](Self::in_query), with a hint if a text was written like a name.
    fn in_text(&self, query: &str, error: DataFusionError) -> Error {
        let quoted = match error.find_root() {
            DataFusionError::SchemaError(wrong, _) => match wrong.as_ref() {
                SchemaError::FieldNotFound { field, .. } => Some(field.name.clone()),
                _ => None,
            },
            _ => None,
        };
        let error = self.in_query(error);
        match quoted.filter(|name| query.contains(&format!("\"{name}\""))) {
            Some(name) => error.with(&format!(" A text is in single quotes: '{name}'.")),
            None => error,
        }
    }

    /// The error for the unknown name `catalog.schema.table`, with the nearest names. Each part may contain dots.
    fn unknown_name(&self, name: &str) -> Error {
        let names = self.context.state().config_options().catalog.clone();
        let name = name.strip_prefix(&format!("{}.", names.default_catalog)).unwrap_or(name);
        let schemas = self.schema_names();
        let of_schema = |schema: &String| name.strip_prefix(schema.as_str())?.strip_prefix('.');
        let known = schemas.iter().filter_map(|schema| Some((schema, of_schema(schema)?)));
        if let Some((schema, table)) = known.max_by_key(|(schema, _)| schema.len()) {
            return self.attached.get(schema).unwrap_or(self).unknown_table(table);
        }
        let Some((schema, _)) = name.split_once('.') else { return self.unknown_table(name) };
        let near = nearest(schema, schemas.iter().map(String::as_str)).join(", ");
        Error::unknown(format!(
            "expected the name of a super-trace before the dot, found `{schema}`; nearest: {near}"
        ))
    }

    /// The schema names that tables can have before the dot.
    pub fn schema_names(&self) -> Vec<String> {
        let names = self.context.state().config_options().catalog.clone();
        let catalog = self.context.catalog(&names.default_catalog);
        let mut schemas = catalog.map_or(Vec::new(), |catalog| catalog.schema_names());
        schemas.retain(|schema| schema != INFORMATION_SCHEMA);
        schemas.sort();
        schemas
    }

    /// The columns of a table or view in one of these schemas.
    ///
    /// # Errors
    /// When there is none.
    pub fn columns_in<'a>(
        &'a self,
        schema: &'a str,
        table: &'a str,
    ) -> BoxFuture<'a, Result<SchemaRef, Error>> {
        Box::pin(async move {
            let found = self.context.table(TableReference::partial(schema, table)).await;
            let found = found.map_err(|error| Error::from_datafusion(format!("{schema}.{table}"), error))?;
            Ok(Arc::clone(found.schema().inner()))
        })
    }

    fn unknown_function(&self, name: &str) -> Error {
        if self.schema_names().iter().any(|schema| schema == name) {
            return Error::unknown(format!(
                "expected a table function without the name of a super-trace, found one after `{name}.`: table functions are \
                 about the first super-trace"
            ));
        }
        let state = self.context.state();
        let near = nearest(name, state.table_functions().keys().map(String::as_str)).join(", ");
        Error::unknown(format!("expected a table function, found `{name}`; nearest: {near}"))
    }

    /// The files that its session can read.
    fn sources(&self) -> Sources {
        let all = std::iter::once(self).chain(self.attached.values());
        Sources(all.map(|trace| (trace.root.url().clone(), Arc::clone(&trace.files))).collect())
    }

    pub(crate) fn session_views(&self) -> &SessionViews {
        &self.defined
    }

    /// Gives its session a new, empty set of views, for another schema. Returns that set.
    pub(crate) fn define_for(&mut self) -> Arc<SessionViews> {
        self.defined = Arc::default();
        Arc::clone(&self.defined)
    }

    /// The names of all tables and views, in the order of [`EventViews::names`].
    pub(crate) fn names(&self) -> Vec<String> {
        self.event_views.names(&self.defined)
    }

    pub(crate) fn event_views(&self) -> &EventViews {
        &self.event_views
    }

    /// A DataFusion error about a part of this super-trace: a table, or another word. If it is an error of a file, it
    /// gets the file's name. To find that file, the table (or all tables) is read again, which blocks.
    pub fn error(&self, part: &str, source: DataFusionError) -> Error {
        self.error_of(part)(source)
    }

    /// [`error`](Self::error) as a function that may outlive this value.
    pub fn error_of(&self, part: &str) -> impl Fn(DataFusionError) -> Error + Send + Sync + 'static {
        let (files, table, place) = (Arc::clone(&self.files), Table::named(part), self.path.join(part));
        move |source| {
            let damage = if is_of_a_file(&source) { files.damage(table) } else { None };
            damage.unwrap_or_else(|| Error::from_datafusion(place.display().to_string(), source))
        }
    }
}

/// The table in `DESCRIBE table`, and its schema if the statement names one.
fn described_table(statement: &Statement) -> Option<(Option<String>, String)> {
    let Statement::Statement(statement) = statement else { return None };
    let ast::Statement::ExplainTable { table_name, .. } = statement.as_ref() else { return None };
    let mut parts = table_name.0.iter().rev().map(|part| Some(part.as_ident()?.value.clone()));
    let table = parts.next()??;
    Some((parts.next().flatten(), table))
}

/// Adds the views of the events to a session.
async fn event_views(
    context: &SessionContext,
    files: &Files,
    event_types: &Arc<[DeclaredEvent]>,
    info: &Info,
) -> Result<Arc<EventViews>, DataFusionError> {
    let (state, events) = context.table(TableReference::bare(tables::raw_name(&EVENTS))).await?.into_parts();
    let names = &state.config_options().catalog;
    let missing = |what: &str| DataFusionError::Internal(format!("the session has no {what}"));
    let catalog = context.catalog(&names.default_catalog).ok_or_else(|| missing("catalog"))?;
    let stored = catalog.schema(&names.default_schema).ok_or_else(|| missing("schema"))?;
    let tables = Arc::new(OwnViews::new(context, stored, files.tables(), info));
    let views = Arc::new(EventViews::new(tables, events, Arc::clone(event_types), info));
    catalog.register_schema(&names.default_schema, views.clone())?;
    Ok(views)
}
