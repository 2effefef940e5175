//! `+`, `-` and `*` of integers that fail if the result does not fit into its type, as in PostgreSQL and DuckDB.
//! DataFusion's own operators continue with the lowest bits: the square of four seconds in nanoseconds would be
//! negative. [`CheckArithmetic`](crate::checked_arithmetic::CheckArithmetic) replaces the operators by these functions.

use arrow::{
    array::{ArrayRef, Datum},
    compute::kernels::numeric,
    datatypes::DataType,
    error::ArrowError,
};
use datafusion::{
    common::{DataFusionError, Result, ScalarValue, exec_datafusion_err, exec_err, plan_err},
    logical_expr::{
        ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
        sort_properties::{ExprProperties, SortProperties},
    },
};

/// The functions.
pub(super) fn all() -> impl Iterator<Item = ScalarUDF> {
    [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply].into_iter().map(function)
}

/// The function that replaces an operator; `None` for operators that stay.
pub(crate) fn checked(operator: Operator) -> Option<ScalarUDF> {
    Some(function(match operator {
        Operator::Plus => Arithmetic::Add,
        Operator::Minus => Arithmetic::Subtract,
        Operator::Multiply => Arithmetic::Multiply,
        _ => return None,
    }))
}

fn function(arithmetic: Arithmetic) -> ScalarUDF {
    ScalarUDF::new_from_impl(Checked { arithmetic, signature: Signature::any(2, Volatility::Immutable) })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Arithmetic {
    Add,
    Subtract,
    Multiply,
}

impl Arithmetic {
    fn of(self, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
        match self {
            Arithmetic::Add => numeric::add(left, right),
            Arithmetic::Subtract => numeric::sub(left, right),
            Arithmetic::Multiply => numeric::mul(left, right),
        }
    }

    fn symbol(self) -> char {
        match self {
            Arithmetic::Add => '+',
            Arithmetic::Subtract => '-',
            Arithmetic::Multiply => '*',
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    arithmetic: Arithmetic,
    signature: Signature,
}

impl Checked {
    fn of(&self, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef> {
        self.arithmetic.of(left, right).map_err(|error| match error {
            ArrowError::ArithmeticOverflow(_) => self.too_large(left.get().0.data_type()),
            other => DataFusionError::from(other),
        })
    }

    fn too_large(&self, ty: &DataType) -> DataFusionError {
        let symbol = self.arithmetic.symbol();
        let bits = 8 * ty.primitive_width().unwrap_or_default();
        let way_out =
            if bits < 64 { "CAST(… AS BIGINT) has 64" } else { "CAST(… AS DOUBLE) has no such limit" };
        match (self.arithmetic, ty.is_unsigned_integer()) {
            (Arithmetic::Subtract, true) => exec_datafusion_err!(
                "{symbol}: expected a result that is not negative, of unsigned numbers, found one that is; CAST(… AS BIGINT) has a sign"
            ),
            _ => exec_datafusion_err!(
                "{symbol}: expected a result within {bits} bits, found a larger one; {way_out}"
            ),
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.arithmetic {
            Arithmetic::Add => "checked_add",
            Arithmetic::Subtract => "checked_subtract",
            Arithmetic::Multiply => "checked_multiply",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [left, right] if left == right && left.is_integer() => Ok(left.clone()),
            _ => plan_err!("{}: expected two integers of one type, found {types:?}", self.name()),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        let [left, right] = inputs else { return Ok(SortProperties::Unordered) };
        let (left, right) = (&left.sort_properties, &right.sort_properties);
        Ok(match self.arithmetic {
            Arithmetic::Add => left.add(right),
            Arithmetic::Subtract => left.sub(right),
            Arithmetic::Multiply => SortProperties::Unordered,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = match args.args.as_slice() {
            [ColumnarValue::Array(left), ColumnarValue::Array(right)] => self.of(left, right)?,
            [ColumnarValue::Array(left), ColumnarValue::Scalar(right)] => {
                self.of(left, &right.to_scalar()?)?
            }
            [ColumnarValue::Scalar(left), ColumnarValue::Array(right)] => {
                self.of(&left.to_scalar()?, right)?
            }
            [ColumnarValue::Scalar(left), ColumnarValue::Scalar(right)] => {
                let value = self.of(&left.to_scalar()?, &right.to_scalar()?)?;
                return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&value, 0)?));
            }
            _ => return exec_err!("{}: expected 2 arguments, found {}", self.name(), args.args.len()),
        };
        Ok(ColumnarValue::Array(values))
    }
}
