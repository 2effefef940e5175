//! Whether a number is one of many, as a function that a plan can contain.
//!
//! A name may select a million user threads. As a list of literals, each rule of the planner would copy them: a plan
//! with 385 000 literals took nine seconds to plan, and one second to run.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use datafusion::{
    arrow::{
        array::{ArrayRef, AsArray, BooleanArray},
        datatypes::{DataType, Int64Type},
    },
    common::{Result, ScalarValue},
    logical_expr::{
        ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
        ident, lit,
    },
};

/// The largest size of a table of bits, in bits: this, plus 64 for each number in the set.
const MOST_BITS: u64 = 1 << 20;

/// Whether a column holds one of these numbers, of which there is at least one.
pub(super) fn is_one_of(column: &str, mut numbers: Vec<i64>) -> Expr {
    numbers.sort_unstable();
    numbers.dedup();
    let (Some(least), Some(most)) = (numbers.first().copied(), numbers.last().copied()) else {
        return lit(false);
    };
    let function = ScalarUDF::new_from_impl(OneOf {
        numbers: Arc::new(Numbers::new(numbers)),
        signature: Signature::exact(vec![DataType::Int64], Volatility::Immutable),
    });
    // The bounds let the reader skip parts of files.
    let between = ident(column).between(lit(least), lit(most));
    between.and(function.call(vec![cast(ident(column), DataType::Int64)]))
}

/// A set of numbers.
#[derive(Debug)]
enum Numbers {
    /// A table of bits, beginning at the first number.
    Bits(i64, Vec<u64>),
    Sorted(Vec<i64>),
}

impl Numbers {
    fn new(sorted: Vec<i64>) -> Numbers {
        let (Some(first), Some(last)) = (sorted.first().copied(), sorted.last().copied()) else {
            return Numbers::Sorted(sorted);
        };
        let bits = last.abs_diff(first);
        if bits >= MOST_BITS.saturating_add(64 * sorted.len() as u64) {
            return Numbers::Sorted(sorted);
        }
        let mut words = vec![0_u64; (bits / 64 + 1) as usize];
        for number in sorted {
            let bit = number.abs_diff(first);
            words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        Numbers::Bits(first, words)
    }

    fn has(&self, number: i64) -> bool {
        match self {
            Numbers::Bits(first, words) => {
                let bit = number.checked_sub(*first).and_then(|bit| u64::try_from(bit).ok());
                bit.is_some_and(|bit| {
                    words.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1)
                })
            }
            Numbers::Sorted(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }
}

#[derive(Debug)]
struct OneOf {
    numbers: Arc<Numbers>,
    signature: Signature,
}

// Each set is allocated once, so the address identifies it.
impl PartialEq for OneOf {
    fn eq(&self, other: &OneOf) -> bool {
        Arc::ptr_eq(&self.numbers, &other.numbers)
    }
}

impl Eq for OneOf {}

impl Hash for OneOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.numbers).hash(state);
    }
}

impl ScalarUDFImpl for OneOf {
    fn name(&self) -> &str {
        "is_one_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let numbers = ColumnarValue::values_to_arrays(&args.args)?;
        let found: BooleanArray = numbers[0]
            .as_primitive::<Int64Type>()
            .iter()
            .map(|number| number.map(|number| self.numbers.has(number)))
            .collect();
        let found: ArrayRef = Arc::new(found);
        match args.args[0] {
            ColumnarValue::Scalar(_) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)),
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(found)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_its_numbers_and_no_others_however_far_they_are_apart() {
        for numbers in [vec![5], vec![-3, 0, 64, 65, 1000], vec![i64::MIN, 0, i64::MAX], vec![7, 1 << 40]] {
            let set = Numbers::new(numbers.clone());
            for number in numbers.iter().flat_map(|n| [n.saturating_sub(1), *n, n.saturating_add(1)]) {
                assert_eq!(set.has(number), numbers.contains(&number), "{number} in {numbers:?}");
            }
        }
        assert!(matches!(Numbers::new(vec![0, 1 << 19]), Numbers::Bits(..)));
        assert!(matches!(Numbers::new(vec![0, 1 << 40]), Numbers::Sorted(_)));
    }
}
