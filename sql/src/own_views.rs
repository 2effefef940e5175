//! The views that every super-trace has: its tables with nanoseconds, Perfetto's names, latencies and locks.
//!
//! A view is planned when it is first named. To plan all of them took 25 of the 52 ms in which `SELECT 1` was answered (AMD
//! EPYC).

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use datafusion::{
    catalog::{SchemaProvider, TableProvider},
    common::plan_err,
    datasource::TableType,
    error::Result,
    execution::SessionState,
    prelude::SessionContext,
};
use futures::future::BoxFuture;
use sigmund_model::tables::Table;
use tokio::sync::OnceCell;

use crate::{Info, perfetto, supertrace::OWN_SCHEMA, tables, views};

/// The tables of a session as they are stored, and the views.
pub(crate) struct OwnViews {
    stored: Arc<dyn SchemaProvider>,
    /// The session, while it is open. It owns its tables and views, so these cannot own it.
    session: Box<dyn Fn() -> Option<SessionState> + Send + Sync>,
    info: Info,
    views: BTreeMap<&'static str, View>,
}

struct View {
    of: Of,
    planned: OnceCell<Arc<dyn TableProvider>>,
}

#[derive(Clone, Copy)]
enum Of {
    /// A table, with nanoseconds.
    Ticks(&'static Table),
    Perfetto,
    Sql,
}

impl OwnViews {
    /// Views of the tables that `stored` has, which are tables of `context`.
    pub(crate) fn new(
        context: &SessionContext,
        stored: Arc<dyn SchemaProvider>,
        of: impl Iterator<Item = &'static Table>,
        info: &Info,
    ) -> OwnViews {
        let with_ticks =
            of.filter(|table| tables::has_ticks(table)).map(|table| (table.name, Of::Ticks(table)));
        let of_perfetto = perfetto::VIEWS.into_iter().map(|name| (name, Of::Perfetto));
        let in_sql = views::available(info).into_iter().map(|name| (name, Of::Sql));
        let all = with_ticks.chain(of_perfetto).chain(in_sql);
        let session = context.state_weak_ref();
        OwnViews {
            stored,
            session: Box::new(move || Some(session.upgrade()?.read().clone())),
            info: info.clone(),
            views: all.map(|(name, of)| (name, View { of, planned: OnceCell::new() })).collect(),
        }
    }

    /// Boxed for its callers' compiler: see [`Opaque`](crate::opaque::Opaque).
    fn plan<'a>(&'a self, name: &'a str, of: Of) -> BoxFuture<'a, Result<Arc<dyn TableProvider>>> {
        let planned = async move {
            let Some(mut state) = (self.session)() else {
                return plan_err!("{name}: the session of this view is closed");
            };
            // In a fleet, names without a schema refer to all hosts. This view is of one.
            state.config_mut().options_mut().catalog.default_schema = OWN_SCHEMA.into();
            let context = SessionContext::new_with_state(state);
            match of {
                Of::Ticks(table) => tables::view(&context, table, &self.info).await,
                Of::Perfetto => perfetto::view(&context, name, &self.info).await,
                Of::Sql => views::view(&context, name).await,
            }
        };
        Box::pin(planned)
    }
}

#[async_trait]
impl SchemaProvider for OwnViews {
    fn table_names(&self) -> Vec<String> {
        let views = self.views.keys().map(ToString::to_string);
        self.stored.table_names().into_iter().chain(views).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(view) = self.views.get(name) else { return self.stored.table(name).await };
        let planned = view.planned.get_or_try_init(|| self.plan(name, view.of)).await?;
        Ok(Some(Arc::clone(planned)))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        match self.views.contains_key(name) {
            true => Ok(Some(TableType::View)),
            false => self.stored.table_type(name).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.views.contains_key(name) || self.stored.table_exist(name)
    }
}

impl fmt::Debug for OwnViews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnViews").field("views", &self.views.keys()).finish_non_exhaustive()
    }
}
