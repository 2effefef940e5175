//! A view per event name, with the declared fields as columns.
//!
//! Columns: `ts_tick`, `ts_ns`, `level`, `cpu`, `lwp`, `thread`, then the fields. Several event types with one name (a
//! kernel and a user event, or events of two programs) share a view, which has the fields of all. A field that an event
//! does not have is NULL. If a table has the name of an event, the view is called `event_NAME`. If a field has the name
//! of another column, it is called `field_NAME`, then `field_NAME_2` and so on.
//!
//! A view is made only when a query names it, because a trace may declare 100 000 events and a query names few of them.
//! It has at most [`MOST_COLUMNS`] columns of fields. There is a note about fields that are left out.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use datafusion::{
    catalog::{SchemaProvider, TableProvider},
    common::plan_err,
    datasource::{TableType, ViewTable},
    error::{DataFusionError, Result},
    logical_expr::{LogicalPlan, LogicalPlanBuilder, ident, lit},
};
use sigmund_model::{
    EventType,
    tables::{ALL, OPTIONAL},
    vocabulary::KnownEvent,
};

use crate::{
    DeclaredEvent, Info,
    field_columns::{self, MOST_COLUMNS},
    nanos,
    opaque::Opaque,
    perfetto,
    session_views::SessionViews,
    tables::raw_name,
    views,
};

/// Maximum number of notes.
const MOST_NOTES: usize = 20;

/// The tables of a session, and a view for each event name.
#[derive(Debug)]
pub(crate) struct EventViews {
    tables: Arc<dyn SchemaProvider>,
    /// A plan that reads all events.
    events: Opaque<LogicalPlan>,
    declared: Arc<[DeclaredEvent]>,
    info: Info,
    /// The event types in each view, as indices into `declared`; never empty.
    types: HashMap<String, Vec<usize>>,
    /// The view of each event name.
    views: BTreeMap<String, String>,
    notes: Mutex<BTreeMap<String, String>>,
    defined: Arc<SessionViews>,
}

impl EventViews {
    /// Adds views of these events to the tables of a session.
    pub(crate) fn new(
        tables: Arc<dyn SchemaProvider>,
        events: LogicalPlan,
        declared: Arc<[DeclaredEvent]>,
        info: &Info,
    ) -> EventViews {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, event) in declared.iter().enumerate() {
            by_name.entry(&event.ty.name).or_default().push(place);
        }
        let views = view_names(by_name.keys().copied());
        let types = by_name.into_iter().map(|(name, places)| (views[name].clone(), places)).collect();
        EventViews {
            tables,
            events: Opaque::new(events),
            declared,
            info: info.clone(),
            types,
            views,
            notes: Mutex::default(),
            defined: Arc::default(),
        }
    }

    /// The view of an event name.
    pub(crate) fn of(&self, event: &str) -> Option<&str> {
        self.views.get(event).map(String::as_str)
    }

    /// The names of all tables and views, including those in `defined`: first tables, then views, then the tables as
    /// they are stored, then the views of events that occur. Each group is sorted by name.
    pub(crate) fn names(&self, defined: &SessionViews) -> Vec<String> {
        let group = |name: &str| match name {
            _ if ALL.iter().any(|table| table.name == name) => 0,
            _ if name.starts_with("raw_") => 2,
            _ => 1,
        };
        let mut names = self.tables.table_names();
        names.extend(defined.names());
        names.sort_by(|one, other| group(one).cmp(&group(other)).then_with(|| one.cmp(other)));
        let occurs = |view: &&String| self.types[*view].iter().any(|place| self.declared[*place].events > 0);
        names.extend(self.views.values().filter(occurs).cloned());
        names
    }

    /// Whether there is a table or view of this name, including views of declared events that do not occur.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.table_exist(name)
    }

    /// The description of a view of events.
    pub(crate) fn sentence(&self, view: &str) -> Option<String> {
        let types = self.types.get(view)?.iter().map(|place| &self.declared[*place]);
        let events: u64 = types.clone().map(|event| event.events).sum();
        let mut sources: Vec<&str> = types.clone().filter_map(|event| event.source.as_deref()).collect();
        sources.sort();
        sources.dedup();
        let levels: BTreeSet<&str> = types.map(|event| event.ty.level.name()).collect();
        let level = levels.into_iter().collect::<Vec<_>>().join(", ");
        let of = if sources.is_empty() { String::new() } else { format!(" of {}", sources.join(", ")) };
        Some(format!("{level}: {events} events{of}."))
    }

    /// The descriptions of the field columns of a view of events, by column name.
    pub(crate) fn field_sentences(&self, view: &str) -> BTreeMap<String, String> {
        let mut sentences = BTreeMap::new();
        let places = self.types.get(view).into_iter().flatten().take(MOST_DESCRIBED);
        for ty in places.map(|place| &self.declared[*place].ty) {
            let known = KnownEvent::of(ty);
            for (column, position) in field_columns::positions(ty) {
                let role = known.and_then(|known| known.role(position));
                let of_event = || format!("`{column}` of the event.");
                let sentence = role.map_or_else(of_event, |role| role.sentence().to_string());
                sentences.entry(column).or_insert(sentence);
            }
        }
        sentences
    }

    /// The views that the session has defined. In a fleet this is empty here: its views refer to all hosts.
    pub(crate) fn defined(&self) -> &Arc<SessionViews> {
        &self.defined
    }

    /// Notes about columns that were left out of views. Only of views that queries have used so far.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn view(&self, name: &str, places: &[usize]) -> Result<ViewTable> {
        let types: Vec<&EventType> = places.iter().map(|place| &self.declared[*place].ty).collect();
        let event = types[0].name.as_str();
        let mut columns = vec![ident("ts_tick"), nanos::instant(ident("ts_tick"), &self.info).alias("ts_ns")];
        columns.extend(["level", "cpu", "lwp", "thread"].map(ident));
        let fields = field_columns::of(&types);
        if fields.left_out > 0 {
            self.note(name, event, fields.columns.len(), fields.left_out);
        }
        columns.extend(fields.columns);
        let plan = LogicalPlanBuilder::from((*self.events).clone())
            .filter(ident("name").eq(lit(event)))?
            .project(columns)?
            .build()?;
        Ok(ViewTable::new(plan, None))
    }

    /// Whether the merge left out the table that has this name.
    pub(crate) fn is_left_out(&self, name: &str) -> bool {
        self.left_out(name).is_some()
    }

    /// The table with this name, if the merge left it out.
    fn left_out(&self, name: &str) -> Option<&'static str> {
        let table = OPTIONAL.iter().find(|table| table.name == name || raw_name(table) == name)?;
        self.info.left_out_tables().any(|left_out| left_out == table.name).then_some(table.name)
    }

    fn note(&self, view: &str, event: &str, columns: usize, left_out: usize) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < MOST_NOTES {
            let note = format!(
                "the view {view} has {columns} columns of fields, and {left_out} fields of {event} are in none: \
                 no view has more than {MOST_COLUMNS}. args and texts of the table events have all"
            );
            notes.insert(view.to_string(), note);
        }
    }
}

