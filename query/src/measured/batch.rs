//! An answer as rows of Arrow.

use std::{borrow::Cow, sync::Arc};

use arrow::{
    array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema},
    error::ArrowError,
};
use sigmund_measures::{Answer, Column, Kind, Value};
use sigmund_model::{Hertz, Ticks};

/// Rows of Arrow: `Int64`, `Float64` and `Utf8`. Beside each `X_tick` is `X_ns`, as in the tables of `sigmund-sql`: of
/// instants from the first event on; NULL if the rate of the clock is not known.
///
/// # Errors
/// An error of Arrow, if columns and rows do not match.
pub fn to_batch(
    answer: &Answer,
    tick_hz: Option<Hertz>,
    first: Option<Ticks>,
) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (place, column) in answer.columns.iter().enumerate() {
        let cells = (0..answer.rows.len()).map(|row| answer.rows.cell(row, place));
        let (ty, array): (DataType, ArrayRef) = match column.kind {
            Kind::Text => (DataType::Utf8, Arc::new(cells.clone().map(text).collect::<StringArray>())),
            Kind::Percent | Kind::Fraction => {
                (DataType::Float64, Arc::new(cells.clone().map(fraction).collect::<Float64Array>()))
            }
            Kind::Count | Kind::Object | Kind::Length | Kind::Instant => {
                (DataType::Int64, Arc::new(cells.clone().map(number).collect::<Int64Array>()))
            }
        };
        fields.push(field(column, &column.name, ty));
        arrays.push(array);
        if let Some(name) = column.name.strip_suffix("_tick") {
            let zero = if column.kind == Kind::Instant { first.map_or(0, |tick| tick.0 as i64) } else { 0 };
            let ns = |tick: i64| {
                let (length, is_before) = ((tick - zero).unsigned_abs(), tick < zero);
                let ns = tick_hz?.to_nanos(Ticks(length)).0 as i64;
                Some(if is_before { -ns } else { ns })
            };
            let in_ns: Int64Array = cells.map(|cell| ns(number(cell)?)).collect();
            fields.push(field(column, &format!("{name}_ns"), DataType::Int64));
            arrays.push(Arc::new(in_ns));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn field(column: &Column, name: &str, ty: DataType) -> Field {
    Field::new(name, ty, true).with_metadata([("doc".to_string(), column.doc.to_string())].into())
}

fn text(value: Value) -> Option<Cow<'static, str>> {
    if let Value::Text(text) = value { Some(text) } else { None }
}

fn number(value: Value) -> Option<i64> {
    if let Value::Number(number) = value { Some(number) } else { None }
}

fn fraction(value: Value) -> Option<f64> {
    match value {
        Value::Fraction(number) => Some(number),
        Value::Number(number) => Some(number as f64),
        _ => None,
    }
}
