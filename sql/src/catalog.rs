//! The catalog of a session: its tables and views with descriptions, and their columns with units.

use std::{collections::BTreeSet, sync::Arc};

use arrow::{
    array::{ArrayRef, RecordBatch, StringArray},
    datatypes::{DataType, Field, SchemaRef},
};
use datafusion::{common::TableReference, prelude::DataFrame};
use futures::future::BoxFuture;
use sigmund_model::tables::{CLOCKS, Table};

use crate::{
    Error, SuperTrace,
    fleet::{HOST, HOST_SENTENCE},
    nearest, perfetto, views,
};

/// The kind of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// A table of the model.
    Table,
    /// A view of tables.
    View,
    /// The events of one name.
    Event,
    /// A table as it is stored, without nanoseconds.
    Stored,
}

impl RelationKind {
    /// The word for it: table, view, event or stored.
    pub fn name(self) -> &'static str {
        match self {
            RelationKind::Table => "table",
            RelationKind::View => "view",
            RelationKind::Event => "event",
            RelationKind::Stored => "stored",
        }
    }
}

/// A table or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Its name in a query, without quotes.
    pub name: String,
    /// What it is.
    pub kind: RelationKind,
    /// What a row is.
    pub sentence: String,
}

/// A column of a table or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name in a query, without quotes.
    pub column: String,
    /// Its SQL type, or Arrow's name if SQL has none.
    pub ty: String,
    /// Its unit; empty if it has none.
    pub unit: &'static str,
    /// What it holds.
    pub sentence: String,
}

impl SuperTrace {
    /// Tables, then views, then tables as they are stored, then the events that occur. Each group is sorted by name.
    pub fn relations(&self) -> Vec<Relation> {
        self.names().into_iter().map(|name| self.relation(name)).collect()
    }

    fn relation(&self, name: String) -> Relation {
        let (kind, sentence) = if self.session_views().has(&name) {
            (RelationKind::View, "Defined in this session.".to_string())
        } else if let Some(table) = Table::named(&name) {
            (RelationKind::Table, table.doc.to_string())
        } else if let Some(events) = self.event_views().sentence(&name) {
            (RelationKind::Event, events)
        } else if let Some(table) = name.strip_prefix("raw_").and_then(Table::named) {
            (RelationKind::Stored, format!("The table {} as it is stored, without nanoseconds.", table.name))
        } else {
            let sentence = views::sentence(&name).or_else(|| perfetto::sentence(&name));
            (RelationKind::View, sentence.unwrap_or_default().to_string())
        };
        Relation { name, kind, sentence }
    }

    /// The columns of a table or view. If `name` begins with the name of an attached super-trace and a dot, the table
    /// is one of that super-trace.
    ///
    /// # Errors
    /// [`Query`](crate::ErrorKind::Query) when there is none of this name, with the nearest names.
    pub fn describe<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, std::result::Result<Vec<Described>, Error>> {
        Box::pin(async move {
            let attached =
                name.split_once('.').and_then(|(of, table)| Some((self.attached().get(of)?, table)));
            let (of, table) = attached.unwrap_or((self, name));
            of.describe_own(table).await
        })
    }

    async fn describe_own(&self, name: &str) -> std::result::Result<Vec<Described>, Error> {
        let columns = self.columns(name).await?;
        let mut of_fields = self.event_views().field_sentences(name);
        let of_column = |field: &Arc<Field>| {
            let mut found = described(name, field);
            if found.sentence.is_empty() {
                found.sentence = of_fields.remove(&found.column).unwrap_or_default();
            }
            found
        };
        Ok(columns.fields().iter().map(of_column).collect())
    }

    /// The columns of a table or view of this super-trace, in their Arrow types.
    ///
    /// # Errors
    /// [`Query`](crate::ErrorKind::Query) when there is none of this name, with the nearest names.
    pub fn columns<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::result::Result<SchemaRef, Error>> {
        Box::pin(async move {
            let is_of_another = || self.attached().values().any(|other| other.event_views().has(name));
            let is_here = self.event_views().has(name) || self.session_views().has(name);
            if !is_here && (self.hosts().is_empty() || !is_of_another()) {
                return Err(self.unknown_table(name));
            }
            let table = self.session().table(TableReference::bare(name)).await;
            let table = table.map_err(|error| Error::from_datafusion(name, error))?;
            Ok(Arc::clone(table.schema().inner()))
        })
    }

