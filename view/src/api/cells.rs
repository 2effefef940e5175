//! Values of tables as JSON.

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch},
    datatypes::{
        DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
        UInt32Type, UInt64Type,
    },
    util::display::{ArrayFormatter, FormatOptions},
};
use futures::StreamExt;
use serde_json::{Map, Value, json};

use super::Refusal;
use crate::View;

/// JavaScript represents integers up to here exactly.
const EXACT: i64 = 1 << 53;

/// A number; as text if JavaScript cannot represent it exactly.
pub(super) fn number(number: i64) -> Value {
    if (-EXACT..=EXACT).contains(&number) { json!(number) } else { json!(number.to_string()) }
}

/// The value of a cell.
pub(super) fn cell(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Int64 => number(column.as_primitive::<Int64Type>().value(row)),
        DataType::Int32 => json!(column.as_primitive::<Int32Type>().value(row)),
        DataType::Int16 => json!(column.as_primitive::<Int16Type>().value(row)),
        DataType::Int8 => json!(column.as_primitive::<Int8Type>().value(row)),
        DataType::UInt64 => {
            let value = column.as_primitive::<UInt64Type>().value(row);
            i64::try_from(value).map_or_else(|_| json!(value.to_string()), number)
        }
        DataType::UInt32 => json!(column.as_primitive::<UInt32Type>().value(row)),
        DataType::UInt16 => json!(column.as_primitive::<UInt16Type>().value(row)),
        DataType::UInt8 => json!(column.as_primitive::<UInt8Type>().value(row)),
        DataType::Float64 => json!(column.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => json!(column.as_primitive::<Float32Type>().value(row)),
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::Dictionary(_, values) if **values == DataType::Utf8 => {
            let words = column.as_any_dictionary();
            let key = match column.as_dictionary_opt::<Int32Type>() {
                Some(words) => words.keys().value(row) as usize,
                // This makes a list of the keys of all rows.
                None => words.normalized_keys()[row],
            };
            json!(words.values().as_string::<i32>().value(key))
        }
        _ => {
            let options = FormatOptions::default().with_display_error(true);
            let text = ArrayFormatter::try_new(column.as_ref(), &options);
            json!(text.map_or_else(|error| error.to_string(), |text| text.value(row).to_string()))
        }
    }
}

/// The rows of a query, as objects with the columns' names. If there are more than `limit` rows, returns `limit + 1`.
pub(super) async fn objects(view: &View, query: &str, limit: usize) -> Result<Vec<Value>, Refusal> {
    let mut objects = Vec::new();
    each(view, query, limit, |batch| {
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let cells = schema.fields().iter().zip(batch.columns());
            let object = cells.map(|(field, column)| (field.name().clone(), cell(column, row)));
            objects.push(Value::Object(object.collect::<Map<_, _>>()));
        }
    })
    .await?;
    Ok(objects)
}

/// Calls `each` with the batches of a query: at most `limit + 1` rows in total.
pub(super) async fn each(
    view: &View,
    query: &str,
    limit: usize,
    mut each: impl FnMut(&RecordBatch),
) -> Result<(), Refusal> {
    let mut batches = view.trace.sql(query).await?.stream().await?;
    let mut left = limit + 1;
    while left > 0
        && let Some(batch) = batches.next().await
    {
        let batch = batch.map_err(|error| sigmund_sql::Error::from_datafusion("query", error))?;
        let batch = batch.slice(0, batch.num_rows().min(left));
        left -= batch.num_rows();
        each(&batch);
    }
    Ok(())
}
