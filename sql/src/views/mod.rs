//! Views in SQL, a file each, whose first line says what a row is.

use datafusion::{common::TableReference, error::Result, prelude::SessionContext};

use crate::Info;

macro_rules! views {
    ($($name:literal,)*) => { &[$(($name, include_str!(concat!($name, ".sql"))),)*] };
}

/// Name and query of each view; latencies and locks by the names that the field has for them, then Perfetto's tables.
const VIEWS: &[(&str, &str)] = views![
    "wakeup_latency",
    "run_queue_latency",
    "ready_latency",
    "off_cpu",
    "lock_wait",
    "lock_hold",
    "thread",
    "process",
    "thread_track",
    "slice",
    "counter",
    "cpu_counter_track",
    "process_counter_track",
];

/// The names of the views.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    VIEWS.iter().map(|(name, _)| *name)
}

/// The sentence of a view: the first line of its file.
pub(crate) fn sentence(view: &str) -> Option<&'static str> {
    comments(view).next()
}

/// The sentence of a column that a view computes: a later line of its file, `-- COLUMN: SENTENCE`.
pub(crate) fn column(view: &str, column: &str) -> Option<&'static str> {
    comments(view).skip(1).find_map(|line| line.strip_prefix(column)?.strip_prefix(": "))
}

fn comments(view: &str) -> impl Iterator<Item = &'static str> {
    let query = VIEWS.iter().find(|(name, _)| *name == view).map_or("", |(_, query)| *query);
    query.lines().map_while(|line| line.strip_prefix("-- "))
}

/// Registers the views. One that needs a table that the merge left out is not there.
pub(crate) async fn register(context: &SessionContext, info: &Info) -> Result<()> {
    for (name, query) in VIEWS {
        let needs = |table: &str| query.split_whitespace().any(|word| word == table);
        if info.left_out_tables().any(needs) {
            continue;
        }
        let view = context.sql(query).await?.into_view();
        context.register_table(TableReference::bare(*name), view)?;
    }
    Ok(())
}
