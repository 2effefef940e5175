//! Views that a session defines with `CREATE VIEW`. They are named queries: nothing is written, and nothing is computed
//! before a view is read. The tables, views and parameters in a view keep the meaning that they had when the view was
//! defined.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use datafusion::{
    catalog::TableProvider,
    common::{TableReference, config::ConfigOptions},
    datasource::ViewTable,
    error::DataFusionError,
    logical_expr::{DdlStatement, LogicalPlan},
    optimizer::analyzer::{Analyzer, type_coercion::TypeCoercion},
    prelude::SQLOptions,
    sql::{parser::Statement, sqlparser::ast::Statement as SqlStatement},
};

use crate::{
    Error, Parameters, SuperTrace, distinct_calls,
    foreign::{self, Rest},
    named_arguments, parameters, sqlite_words,
};
use futures::future::BoxFuture;

/// The views that a session has defined, by name.
#[derive(Debug, Default)]
pub(crate) struct SessionViews(Mutex<BTreeMap<String, Arc<dyn TableProvider>>>);

impl SessionViews {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.lock().get(name).map(Arc::clone)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    fn insert(&self, name: &str, view: ViewTable) {
        self.lock().insert(name.to_string(), Arc::new(view));
    }

    /// Returns `false` if there is no view of this name.
    fn remove(&self, name: &str) -> bool {
        self.lock().remove(name).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<dyn TableProvider>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The effect of a statement on the views of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defined {
    /// It defined this view.
    View(String),
    /// It dropped this view, if it existed.
    Dropped(String),
    /// None: it includes this module of Perfetto.
    Included(String),
}

impl SuperTrace {
    /// Executes a statement that defines or drops a view of this session: `CREATE [OR REPLACE] VIEW`, `DROP VIEW`, and
    /// Perfetto's `CREATE PERFETTO TABLE`, `CREATE PERFETTO VIEW` and `CREATE VIRTUAL TABLE … USING SPAN_JOIN`.
    /// Perfetto's `INCLUDE PERFETTO MODULE` is accepted and does nothing. Returns `None` for other statements, which
    /// are queries.
    ///
    /// [`Query`](crate::ErrorKind::Query) when the statement is wrong, or the name is taken;
    /// [`Refused`](crate::ErrorKind::Refused) when it would drop a table or view of the super-trace.
    pub fn define<'a>(
        &'a self,
        statement: &'a str,
        values: &'a Parameters,
    ) -> BoxFuture<'a, Result<Option<Defined>, Error>> {
        Box::pin(async move {
            if let Some(module) = foreign::included(statement) {
                return Ok(Some(Defined::Included(module.to_string())));
            }
            let translated = foreign::translated(statement);
            let text = translated.as_deref().unwrap_or(statement);
            if !speaks_of_views(text) {
                return Ok(None);
            }
            let state = self.session().state();
            let in_query = |error| self.in_query(error);
            let mut statement =
                sqlite_words::parsed(&state, &parameters::numbered(text)).map_err(in_query)?;
            values.apply(&mut statement)?;
            named_arguments::by_place(&mut statement);
            sqlite_words::in_our_words(&mut statement, self.bounds());
            distinct_calls::name(&mut statement);
            if let Some(name) =
                takes_if_not_exists(&mut statement).filter(|name| self.session_views().has(name))
            {
                return Ok(Some(Defined::View(name)));
            }
            match state.statement_to_plan(statement).await.map_err(in_query)? {
                LogicalPlan::Ddl(DdlStatement::CreateView(view)) => {
                    let name = bare(&view.name)?;
                    let plan = self.clock_bound(Arc::unwrap_or_clone(view.input)).map_err(in_query)?;
                    let plan = with_types(plan).map_err(in_query)?;
                    if let Some(column) = repeated(&plan) {
                        return Err(Error::unknown(format!(
                            "expected columns of different names in a view, found `{column}` twice: write AS behind one"
                        )));
                    }
                    let reads = SQLOptions::new()
                        .with_allow_ddl(false)
                        .with_allow_dml(false)
                        .with_allow_statements(false);
                    reads.verify_plan(&plan).map_err(in_query)?;
                    self.free_for_view(&name, view.or_replace)?;
                    self.session_views().insert(&name, ViewTable::new(plan, view.definition));
                    Ok(Some(Defined::View(name)))
                }
                LogicalPlan::Ddl(DdlStatement::DropView(view)) => self.drop_view(&view.name, view.if_exists),
                LogicalPlan::Ddl(DdlStatement::DropTable(table)) => {
                    self.drop_view(&table.name, table.if_exists)
                }
                _ => Ok(None),
            }
        })
    }

    /// The views that this session has defined, by name.
    pub fn defined_views(&self) -> Vec<String> {
        self.session_views().names()
    }

    fn free_for_view(&self, name: &str, replaces: bool) -> Result<(), Error> {
        let is_of_trace = || {
            let exists = self.session().table_exist(TableReference::bare(name)).unwrap_or(true);
            exists || self.event_views().is_left_out(name)
        };
        let why = match self.session_views().has(name) {
            true if replaces => return Ok(()),
            true => "is defined already: write CREATE OR REPLACE VIEW",
            false if is_of_trace() => "this super-trace has",
            false => return Ok(()),
        };
        Err(Error::unknown(format!("expected a free name for a view, found `{name}`, which {why}")))
    }

    fn drop_view(&self, name: &TableReference, if_exists: bool) -> Result<Option<Defined>, Error> {
        let name = bare(name)?;
        let is_there = self.session().table_exist(TableReference::bare(name.as_str())).unwrap_or(true);
        if self.session_views().remove(&name) || if_exists && !is_there {
            return Ok(Some(Defined::Dropped(name)));
        }
        if !is_there {
            return Err(self.unknown_table(&name));
        }
        Err(Error::refused(&format!("DROP of `{name}`, which this session has not defined")))
    }
}

/// Whether a statement defines a view or drops one.
fn speaks_of_views(statement: &str) -> bool {
    let mut rest = Rest(statement);
    if rest.skip("DROP") {
        return rest.skip("VIEW") || rest.skip("TABLE");
    }
    rest.skip("CREATE") && (!rest.skip("OR") || rest.skip("REPLACE")) && rest.skip("VIEW")
}

/// Removes IF NOT EXISTS, which DataFusion's planner does not support here. Returns the name of the view, which must
/// then not be replaced if it exists.
fn takes_if_not_exists(statement: &mut Statement) -> Option<String> {
    let Statement::Statement(statement) = statement else { return None };
    let SqlStatement::CreateView(view) = &mut **statement else { return None };
    let is_kept = std::mem::take(&mut view.if_not_exists) && !view.or_replace;
    let name = view.name.0.first()?.as_ident()?;
    let name = if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() };
    is_kept.then_some(name)
}

/// The plan with the types that its rows will have. Until it is analysed, DataFusion gives a UNION the types of its
/// first part.
fn with_types(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let analyzer = Analyzer::with_rules(vec![Arc::new(TypeCoercion::new())]);
    analyzer.execute_and_check(plan, &ConfigOptions::default(), |_, _| {})
}

/// A column name that occurs more than once.
fn repeated(plan: &LogicalPlan) -> Option<&str> {
    let mut seen = HashSet::new();
    plan.schema().fields().iter().map(|field| field.name().as_str()).find(|name| !seen.insert(*name))
}

fn bare(name: &TableReference) -> Result<String, Error> {
    match name {
        TableReference::Bare { table } if !table.contains('.') => Ok(table.to_string()),
        _ => Err(Error::unknown(format!("expected a view's name without a dot, found `{name}`"))),
    }
}
