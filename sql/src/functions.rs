//! Functions that convert a stored 64-bit number back to the value with the same bits.
//!
//! `args` of an event are Int64. Unsigned values of 2^63 or more, and floating-point values, are stored in them
//! as bits. An executor of a cluster must know these functions too: register [`all`] there.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array},
    datatypes::{DataType, Float64Type, Int64Type, UInt64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf},
};

/// Every function of this crate.
pub fn all() -> Vec<ScalarUDF> {
    vec![u64_bits(), f64_bits()]
}

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
    let call = move |args: &[ColumnarValue]| -> Result<ColumnarValue> {
        let [arg] = args else { return exec_err!("{name}: expected 1 argument, found {}", args.len()) };
        let array = arg.to_array(1)?;
        let Some(numbers) = array.as_primitive_opt::<Int64Type>() else {
            return exec_err!("{name}: expected Int64, found {}", array.data_type());
        };
        let values = bits(numbers);
        match arg {
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(values)),
            ColumnarValue::Scalar(_) => {
                let value = ScalarValue::try_from_array(&values, 0)?;
                Ok(ColumnarValue::Scalar(value))
            }
        }
    };
    create_udf(name, vec![DataType::Int64], to, Volatility::Immutable, Arc::new(call))
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
