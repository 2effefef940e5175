//! Functions of one number.

use std::hash::{Hash, Hasher};

use arrow::{
    array::{ArrayRef, AsArray, Int64Array},
    datatypes::{DataType, Float64Type, Int64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err, plan_err},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility},
};

/// A function of an Int64.
pub(super) fn of_integer(name: &'static str, to: DataType, of: fn(&Int64Array) -> ArrayRef) -> ScalarUDF {
    ScalarUDF::new_from_impl(OfNumber::new(name, to, None, of))
}

/// A function of a number. A fraction is first converted to an integer by `round`.
pub(super) fn of_number(
    name: &'static str,
    to: DataType,
    round: fn(f64) -> f64,
    of: fn(&Int64Array) -> ArrayRef,
) -> ScalarUDF {
    ScalarUDF::new_from_impl(OfNumber::new(name, to, Some(round), of))
}

/// Int64 for integers, Float64 for other numbers; `None` for types that are no numbers.
pub(super) fn number_type(ty: &DataType) -> Option<DataType> {
    match ty {
        ty if ty.is_integer() || ty.is_null() => Some(DataType::Int64),
        ty if ty.is_numeric() => Some(DataType::Float64),
        DataType::Dictionary(_, values) => number_type(values),
        _ => None,
    }
}

/// The result of a function: a single value if all arguments are constants.
pub(super) fn as_column(args: &[ColumnarValue], values: ArrayRef) -> Result<ColumnarValue> {
    let are_constants = args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    match are_constants && !values.is_empty() {
        true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)),
        false => Ok(ColumnarValue::Array(values)),
    }
}

#[derive(Debug)]
struct OfNumber {
    name: &'static str,
    to: DataType,
    round: Option<fn(f64) -> f64>,
    of: fn(&Int64Array) -> ArrayRef,
    signature: Signature,
}

impl OfNumber {
    fn new(
        name: &'static str,
        to: DataType,
        round: Option<fn(f64) -> f64>,
        of: fn(&Int64Array) -> ArrayRef,
    ) -> OfNumber {
        OfNumber { name, to, round, of, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

// The name identifies the function.
impl PartialEq for OfNumber {
    fn eq(&self, other: &OfNumber) -> bool {
        self.name == other.name
    }
}

impl Eq for OfNumber {}

impl Hash for OfNumber {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for OfNumber {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [ty] = types else {
            return plan_err!("{}: expected 1 argument, found {}", self.name, types.len());
        };
        match number_type(ty) {
            Some(DataType::Float64) if self.round.is_none() => {
                plan_err!("{}: expected a whole number, found {ty}", self.name)
            }
            Some(number) => Ok(vec![number]),
            None => plan_err!("{}: expected a number, found {ty}", self.name),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [arg] = args.args.as_slice() else {
            return exec_err!("{}: expected 1 argument, found {}", self.name, args.args.len());
        };
        let array = arg.to_array(1)?;
        let values = match (array.as_primitive_opt::<Int64Type>(), array.as_primitive_opt::<Float64Type>()) {
            (Some(numbers), _) => (self.of)(numbers),
            (None, Some(numbers)) => {
                let round = self.round.unwrap_or(f64::trunc);
                (self.of)(&numbers.unary::<_, Int64Type>(|number| round(number) as i64))
            }
            (None, None) => {
                return exec_err!("{}: expected a number, found {}", self.name, array.data_type());
            }
        };
        as_column(&args.args, values)
    }
}
