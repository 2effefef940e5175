//! `sum` of integers that fails if it exceeds 64 bits, as in SQLite. DataFusion's own function continues with the
//! lowest 64 bits, which gives a wrong number without any sign of it.

use std::{
    fmt,
    marker::PhantomData,
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray},
    compute,
    datatypes::{ArrowNativeTypeOp, ArrowNumericType, DataType, FieldRef, Int64Type, UInt64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    functions_aggregate::sum::sum_udaf,
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::AggregateOrderSensitivity,
    },
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

/// The function. It replaces DataFusion's function, and calls it for types other than integers.
pub(super) fn sum() -> AggregateUDF {
    AggregateUDF::new_from_impl(Sum { signature: sum_udaf().signature().clone() })
}

fn too_large<T>() -> Result<T> {
    exec_err!(
        "sum: expected a sum within 64 bits, found a larger one; sum(CAST(… AS DOUBLE)) has no such limit"
    )
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    signature: Signature,
}

/// The type of a sum of integers. `None` for other types, and for sums with DISTINCT.
fn integers(args: &AccumulatorArgs<'_>) -> Option<Integers> {
    match args.return_field.data_type() {
        _ if args.is_distinct => None,
        DataType::Int64 => Some(Integers::Signed),
        DataType::UInt64 => Some(Integers::Unsigned),
        _ => None,
    }
}

enum Integers {
    Signed,
    Unsigned,
}

/// The accumulator for the sum of one group or window.
fn accumulator(args: &AccumulatorArgs<'_>) -> Option<Box<dyn Accumulator>> {
    Some(match integers(args)? {
        Integers::Signed => Box::new(Checked::<Int64Type>::new()),
        Integers::Unsigned => Box::new(Checked::<UInt64Type>::new()),
    })
}

/// Integers of 64 bits, signed or not.
trait Integer:
    ArrowNumericType<Native: Into<i128> + TryFrom<i128> + ArrowNativeTypeOp> + fmt::Debug + Send + Sync
{
}

impl Integer for Int64Type {}
impl Integer for UInt64Type {}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        sum_udaf().return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        accumulator(&args).map_or_else(|| sum_udaf().accumulator(args), Ok)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        sum_udaf().state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        sum_udaf().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match integers(&args) {
            Some(Integers::Signed) => Ok(Box::new(CheckedGroups::<Int64Type>::new())),
            Some(Integers::Unsigned) => Ok(Box::new(CheckedGroups::<UInt64Type>::new())),
            None => sum_udaf().create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        accumulator(&args).map_or_else(|| sum_udaf().create_sliding_accumulator(args), Ok)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The sum of one group or window. It is exact for up to 2^63 numbers.
#[derive(Debug)]
struct Checked<T> {
    sum: i128,
    /// The number of numbers in the sum.
    count: u64,
    of: PhantomData<T>,
}

impl<T: Integer> Checked<T> {
    fn new() -> Checked<T> {
        Checked { sum: 0, count: 0, of: PhantomData }
    }

    fn add(&mut self, values: &[ArrayRef], sign: i128) {
        let numbers = values[0].as_primitive::<T>();
        let sum = match compute::sum_checked(numbers) {
            Ok(sum) => sum.unwrap_or_default().into(),
            Err(_) => numbers.iter().flatten().map(Into::<i128>::into).sum(),
        };
        self.sum += sign * sum;
    }
}

impl<T: Integer> Accumulator for Checked<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values, 1);
        self.count += (values[0].len() - values[0].null_count()) as u64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values, -1);
        self.count -= (values[0].len() - values[0].null_count()) as u64;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = match self.count {
            0 => None,
            _ => Some(T::Native::try_from(self.sum).or_else(|_| too_large())?),
        };
        ScalarValue::new_primitive::<T>(sum, &T::DATA_TYPE)
    }

    fn size(&self) -> usize {
        mem::size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

type Added<N> = Box<dyn Fn(&mut N, N) + Send + Sync>;

/// The sums of groups. DataFusion's accumulator, with an addition that notes if a sum became too large.
struct CheckedGroups<T: Integer> {
    sums: PrimitiveGroupsAccumulator<T, Added<T::Native>>,
    is_too_large: Arc<AtomicBool>,
}

impl<T: Integer> CheckedGroups<T> {
    fn new() -> CheckedGroups<T> {
        let is_too_large = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_too_large);
        // Relaxed: the same thread adds, and reads the flag afterwards.
        let add: Added<T::Native> = Box::new(move |sum, number| match sum.add_checked(number) {
            Ok(added) => *sum = added,
            Err(_) => seen.store(true, Ordering::Relaxed),
        });
        CheckedGroups { sums: PrimitiveGroupsAccumulator::new(&T::DATA_TYPE, add), is_too_large }
    }

    fn check(&self) -> Result<()> {
        if self.is_too_large.load(Ordering::Relaxed) { too_large() } else { Ok(()) }
    }
}

impl<T: Integer> fmt::Debug for CheckedGroups<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedGroups").field("is_too_large", &self.is_too_large).finish_non_exhaustive()
    }
}

impl<T: Integer> GroupsAccumulator for CheckedGroups<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.sums.update_batch(values, groups, filter, count)?;
        self.check()
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        self.sums.evaluate(emit)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sums.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.sums.merge_batch(states, groups, count)?;
        self.check()
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.sums.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.sums.size()
    }
}
