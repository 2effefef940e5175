//! `percentile(x, percent)`: the exact percentile by nearest rank, that is, the smallest number such that at least
//! `percent` % of all numbers are not larger. With `percentile(DISTINCT x, percent)`, equal numbers count once.

use std::{mem, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, ListArray},
    buffer::{OffsetBuffer, ScalarBuffer},
    datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err, plan_err},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::format_state_name,
    },
};

use super::scalar::number_type;

/// The function. It keeps all numbers of a group, 8 bytes each.
pub(super) fn percentile() -> AggregateUDF {
    AggregateUDF::new_from_impl(Percentile { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Percentile {
    signature: Signature,
}

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &str {
        "percentile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [numbers, percent] = types else {
            return plan_err!(
                "percentile: expected a number and a percentage, found {} arguments",
                types.len()
            );
        };
        match (number_type(numbers), number_type(percent)) {
            (Some(numbers), Some(_)) => Ok(vec![numbers, DataType::Float64]),
            _ => plan_err!("percentile: expected a number and a percentage, found {numbers} and {percent}"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().and_then(number_type).unwrap_or(DataType::Int64))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let is_fraction = *args.return_field.data_type() == DataType::Float64;
        Ok(Box::new(Numbers { is_fraction, is_distinct: args.is_distinct, ..Numbers::default() }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let numbers = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
        let field = |name: &str, ty| Arc::new(Field::new(format_state_name(args.name, name), ty, true));
        Ok(vec![field("numbers", numbers), field("percent", DataType::Float64)])
    }
}

/// The numbers of a group.
#[derive(Debug, Default)]
struct Numbers {
    /// The numbers. Fractions are stored as integers in the order of IEEE 754's totalOrder: [`ordered`].
    numbers: Vec<i64>,
    percent: Option<f64>,
    is_fraction: bool,
    is_distinct: bool,
}

impl Numbers {
    fn extend(&mut self, numbers: &Int64Array) {
        match numbers.null_count() {
            0 => self.numbers.extend_from_slice(numbers.values()),
            _ => self.numbers.extend(numbers.iter().flatten()),
        }
    }

    /// Sets the percentage, which must be the same in all rows.
    fn set_percent(&mut self, percent: f64) -> Result<()> {
        let expected = "percentile: expected one number from 0 to 100 for all rows, found";
        if !(0.0..=100.0).contains(&percent) {
            return exec_err!("{expected} {percent}");
        }
        if let Some(known) = self.percent.filter(|known| *known != percent) {
            return exec_err!("{expected} {known} and {percent}");
        }
        self.percent = Some(percent);
        Ok(())
    }

    fn remove_repeated(&mut self) {
        if self.is_distinct {
            self.numbers.sort_unstable();
            self.numbers.dedup();
        }
    }

    fn value(&self, number: Option<i64>) -> ScalarValue {
        match self.is_fraction {
            true => ScalarValue::Float64(number.map(|number| f64::from_bits(ordered(number) as u64))),
            false => ScalarValue::Int64(number),
        }
    }
}

/// Maps the bits of a fraction to an integer that is ordered as in `f64::total_cmp`. The same function maps it back.
fn ordered(bits: i64) -> i64 {
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

impl Accumulator for Numbers {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match values[0].as_primitive_opt::<Float64Type>() {
            Some(fractions) => {
                self.extend(&fractions.unary(|number: f64| ordered(number.to_bits() as i64)));
            }
            None => self.extend(values[0].as_primitive::<Int64Type>()),
        }
        for percent in values[1].as_primitive::<Float64Type>() {
            match percent {
                Some(percent) => self.set_percent(percent)?,
                None => {
                    return exec_err!(
                        "percentile: expected one number from 0 to 100 for all rows, found NULL"
                    );
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.remove_repeated();
        let rank = self.percent.map(|percent| (self.numbers.len() as f64 * percent / 100.0).ceil() as usize);
        let place = rank.map(|rank| rank.saturating_sub(1)).filter(|place| *place < self.numbers.len());
        let number = place.map(|place| *self.numbers.select_nth_unstable(place).1);
        Ok(self.value(number))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.numbers.capacity() * size_of::<i64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.remove_repeated();
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
        // A state without rows has no percentage.
        let percents = states[1].as_primitive::<Float64Type>();
        percents.iter().flatten().try_for_each(|percent| self.set_percent(percent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_keep_their_order_as_whole_numbers_and_come_back() {
        let fractions = [f64::NEG_INFINITY, -1.5, -0.25, 0.0, 1e-300, 2.5, f64::INFINITY];
        let numbers = fractions.map(|fraction: f64| ordered(fraction.to_bits() as i64));
        assert!(numbers.is_sorted(), "{numbers:?}");
        assert_eq!(numbers.map(|number| f64::from_bits(ordered(number) as u64)), fractions);
    }
}
