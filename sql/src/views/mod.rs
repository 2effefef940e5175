//! Views in SQL, one file each. The first line of the file describes a row.

use std::sync::Arc;

use datafusion::{catalog::TableProvider, common::internal_err, error::Result, prelude::SessionContext};

use crate::Info;

macro_rules! view {
    ($name:literal) => {
        view!($name of $name)
    };
    ($name:literal of $file:literal) => {
        ($name, include_str!(concat!($file, ".sql")))
    };
}

/// The name and query of each view. First latencies and locks, by their names in the field; then Perfetto's tables.
/// Each view comes after the views that it uses.
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

/// The description of a view: the first line of its file.
pub(crate) fn sentence(view: &str) -> Option<&'static str> {
    comments(view).next()
}

/// The description of a column that a view computes: a later line of its file, `-- COLUMN: SENTENCE`.
pub(crate) fn column(view: &str, column: &str) -> Option<&'static str> {
    comments(view).skip(1).find_map(|line| line.strip_prefix(column)?.strip_prefix(": "))
}

fn comments(view: &str) -> impl Iterator<Item = &'static str> {
    let query = VIEWS.iter().find(|(name, _)| *name == view).map_or("", |(_, query)| *query);
    query.lines().map_while(|line| line.strip_prefix("-- "))
}

/// The names of the views, without those that need a table that the merge left out, or another view that is left out.
pub(crate) fn available(info: &Info) -> Vec<&'static str> {
    let (mut available, mut absent) = (Vec::new(), info.left_out_tables().collect::<Vec<&str>>());
    for (name, query) in VIEWS {
        let lines = || query.lines().filter(|line| !line.starts_with("--"));
        let needs = |table: &&str| lines().any(|line| line.split_whitespace().any(|word| word == *table));
        if absent.iter().any(needs) { absent.push(name) } else { available.push(*name) }
    }
    available
}

/// The plan of a view.
pub(crate) async fn view(context: &SessionContext, name: &str) -> Result<Arc<dyn TableProvider>> {
    let Some((_, query)) = VIEWS.iter().find(|(view, _)| *view == name) else {
        return internal_err!("expected a view, found {name}");
    };
    Ok(context.sql(query).await?.into_view())
}
