//! Reads the table `event_types`: names and parameters of the events of the trace.

use std::path::Path;

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::Int64Type,
};
use datafusion::{
    arrow::datatypes::DataType,
    common::TableReference,
    error::Result,
    logical_expr::{cast, ident},
    prelude::SessionContext,
};
use sigmund_model::{EventType, Field, FieldType, Level, tables::EVENT_TYPES};

use crate::{Error, ErrorKind, tables::raw_name};

/// One row of `event_types`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredEvent {
    /// Its declaration. Fields of events that came from a listing have empty names.
    pub ty: EventType,
    /// The input that declares it.
    pub source: Option<String>,
    /// Number of events of this type in the trace.
    pub events: u64,
}

/// Reads all rows, in the order of the table.
pub(crate) async fn read(
    context: &SessionContext,
    super_trace: &Path,
) -> std::result::Result<Vec<DeclaredEvent>, Error> {
    let table = super_trace.join(EVENT_TYPES.name);
    let batches =
        collect(context).await.map_err(|e| Error::from_datafusion(table.display().to_string(), e))?;
    let mut declared = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            declared.push(event_type(batch, row, &table)?);
        }
    }
    Ok(declared)
}

/// Columns: level, code, name, source, key, field_names, field_types, format, events.
async fn collect(context: &SessionContext) -> Result<Vec<RecordBatch>> {
    let columns = EVENT_TYPES.columns.iter().map(|c| match c.name {
        "level" => cast(ident(c.name), DataType::Utf8),
        _ => ident(c.name),
    });
    let table = context.table(TableReference::bare(raw_name(&EVENT_TYPES))).await?;
    table.select(columns.collect::<Vec<_>>())?.collect().await
}

fn event_type(batch: &RecordBatch, row: usize, table: &Path) -> std::result::Result<DeclaredEvent, Error> {
    let wrong = |message: String| Error::at(ErrorKind::Schema, table, format!("row {row}: {message}"));
    let text = |column: usize| {
        let texts = batch.column(column).as_string::<i32>();
        texts.is_valid(row).then(|| texts.value(row).to_string())
    };
    let number = |column: usize| {
        let numbers = batch.column(column).as_primitive::<Int64Type>();
        numbers.is_valid(row).then(|| numbers.value(row))
    };
    let list = |column: usize| -> Vec<String> {
        let texts = batch.column(column).as_list::<i32>().value(row);
        texts.as_string::<i32>().iter().map(|t| t.unwrap_or_default().to_string()).collect()
    };
    let level = text(0).unwrap_or_default();
    let level = Level::ALL
        .iter()
        .copied()
        .find(|l| l.name() == level)
        .ok_or_else(|| wrong(format!("level: expected KERN or USER, found `{level}`")))?;
    let (names, types) = (list(5), list(6));
    if names.len() != types.len() {
        return Err(wrong(format!("{} field names, but {} field types", names.len(), types.len())));
    }
    let fields = names.into_iter().zip(types).map(|(name, ty)| Field {
        name,
        // A later version may have written a type that is unknown here. The value is then shown as the stored number.
        ty: FieldType::from_name(&ty).unwrap_or(FieldType::I64),
    });
    Ok(DeclaredEvent {
        ty: EventType {
            level,
            code: number(1).and_then(|c| u32::try_from(c).ok()),
            name: text(2).unwrap_or_default(),
            key: number(4).unwrap_or_default() as u64,
            fields: fields.collect(),
            format: text(7).unwrap_or_default(),
        },
        source: text(3),
        events: number(8).unwrap_or_default() as u64,
    })
}
