//! An answer as rows of Arrow.

use std::{ops::Range, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, Float64Builder, Int64Array, Int64Builder, RecordBatch, StringBuilder},
    datatypes::{DataType, Field, Int64Type, Schema},
    error::ArrowError,
};
use sigmund_measures::{Answer, Column, Kind, Value};
use sigmund_model::{Hertz, Ticks};

/// Arrow rows with the types `Int64`, `Float64` and `Utf8`. Beside each column `X_tick` is a column `X_ns`, as in the
/// tables of `sigmund-sql`. Instants in it count from the first event. It is NULL if the rate of the clock is unknown.
///
/// # Errors
/// An error of Arrow, if columns and rows do not match; or if rows cannot be read from a temporary file.
pub fn to_batch(
    answer: &Answer,
    tick_hz: Option<Hertz>,
    first: Option<Ticks>,
) -> Result<RecordBatch, ArrowError> {
    rows_to_batch(answer, 0..answer.rows.len(), tick_hz, first)
}

/// As [`to_batch`], of some of the rows.
///
/// # Errors
/// As [`to_batch`].
pub(super) fn rows_to_batch(
    answer: &Answer,
    rows: Range<usize>,
    tick_hz: Option<Hertz>,
    first: Option<Ticks>,
) -> Result<RecordBatch, ArrowError> {
    let mut built: Vec<Built> = answer.columns.iter().map(|column| Built::of(column.kind)).collect();
    for row in answer.rows.range(rows) {
        built.iter_mut().zip(row).for_each(|(built, value)| built.push(value));
    }
    answer.rows.check().map_err(ArrowError::ComputeError)?;
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (column, built) in answer.columns.iter().zip(built) {
        let array = built.finish();
        fields.push(field(column, &column.name, array.data_type().clone()));
        arrays.push(array.clone());
        if let Some(name) = column.name.strip_suffix("_tick") {
            let zero = if column.kind == Kind::Instant { first.map_or(0, |tick| tick.0 as i64) } else { 0 };
            let ns = |tick: i64| {
                let (length, is_before) = ((tick - zero).unsigned_abs(), tick < zero);
                let ns = tick_hz?.to_nanos(Ticks(length)).0 as i64;
                Some(if is_before { -ns } else { ns })
            };
            let in_ns: Int64Array = match array.as_primitive_opt::<Int64Type>() {
                Some(ticks) => ticks.iter().map(|tick| ns(tick?)).collect(),
                None => Int64Array::new_null(array.len()),
            };
            fields.push(field(column, &format!("{name}_ns"), DataType::Int64));
            arrays.push(Arc::new(in_ns));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn field(column: &Column, name: &str, ty: DataType) -> Field {
    Field::new(name, ty, true).with_metadata([("doc".to_string(), column.doc.to_string())].into())
}

/// A column that is being built.
enum Built {
    Text(StringBuilder),
    Fraction(Float64Builder),
    Number(Int64Builder),
}

impl Built {
    fn of(kind: Kind) -> Built {
        match kind {
            Kind::Text => Built::Text(StringBuilder::new()),
            Kind::Percent | Kind::Fraction => Built::Fraction(Float64Builder::new()),
            Kind::Count | Kind::Object | Kind::Length | Kind::Instant => Built::Number(Int64Builder::new()),
        }
    }

    /// Appends a value; NULL if it is of another kind than the column.
    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Built::Text(all), Value::Text(text)) => all.append_value(text),
            (Built::Text(all), _) => all.append_null(),
            (Built::Fraction(all), Value::Fraction(number)) => all.append_value(number),
            (Built::Fraction(all), Value::Number(number)) => all.append_value(number as f64),
            (Built::Fraction(all), _) => all.append_null(),
            (Built::Number(all), Value::Number(number)) => all.append_value(number),
            (Built::Number(all), _) => all.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Built::Text(mut all) => Arc::new(all.finish()),
            Built::Fraction(mut all) => Arc::new(all.finish()),
            Built::Number(mut all) => Arc::new(all.finish()),
        }
    }
}
