//! Registers the tables of a super-trace, and plans the views that add nanoseconds to them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use datafusion::{
    catalog::TableProvider,
    common::TableReference,
    datasource::{
        file_format::parquet::ParquetFormat,
        listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl},
    },
    error::{DataFusionError, Result},
    logical_expr::{Expr, ident},
    prelude::SessionContext,
};
use sigmund_model::tables::{EVENTS, SYSCALLS, Table};
use url::Url;

use crate::{Info, files::OpenFiles, nanos};

/// The name of a table as it is stored in Parquet, without nanoseconds.
pub(crate) fn raw_name(table: &Table) -> String {
    if has_ticks(table) { format!("raw_{}", table.name) } else { table.name.to_string() }
}

pub(crate) fn has_ticks(table: &Table) -> bool {
    table.columns.iter().any(|c| c.name.ends_with("_tick"))
}

/// The open files of a super-trace, with a URL for sessions. A path of the file system cannot be used in the URL:
/// object stores do not support `..`, control characters, or anything other than UTF-8.
#[derive(Debug)]
pub(crate) struct Root {
    url: Url,
    files: Arc<OpenFiles>,
}

/// The number of super-traces opened so far. It gives each a different URL, so that one session can read several.
static OPENED: AtomicU64 = AtomicU64::new(0);

impl Root {
    /// A root for these files.
    pub(crate) fn of(files: OpenFiles) -> Result<Root> {
        let url = url(&format!("supertrace://open-{}/", OPENED.fetch_add(1, Ordering::Relaxed)))?;
        Ok(Root { url, files: Arc::new(files) })
    }

    /// Its URL in sessions.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Makes the files readable for a session.
    pub(crate) fn register(&self, context: &SessionContext) {
        let files: Arc<OpenFiles> = Arc::clone(&self.files);
        context.register_object_store(&self.url, files);
    }
}

fn url(text: &str) -> Result<Url> {
    Url::parse(text).map_err(|e| DataFusionError::Internal(format!("{text}: {e}")))
}

/// Registers the files of one table. Their root has to be registered before.
pub(crate) fn register(context: &SessionContext, root: &Root, table: &Table) -> Result<()> {
    let name = TableReference::bare(raw_name(table));
    let of_table = url(&format!("{}{}/", root.url, table.name))?;
    // The session caches lists of files by this name and the path below the root.
    let scope = TableReference::partial(root.url.as_str(), table.name);
    let url = ListingTableUrl::try_new(of_table, None)?.with_table_ref(scope);
    let format = ParquetFormat::default().with_enable_pruning(true);
    let mut options = ListingOptions::new(Arc::new(format)).with_file_extension(".parquet");
    if table.name == EVENTS.name {
        // So a query that needs time order, or a range of it, needs no sort.
        options = options.with_file_sort_order(vec![vec![ident("ts_tick").sort(true, false)]]);
    }
    let config = ListingTableConfig::new(url).with_listing_options(options).with_schema(table.schema());
    let provider = ListingTable::try_new(config)?
        .with_cache(context.runtime_env().cache_manager.get_file_statistic_cache());
    context.register_table(name, Arc::new(provider))?;
    Ok(())
}

/// The view that users know by the name of a table with ticks. It has the columns of the table, and `X_ns` for each
/// `X_tick`.
pub(crate) async fn view(
    context: &SessionContext,
    table: &Table,
    info: &Info,
) -> Result<Arc<dyn TableProvider>> {
    let mut columns: Vec<Expr> = table.columns.iter().map(|c| ident(c.name)).collect();
    // `clocks` already has columns for readings in nanoseconds.
    let has = |name: &str| table.columns.iter().any(|column| column.name == name);
    let in_nanos = |tick: &str| tick.strip_suffix("_tick").is_some_and(|stem| has(&format!("{stem}_ns")));
    let ticks = table.columns.iter().filter(|column| !in_nanos(column.name));
    columns.extend(ticks.filter_map(|column| nanos::beside(column.name, info)));
    if table.name == SYSCALLS.name {
        let on_cpu = ident("dur_tick") - ident("off_cpu_tick");
        columns.push(nanos::length(on_cpu.clone(), info).alias("on_cpu_ns"));
        columns.push(on_cpu.alias("on_cpu_tick"));
    }
    Ok(context.table(TableReference::bare(raw_name(table))).await?.select(columns)?.into_view())
}
