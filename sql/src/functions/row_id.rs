//! `row_id(a, b, c)`: a number computed from three numbers that identify a row. NULL counts as a number of its own.
//! Perfetto's tables have ids. Our rows are not numbered: numbers in the order of the rows would require sorting all of
//! them.

use std::sync::Arc;

use arrow::{
    array::{Array, AsArray, Int64Array},
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    common::Result,
    logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf},
};

use super::scalar::as_column;

/// The function. Two different rows have the same id with a probability of 2^-63.
pub(crate) fn row_id() -> ScalarUDF {
    create_udf("row_id", vec![DataType::Int64; 3], DataType::Int64, Volatility::Immutable, Arc::new(ids))
}

fn ids(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let rows = arrays.first().map_or(0, |array| array.len());
    let mut ids = vec![0_u64; rows];
    for array in &arrays {
        let numbers = array.as_primitive::<Int64Type>();
        for (row, id) in ids.iter_mut().enumerate() {
            let number = if numbers.is_valid(row) { numbers.value(row) as u64 } else { 0x6e75_6c6c };
            *id = mixed(*id ^ number).wrapping_add(u64::from(numbers.is_null(row)));
        }
    }
    let ids: Int64Array = ids.into_iter().map(|id| Some((id >> 1) as i64)).collect();
    as_column(args, Arc::new(ids))
}

/// One step of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_differ_in_one_number_have_different_ids() {
        let id = |numbers: [Option<i64>; 3]| {
            let args = numbers.map(|number| ColumnarValue::Scalar(number.into()));
            ids(&args).unwrap().to_array(1).unwrap().as_primitive::<Int64Type>().value(0)
        };
        let some = |a: i64, b: i64, c: i64| id([Some(a), Some(b), Some(c)]);
        let ids = [some(1, 2, 3), some(2, 1, 3), some(1, 3, 2), id([None, Some(2), Some(3)]), some(0, 2, 3)];
        let different: std::collections::BTreeSet<i64> = ids.into_iter().collect();
        assert!(different.len() == 5 && different.iter().all(|id| *id >= 0), "{ids:?}");
        assert_eq!(some(1, 2, 3), ids[0]);
    }
}
