//! Views that a session defines for itself: `CREATE VIEW`. They are queries by name: nothing is computed before they are asked, and
//! nothing is written.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use datafusion::{
    catalog::TableProvider,
    common::TableReference,
    datasource::ViewTable,
    logical_expr::{DdlStatement, LogicalPlan},
    prelude::SQLOptions,
};

use crate::{Error, Parameters, SuperTrace, foreign, named_arguments, parameters};

/// The views that a session has defined, by name.
#[derive(Debug, Default)]
pub(crate) struct SessionViews(Mutex<BTreeMap<String, Arc<ViewTable>>>);

impl SessionViews {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.lock().get(name).map(|view| Arc::clone(view) as Arc<dyn TableProvider>)
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

    /// `false` if there is none of this name.
    fn remove(&self, name: &str) -> bool {
        self.lock().remove(name).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ViewTable>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a statement did to the views of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defined {
    /// It has defined this view.
    View(String),
    /// It has dropped this one, if it was there.
    Dropped(String),
}

impl SuperTrace {
    /// Defines a view of this session, or drops one, if that is what the statement says: `CREATE [OR REPLACE] VIEW`, `DROP VIEW`,
    /// and Perfetto's `CREATE PERFETTO TABLE`, `CREATE PERFETTO VIEW` and `CREATE VIRTUAL TABLE … USING SPAN_JOIN`. Otherwise
    /// `None`: it is a query.
    ///
    /// # Errors
    /// [`Query`](crate::ErrorKind::Query) when it is wrong, or the name is taken.
    pub async fn define(&self, statement: &str, values: &Parameters) -> Result<Option<Defined>, Error> {
        let translated = foreign::translated(statement);
        let text = translated.as_deref().unwrap_or(statement);
        if !speaks_of_views(text) {
            return Ok(None);
        }
        let state = self.session().state();
        let dialect = state.config().options().sql_parser.dialect;
        let in_query = |error| self.in_query(error);
        let mut statement =
            state.sql_to_statement(&parameters::numbered(text), &dialect).map_err(in_query)?;
        values.apply(&mut statement)?;
        named_arguments::by_place(&mut statement);
        match state.statement_to_plan(statement).await.map_err(in_query)? {
            LogicalPlan::Ddl(DdlStatement::CreateView(view)) => {
                let name = bare(&view.name)?;
                let plan = self.clock_bound(Arc::unwrap_or_clone(view.input)).map_err(in_query)?;
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
            LogicalPlan::Ddl(DdlStatement::DropTable(table)) => self.drop_view(&table.name, table.if_exists),
            _ => Ok(None),
        }
    }

    fn free_for_view(&self, name: &str, replaces: bool) -> Result<(), Error> {
        let why = match self.session_views().has(name) {
            true if replaces => return Ok(()),
            true => "is defined already: write CREATE OR REPLACE VIEW",
            false if self.session().table_exist(TableReference::bare(name)).is_ok_and(|exists| !exists) => {
                return Ok(());
            }
            false => "every session has",
        };
        Err(Error::unknown(format!("expected a free name for a view, found `{name}`, which {why}")))
    }

    fn drop_view(&self, name: &TableReference, if_exists: bool) -> Result<Option<Defined>, Error> {
        let name = bare(name)?;
        if self.session_views().remove(&name) || if_exists && !self.event_views().has(&name) {
            return Ok(Some(Defined::Dropped(name)));
        }
        Err(Error::refused(&format!("DROP of `{name}`, which this session has not defined")))
    }
}

/// Whether a statement may define a view or drop one.
fn speaks_of_views(statement: &str) -> bool {
    let words = foreign::without_comments(statement).split_whitespace().map(str::to_ascii_uppercase);
    let words: Vec<String> = words.take(4).collect();
    matches!(
        words.iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
        ["DROP", "VIEW" | "TABLE", ..] | ["CREATE", "VIEW", ..] | ["CREATE", "OR", "REPLACE", "VIEW"]
    )
}

fn bare(name: &TableReference) -> Result<String, Error> {
    match name {
        TableReference::Bare { table } => Ok(table.to_string()),
        _ => Err(Error::unknown(format!("expected a view's name without a dot, found `{name}`"))),
    }
}
