//! Registers the tables of a super-trace and the views that add nanoseconds to them.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use datafusion::{
    common::TableReference,
    datasource::{
        file_format::parquet::ParquetFormat,
        listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl},
    },
    error::{DataFusionError, Result},
    logical_expr::{Expr, ident},
    object_store::local::LocalFileSystem,
    prelude::SessionContext,
};
use sigmund_model::tables::{EVENTS, SYSCALLS, Table};
use url::Url;

use crate::{Info, nanos};

/// A table's name as it lies in Parquet, without nanoseconds.
pub(crate) fn raw_name(table: &Table) -> String {
    if has_ticks(table) { format!("raw_{}", table.name) } else { table.name.to_string() }
}

fn has_ticks(table: &Table) -> bool {
    table.columns.iter().any(|c| c.name.ends_with("_tick"))
}

/// The folder of a super-trace, and what names it in URLs of sessions. A path of the file system cannot do that: object
/// stores know no `..`, no control characters, and nothing but UTF-8.
#[derive(Debug)]
pub(crate) struct Folder {
    root: Url,
    files: Arc<LocalFileSystem>,
}

/// How many folders were opened: each has a name of its own, so that one session can read several.
static OPENED: AtomicU64 = AtomicU64::new(0);

impl Folder {
    /// The folder of this path, whatever the path is.
    pub(crate) fn open(super_trace: &Path) -> Result<Folder> {
        let files = Arc::new(LocalFileSystem::new_with_prefix(super_trace)?);
        let root = url(&format!("supertrace://open-{}/", OPENED.fetch_add(1, Ordering::Relaxed)))?;
        Ok(Folder { root, files })
    }

    /// The session can read it.
    pub(crate) fn register(&self, context: &SessionContext) {
        let files: Arc<LocalFileSystem> = Arc::clone(&self.files);
        context.register_object_store(&self.root, files);
    }
}

fn url(text: &str) -> Result<Url> {
    Url::parse(text).map_err(|e| DataFusionError::Internal(format!("{text}: {e}")))
}

/// Registers the files of one table, in a folder that has been registered.
pub(crate) fn register(context: &SessionContext, folder: &Folder, table: &Table) -> Result<()> {
    let name = TableReference::bare(raw_name(table));
    let of_table = url(&format!("{}{}/", folder.root, table.name))?;
    // The session keeps lists of files by this name and the path behind the root.
    let scope = TableReference::partial(folder.root.as_str(), table.name);
    let url = ListingTableUrl::try_new(of_table, None)?.with_table_ref(scope);
    let format = ParquetFormat::default().with_enable_pruning(true);
    let mut options = ListingOptions::new(Arc::new(format)).with_file_extension(".parquet");
    if table.name == EVENTS.name {
        // A query that wants the order of time, or a range of it, then needs no sort.
        options = options.with_file_sort_order(vec![vec![ident("ts_tick").sort(true, false)]]);
    }
    let config = ListingTableConfig::new(url).with_listing_options(options).with_schema(table.schema());
    let provider = ListingTable::try_new(config)?
        .with_cache(context.runtime_env().cache_manager.get_file_statistic_cache());
    context.register_table(name, Arc::new(provider))?;
    Ok(())
}

/// Registers the view that users know by the table's name: its columns, and `X_ns` beside each `X_tick`.
pub(crate) async fn register_view(context: &SessionContext, table: &Table, info: &Info) -> Result<()> {
    if !has_ticks(table) {
        return Ok(());
    }
    let mut columns: Vec<Expr> = table.columns.iter().map(|c| ident(c.name)).collect();
    // `clocks` has columns of its own for readings in nanoseconds.
    let has = |name: &str| table.columns.iter().any(|column| column.name == name);
    let in_nanos = |tick: &str| tick.strip_suffix("_tick").is_some_and(|stem| has(&format!("{stem}_ns")));
    let ticks = table.columns.iter().filter(|column| !in_nanos(column.name));
    columns.extend(ticks.filter_map(|column| nanos::beside(column.name, info)));
    if table.name == SYSCALLS.name {
        let on_cpu = ident("dur_tick") - ident("off_cpu_tick");
        columns.push(nanos::of_length(on_cpu.clone(), info).alias("on_cpu_ns"));
        columns.push(on_cpu.alias("on_cpu_tick"));
    }
    let view = context.table(TableReference::bare(raw_name(table))).await?.select(columns)?.into_view();
    context.register_table(TableReference::bare(table.name), view)?;
    Ok(())
}
