//! Functions whose result can be far larger than their arguments, with a limit of its size.
//!
//! `repeat('x', 1000000000)` takes a gigabyte that the memory limit of a session does not know of: it counts what
//! operators keep, and no expressions.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array},
    compute::kernels::length::length,
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    common::{Result, plan_err},
    config::ConfigOptions,
    logical_expr::{
        ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature,
    },
    prelude::SessionContext,
};

/// The maximum size of the result for a batch of rows, in bytes.
pub(crate) const MOST_BYTES: usize = 256 << 20;

/// The size of the result of one row, from its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Size {
    /// A text so many times.
    Repeated,
    /// A text of so many characters.
    Padded,
    /// A list of a value so many times.
    ListOf,
    /// A list of the numbers between two.
    Between,
}

/// The functions.
const BOUNDED: [(&str, Size); 6] = [
    ("repeat", Size::Repeated),
    ("lpad", Size::Padded),
    ("rpad", Size::Padded),
    ("array_repeat", Size::ListOf),
    ("range", Size::Between),
    ("generate_series", Size::Between),
];

/// Replaces the functions of a session by bounded ones.
pub(super) fn register(context: &SessionContext) -> Result<()> {
    for (name, size) in BOUNDED {
        let function = Arc::clone(context.state().scalar_functions().get(name).ok_or_else(|| {
            datafusion::error::DataFusionError::Internal(format!("DataFusion has no function {name}"))
        })?);
        context.register_udf(ScalarUDF::new_from_impl(Bounded { function, size }));
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    function: Arc<ScalarUDF>,
    size: Size,
}

impl Bounded {
    /// The size of the result in bytes. That of constants counts once: whether it is copied to each row is known later
    /// ([`crate::large_constants`]).
    fn bytes(&self, args: &ScalarFunctionArgs) -> Result<i128> {
        let are_constants = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if are_constants { 1 } else { args.number_rows };
        let argument = |place: usize| args.args.get(place).map(|arg| arg.to_array(rows)).transpose();
        let number = |place: usize| argument(place)?.map(|array| integers(&array)).transpose();
        let sum = |sizes: &mut dyn Iterator<Item = i128>| sizes.map(|size| size.max(0)).sum::<i128>();
        let bytes = match self.size {
            Size::Repeated => match (argument(0)?, number(1)?) {
                (Some(texts), Some(counts)) => {
                    let lengths = integers(&length(&texts)?)?;
                    sum(&mut pairs(&lengths, &counts).map(|(length, count)| length * count.max(0)))
                }
                _ => 0,
            },
            Size::Padded => number(1)?.map_or(0, |lengths| sum(&mut each(&lengths))),
            Size::ListOf => {
                let width = argument(0)?.map_or(0, |values| values.get_array_memory_size() / rows.max(1));
                number(1)?.map_or(0, |counts| {
                    sum(&mut each(&counts).map(|count| count.max(0) * width.max(1) as i128))
                })
            }
            // Of one number, the first is 0.
            Size::Between => {
                let (first, second) = (number(0)?, number(1)?);
                let step = number(2)?;
                let steps = |row: usize| match &step {
                    Some(step) if step.len() > row && step.is_valid(row) => {
                        i128::from(step.value(row)).abs().max(1)
                    }
                    _ => 1,
                };
                match (first, second) {
                    (Some(from), Some(to)) => sum(&mut pairs(&from, &to)
                        .enumerate()
                        .map(|(row, (from, to))| (to - from).abs() / steps(row) * 8)),
                    (Some(to), None) => sum(&mut each(&to).map(|to| to * 8)),
                    (None, _) => 0,
                }
            }
        };
        // Where rows are read, the value is copied to each; while the query is planned there is one row.
        Ok(if are_constants { bytes * args.number_rows as i128 } else { bytes })
    }
}

/// The numbers of a column; none of a column of another type.
fn integers(array: &ArrayRef) -> Result<Int64Array> {
    let numbers = match array.data_type() {
        ty if ty.is_integer() => arrow::compute::cast(array, &DataType::Int64)?,
        _ => return Ok(Int64Array::new_null(array.len())),
    };
    Ok(numbers.as_primitive::<Int64Type>().clone())
}

/// The numbers that are not NULL.
fn each(numbers: &Int64Array) -> impl Iterator<Item = i128> {
    numbers.iter().flatten().map(i128::from)
}

/// The numbers of each row; 0 for NULL.
fn pairs(one: &Int64Array, other: &Int64Array) -> impl Iterator<Item = (i128, i128)> {
    let of = |number: Option<i64>| i128::from(number.unwrap_or(0));
    one.iter().zip(other).map(move |(one, other)| (of(one), of(other)))
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.function.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<arrow::datatypes::FieldRef> {
        self.function.return_field_from_args(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let function = Arc::new(self.function.inner().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Bounded { function, size: self.size }))
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = self.bytes(&args)?;
        if bytes > MOST_BYTES as i128 {
            return plan_err!(
                "{}: expected a result of at most {} MiB for {} rows, found {} MiB",
                self.name(),
                MOST_BYTES >> 20,
                args.number_rows,
                bytes >> 20
            );
        }
        self.function.invoke_with_args(args)
    }
}
