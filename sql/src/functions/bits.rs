//! Functions that convert a stored 64-bit number back to the value with the same bits.
//!
//! `args` of an event are Int64. Unsigned values of 2^63 or more, and floating-point values, are stored in them as bits.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Int64Array},
    datatypes::{DataType, Float64Type, UInt64Type},
};
use datafusion::logical_expr::ScalarUDF;

/// `u64_bits(Int64) -> UInt64`.
pub fn u64_bits() -> ScalarUDF {
    reinterpret("u64_bits", DataType::UInt64, |numbers| {
        Arc::new(numbers.unary::<_, UInt64Type>(|n| n as u64)) as ArrayRef
    })
}

/// `f64_bits(Int64) -> Float64`.
pub fn f64_bits() -> ScalarUDF {
    reinterpret("f64_bits", DataType::Float64, |numbers| {
        Arc::new(numbers.unary::<_, Float64Type>(|n| f64::from_bits(n as u64))) as ArrayRef
    })
}

fn reinterpret(name: &'static str, to: DataType, bits: fn(&Int64Array) -> ArrayRef) -> ScalarUDF {
    super::scalar::of_integer(name, to, bits)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, UInt64Array};

    use super::*;

    #[test]
    fn bits_come_back_as_the_value_they_are() {
        let numbers = Int64Array::from(vec![Some(-1), None, Some(1.5f64.to_bits() as i64)]);
        let unsigned = numbers.unary::<_, UInt64Type>(|n| n as u64);
        assert_eq!(unsigned, UInt64Array::from(vec![Some(u64::MAX), None, Some(1.5f64.to_bits())]));
        let floats = numbers.unary::<_, Float64Type>(|n| f64::from_bits(n as u64));
        assert_eq!(floats.slice(1, 2), Float64Array::from(vec![None, Some(1.5)]));
    }
}
