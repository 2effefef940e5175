//! Functions of one number.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array},
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf},
};

/// A function of one Int64.
pub(super) fn of_number(
    name: &'static str,
    to: DataType,
    of: impl Fn(&Int64Array) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let call = move |args: &[ColumnarValue]| -> Result<ColumnarValue> {
        let [arg] = args else { return exec_err!("{name}: expected 1 argument, found {}", args.len()) };
        let array = arg.to_array(1)?;
        let Some(numbers) = array.as_primitive_opt::<Int64Type>() else {
            return exec_err!("{name}: expected Int64, found {}", array.data_type());
        };
        let values = of(numbers)?;
        match arg {
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(values)),
            ColumnarValue::Scalar(_) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)),
        }
    };
    create_udf(name, vec![DataType::Int64], to, Volatility::Immutable, Arc::new(call))
}
