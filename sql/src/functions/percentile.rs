//! `percentile(x, percent)`: exact, by nearest rank: the smallest number such that at least `percent` of all are no larger.

use std::{mem, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, ListArray},
    buffer::{OffsetBuffer, ScalarBuffer},
    datatypes::{DataType, Field, Float64Type, Int64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::{Accumulator, AggregateUDF, Volatility, create_udaf},
};

/// The function. It keeps all numbers of a group: 8 bytes each.
pub(super) fn percentile() -> AggregateUDF {
    let numbers = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    create_udaf(
        "percentile",
        vec![DataType::Int64, DataType::Float64],
        Arc::new(DataType::Int64),
        Volatility::Immutable,
        Arc::new(|_| Ok(Box::new(Percentile::default()))),
        Arc::new(vec![numbers, DataType::Float64]),
    )
}

#[derive(Debug, Default)]
struct Percentile {
    numbers: Vec<i64>,
    percent: Option<f64>,
}

impl Percentile {
    fn extend(&mut self, numbers: &Int64Array) {
        match numbers.null_count() {
            0 => self.numbers.extend_from_slice(numbers.values()),
            _ => self.numbers.extend(numbers.iter().flatten()),
        }
    }

    /// It is the same in all rows.
    fn set_percent(&mut self, percents: &ArrayRef) -> Result<()> {
        for percent in percents.as_primitive::<Float64Type>().iter().flatten() {
            if !(0.0..=100.0).contains(&percent) || self.percent.is_some_and(|known| known != percent) {
                return exec_err!(
                    "percentile: expected one number from 0 to 100 for all rows, found {percent}"
                );
            }
            self.percent = Some(percent);
        }
        Ok(())
    }
}

impl Accumulator for Percentile {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.extend(values[0].as_primitive::<Int64Type>());
        self.set_percent(&values[1])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let percent = self.percent.unwrap_or(50.0);
        let rank = (self.numbers.len() as f64 * percent / 100.0).ceil() as usize;
        let place = rank.saturating_sub(1);
        if place >= self.numbers.len() {
            return Ok(ScalarValue::Int64(None));
        }
        let (_, number, _) = self.numbers.select_nth_unstable(place);
        Ok(ScalarValue::Int64(Some(*number)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.numbers.capacity() * size_of::<i64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let numbers = Int64Array::from(mem::take(&mut self.numbers));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0, numbers.len() as i32]));
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let list = ListArray::try_new(field, offsets, Arc::new(numbers), None)?;
        Ok(vec![ScalarValue::List(Arc::new(list)), ScalarValue::Float64(self.percent)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for numbers in states[0].as_list::<i32>().iter().flatten() {
            self.extend(numbers.as_primitive::<Int64Type>());
        }
        self.set_percent(&states[1])
    }
}
