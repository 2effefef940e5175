//! A view per event name, with the declared fields as columns.
//!
//! Columns: `ts_tick`, `ts_ns`, `level`, `cpu`, `lwp`, `thread`, then the fields. Several types of one name
//! (a kernel and a user event, or two programs) share a view that has the fields of all; a field that an event
//! has not is NULL there. Names come from strangers: a view whose name is taken by a table is called
//! `event_NAME`, a field whose name is taken `field_NAME`.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::{
    common::TableReference,
    error::Result,
    logical_expr::{ident, lit},
    prelude::SessionContext,
};
use sigmund_model::{
    EventType,
    tables::{ALL, EVENTS},
};

use crate::{DeclaredEvent, Info, field_columns, nanos, perfetto, tables::raw_name};

/// Registers all of them. Returns the name of the view of each event name.
pub(crate) async fn register(
    context: &SessionContext,
    declared: &[DeclaredEvent],
    info: &Info,
) -> Result<BTreeMap<String, String>> {
    let mut by_name: BTreeMap<&str, Vec<&EventType>> = BTreeMap::new();
    for event in declared {
        by_name.entry(&event.ty.name).or_default().push(&event.ty);
    }
    let views = view_names(by_name.keys().copied());
    let events = context.table(TableReference::bare(raw_name(&EVENTS))).await?;
    for (name, types) in &by_name {
        let mut columns = vec![ident("ts_tick"), nanos::instant("ts_tick", info).alias("ts_ns")];
        columns.extend(["level", "cpu", "lwp", "thread"].map(ident));
        columns.extend(field_columns::of(types)?);
        let view = events.clone().filter(ident("name").eq(lit(*name)))?.select(columns)?;
        context.register_table(TableReference::bare(views[*name].as_str()), view.into_view())?;
    }
    Ok(views)
}

/// The names of the views. Events whose name is free keep it; the others are prefixed until theirs is free.
fn view_names<'a>(events: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let mut taken: BTreeSet<String> = ALL.iter().flat_map(|t| [t.name.to_string(), raw_name(t)]).collect();
    taken.extend([perfetto::SCHED_SLICE, perfetto::THREAD_STATE].map(String::from));
    let (displaced, free): (Vec<&str>, Vec<&str>) =
        events.partition(|name| name.is_empty() || taken.contains(*name));
    let mut views = BTreeMap::new();
    for name in free {
        taken.insert(name.to_string());
        views.insert(name.to_string(), name.to_string());
    }
    for name in displaced {
        let view = free_name("event_", name, &taken);
        taken.insert(view.clone());
        views.insert(name.to_string(), view);
    }
    views
}

/// `name` if it is free, else with as many prefixes as it takes.
pub(crate) fn free_name(prefix: &str, name: &str, taken: &BTreeSet<String>) -> String {
    let mut free = name.to_string();
    while free.is_empty() || taken.contains(&free) {
        free.insert_str(0, prefix);
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_named_like_a_table_gets_a_prefix_and_keeps_clear_of_others() {
        let views = view_names(["events", "event_events", "sched_switch", ""].into_iter());
        assert_eq!(views["events"], "event_event_events");
        assert_eq!(views["event_events"], "event_events");
        assert_eq!(views["sched_switch"], "sched_switch");
        assert_eq!(views[""], "event_");
    }
}