    /// The error for an unknown name of a table or view, with the nearest names. Names of table functions are shown
    /// with parentheses.
    pub(crate) fn unknown_table(&self, name: &str) -> Error {
        let tables = self.names();
        let functions: BTreeSet<String> = self.session().state().table_functions().keys().cloned().collect();
        let near = nearest(name, tables.iter().chain(&functions).map(String::as_str));
        let is_function = |near: &str| functions.contains(near) && !tables.iter().any(|table| table == near);
        let near =
            near.iter().map(|near| if is_function(near) { format!("{near}()") } else { near.to_string() });
        let near: Vec<String> = near.collect();
        let hint = if near.is_empty() { String::new() } else { format!("; nearest: {}", near.join(", ")) };
        Error::unknown(format!("expected a table, view or table function, found `{name}`{hint}"))
    }

    /// The answer to `DESCRIBE name`.
    pub(crate) async fn description(&self, name: &str) -> std::result::Result<DataFrame, Error> {
        let columns = self.describe(name).await?;
        let texts = |of: fn(&Described) -> &str| -> ArrayRef {
            let texts = columns.iter().map(|column| Some(of(column)).filter(|text| !text.is_empty()));
            Arc::new(texts.collect::<StringArray>())
        };
        let batch = RecordBatch::try_from_iter([
            ("column", texts(|column| &column.column)),
            ("type", texts(|column| &column.ty)),
            ("unit", texts(|column| column.unit)),
            ("what", texts(|column| &column.sentence)),
        ]);
        let frame = batch.map_err(Into::into).and_then(|batch| self.session().read_batch(batch));
        frame.map_err(|error| Error::from_datafusion(name, error))
    }
}

/// Description of the computed column of `syscalls`.
const ON_CPU: &str = "The part of its length in which the LWP was on a CPU; NULL if that is not known.";

pub(crate) fn described(relation: &str, field: &Field) -> Described {
    let name = field.name();
    let known = || field.metadata().get("doc").cloned();
    let of_view = || match (relation, name.as_str()) {
        (_, HOST) if field.metadata().is_empty() => Some(HOST_SENTENCE),
        ("syscalls", "on_cpu_tick") => Some(ON_CPU),
        _ => views::column(relation, name).or_else(|| perfetto::column(relation, name)),
    };
    let sentence = of_view().map(String::from).or_else(known).or_else(|| in_nanos(name)).unwrap_or_default();
    Described { column: name.clone(), ty: type_name(field.data_type()), unit: unit(relation, name), sentence }
}

/// The description of a column in nanoseconds that is computed from a column in ticks.
pub(crate) fn in_nanos(name: &str) -> Option<String> {
    let stem = name.strip_suffix("_ns")?;
    let from = if matches!(stem, "ts" | "from" | "to" | "before" | "after" | "parent") {
        ", since the first event"
    } else {
        ""
    };
    Some(format!("`{stem}_tick` in nanoseconds{from}; NULL if the rate of the clock is not known."))
}

fn unit(relation: &str, name: &str) -> &'static str {
    match name {
        _ if name.ends_with("_tick") => "tick",
        _ if name.ends_with("_ns") => "ns",
        "ns" | "tick" if relation == CLOCKS.name => {
            if name == "ns" {
                "ns"
            } else {
                "tick"
            }
        }
        "ts" | "dur" | "start_ts" | "end_ts" | "ts_end" if perfetto::is_of_perfetto(relation) => "ns",
        _ => "",
    }
}

fn type_name(ty: &DataType) -> String {
    match ty {
        DataType::Int64 => "BIGINT".into(),
        DataType::Int32 => "INT".into(),
        DataType::UInt64 => "BIGINT UNSIGNED".into(),
        DataType::Float64 => "DOUBLE".into(),
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".into(),
        DataType::Dictionary(_, values) => type_name(values),
        DataType::List(item) | DataType::LargeList(item) => format!("{}[]", type_name(item.data_type())),
        other => other.to_string(),
    }
}