/// The maximum number of event types with one name whose fields are described.
const MOST_DESCRIBED: usize = 64;

#[async_trait]
impl SchemaProvider for EventViews {
    /// In the order of [`EventViews::names`]. A declared event that does not occur has a view, too; it is empty.
    fn table_names(&self) -> Vec<String> {
        self.names(&self.defined)
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if let Some(view) = self.defined.get(name) {
            return Ok(Some(view));
        }
        match self.types.get(name) {
            Some(places) => Ok(Some(Arc::new(self.view(name, places)?))),
            None if self.tables.table_exist(name) => self.tables.table(name).await,
            None => match self.left_out(name) {
                Some(table) => {
                    plan_err!("the table {table} was left out when this super-trace was merged (--tables)")
                }
                None => Ok(None),
            },
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        match self.types.contains_key(name) || self.defined.has(name) {
            true => Ok(Some(TableType::View)),
            false => self.tables.table_type(name).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.types.contains_key(name) || self.tables.table_exist(name) || self.defined.has(name)
    }
}

/// The names of the views. Events whose name is free keep it. The other names are prefixed until they are free.
fn view_names<'a>(events: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let mut taken: BTreeSet<String> = ALL.iter().flat_map(|t| [t.name.to_string(), raw_name(t)]).collect();
    taken.extend(perfetto::VIEWS.map(String::from));
    taken.extend(views::names().map(String::from));
    let (displaced, free): (Vec<&str>, Vec<&str>) =
        events.partition(|name| name.is_empty() || taken.contains(*name));
    let mut views = BTreeMap::new();
    for name in free {
        taken.insert(name.to_string());
        views.insert(name.to_string(), name.to_string());
    }
    for name in displaced {
        let view = free_name(name, &taken);
        taken.insert(view.clone());
        views.insert(name.to_string(), view);
    }
    views
}

/// `event_NAME`, with more prefixes if needed. Few are needed, because only names of tables are taken.
fn free_name(name: &str, taken: &BTreeSet<String>) -> String {
    let mut free = format!("event_{name}");
    while taken.contains(&free) {
        free.insert_str(0, "event_");
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
