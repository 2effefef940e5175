//! Views in SQL, a file each, whose first line says what a row is.

use datafusion::{common::TableReference, error::Result, prelude::SessionContext};

use crate::Info;

macro_rules! view {
    ($name:literal) => {
        view!($name of $name)
    };
    ($name:literal of $file:literal) => {
        ($name, include_str!(concat!($file, ".sql")))
    };
}

/// Name and query of each view; latencies and locks by the names that the field has for them, then Perfetto's tables. Each comes
/// after those that it names.
const VIEWS: &[(&str, &str)] = &[
    view!("wakeup_latency"),
    view!("run_queue_latency"),
    view!("ready_latency"),
    view!("off_cpu"),
    view!("lock_wait"),
    view!("lock_hold"),
    view!("thread"),
    view!("process"),
    view!("thread_track"),
    view!("slice"),
    view!("slices" of "slice"),
    view!("thread_slice"),
    view!("counter"),
    view!("cpu_counter_track"),
    view!("process_counter_track"),
    view!("counter_track"),
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

/// Registers the views. One that needs a table that the merge left out, or such a view, is not there.
pub(crate) async fn register(context: &SessionContext, info: &Info) -> Result<()> {
    let mut absent: Vec<&str> = info.left_out_tables().collect();
    for (name, query) in VIEWS {
        let lines = || query.lines().filter(|line| !line.starts_with("--"));
        let needs = |table: &&str| lines().any(|line| line.split_whitespace().any(|word| word == *table));
        if absent.iter().any(needs) {
            absent.push(name);
            continue;
        }
        let view = context.sql(query).await?.into_view();
        context.register_table(TableReference::bare(*name), view)?;
    }
    Ok(())
}
