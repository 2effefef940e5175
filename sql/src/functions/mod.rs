//! Functions of SQL: bits, times, percentiles.
//!
//! An executor of a cluster must know them too: those that need no super-trace are in [`all`].

mod bits;
mod percentile;
mod times;
mod wall_time;

use std::{path::Path, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array},
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::{AggregateUDF, ColumnarValue, ScalarUDF, Volatility, create_udf},
    prelude::SessionContext,
};

use crate::Info;

pub use bits::{f64_bits, u64_bits};

/// The functions of one row that need no super-trace.
pub fn all() -> Vec<ScalarUDF> {
    vec![u64_bits(), f64_bits(), times::duration(), times::log2_bucket()]
}

/// The functions of many rows.
pub fn aggregates() -> Vec<AggregateUDF> {
    vec![percentile::percentile()]
}

/// The session has the functions that convert times of this super-trace, from here on.
pub(crate) fn register(context: &SessionContext, super_trace: &Path, info: &Info) {
    for function in [times::to_ns(info), times::to_ticks(info), wall_time::wall_time(super_trace, info)] {
        context.register_udf(function);
    }
}

/// A function of one Int64.
fn of_number(
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
