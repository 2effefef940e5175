//! How large the results of functions become, from their arguments.

use std::mem::size_of_val;

use arrow::{
    array::{Array, ArrayRef, AsArray, LargeListArray, ListArray},
    compute::{cast, kernels::length::length},
    datatypes::{
        DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    },
};
use datafusion::{common::Result, logical_expr::ColumnarValue};

/// What the size of a result follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Size {
    /// A text so many times.
    Repeated,
    /// A text of so many characters.
    Padded,
    /// A list of a value so many times.
    ListOf,
    /// A list of the numbers, or times, between two.
    Between,
    /// A list of so many values.
    Resized,
    /// A text in which a part is replaced wherever it occurs.
    Replaced,
    /// A text in which what a pattern matches is replaced.
    ReplacedMatches,
    /// The texts of a list, with another between them.
    Joined,
    /// A time by a format.
    Formatted,
}

impl Size {
    /// Whether results are as large as [`of_rows`](Self::of_rows) returns. If not, they are at most as large.
    pub(super) fn is_exact(self) -> bool {
        !matches!(self, Size::Replaced | Size::ReplacedMatches | Size::Joined | Size::Formatted)
    }

    /// The size of the result of each row in bytes, and of the copies of constant arguments that it is made from.
    pub(super) fn of_rows(self, args: &[ColumnarValue], rows: usize) -> Result<Vec<i128>> {
        let args = Arguments { args, rows };
        let constants = args.of_constants();
        let mut sizes = self.of_results(&args)?;
        sizes.iter_mut().for_each(|size| *size += constants);
        Ok(sizes)
    }

    fn of_results(self, args: &Arguments<'_>) -> Result<Vec<i128>> {
        let of = |size: &dyn Fn(usize) -> i128| (0..args.rows).map(|row| size(row).max(0)).collect();
        Ok(match self {
            Size::Repeated => {
                let (length, count) = (args.lengths(0)?, args.integers(1)?);
                of(&|row| length.of(row) * count.of(row).max(0))
            }
            Size::Padded => {
                let length = args.integers(1)?;
                of(&|row| length.of(row))
            }
            Size::ListOf => {
                let (width, count) = (args.width()?, args.integers(1)?);
                of(&|row| count.of(row) * width)
            }
            Size::Resized => {
                let (width, count) = (args.width_of_items()?.max(8), args.integers(1)?);
                of(&|row| count.of(row) * width)
            }
            // Of one number, the first is 0.
            Size::Between if args.args.len() == 1 => {
                let to = args.integers(0)?;
                of(&|row| to.of(row).abs() * 8)
            }
            Size::Between => {
                let (from, to, step) = (args.instants(0)?, args.instants(1)?, args.steps(2)?);
                // With a NULL, there is no list.
                let length = |row| Some((to.get(row)? - from.get(row)?).abs());
                let step = |row| if args.args.len() > 2 { step.get(row) } else { Some(1) };
                of(&|row| {
                    length(row).zip(step(row)).map_or(0, |(length, step)| length / step.abs().max(1) * 8)
                })
            }
            Size::Replaced => {
                let (length, from, to) = (args.lengths(0)?, args.lengths(1)?, args.lengths(2)?);
                of(&|row| {
                    let length = length.of(row);
                    let times = if from.of(row) == 0 { length + 1 } else { length / from.of(row) };
                    length + times * to.of(row)
                })
            }
            Size::ReplacedMatches => {
                let (length, to, references) = (args.lengths(0)?, args.lengths(2)?, args.references(2)?);
                // Each reference in the replacement is to a part of the match.
                of(&|row| {
                    let length = length.of(row);
                    length + (length + 1) * to.of(row) + references.of(row) * length
                })
            }
            Size::Joined => {
                let (width, items) = (args.width_of_items()? + 32, args.items()?);
                let (between, null) = (args.lengths(1)?, args.lengths(2)?);
                of(&|row| items.of(row) * (width + between.of(row) + null.of(row)))
            }
            // `%+` is a time of 35 characters.
            Size::Formatted => {
                let format = args.lengths(1)?;
                of(&|row| format.of(row) * 18)
            }
        })
    }
}

/// The arguments of a function for some rows.
struct Arguments<'a> {
    args: &'a [ColumnarValue],
    rows: usize,
}

/// A number for each row, or one for all. None where it is NULL.
struct Numbers(Vec<Option<i128>>);

impl Numbers {
    fn get(&self, row: usize) -> Option<i128> {
        self.0.get(row).or(self.0.last()).copied().flatten()
    }

    /// 0 for NULL.
    fn of(&self, row: usize) -> i128 {
        self.get(row).unwrap_or(0)
    }
}

impl Arguments<'_> {
    /// An argument, of one row if it is a constant.
    fn array(&self, place: usize) -> Result<Option<ArrayRef>> {
        self.args.get(place).map(|arg| arg.to_array(1)).transpose()
    }

    fn numbers(&self, place: usize, of: impl Fn(&ArrayRef) -> Result<Vec<Option<i128>>>) -> Result<Numbers> {
        Ok(Numbers(self.array(place)?.map_or_else(|| Ok(Vec::new()), |array| of(&array))?))
    }

    /// Each constant is copied to each row, unless all arguments are constants.
    fn of_constants(&self) -> i128 {
        let of = |arg: &ColumnarValue| match arg {
            ColumnarValue::Scalar(value) => value.size().saturating_sub(size_of_val(value)) as i128,
            ColumnarValue::Array(_) => 0,
        };
        self.args.iter().map(of).sum()
    }

    /// The numbers of a column; none of a column of another type.
    fn integers(&self, place: usize) -> Result<Numbers> {
        self.numbers(place, integers)
    }

    /// The lengths of the texts of a column; none of a column of another type.
    fn lengths(&self, place: usize) -> Result<Numbers> {
        self.numbers(place, lengths)
    }

    /// Numbers, or times in nanoseconds.
    fn instants(&self, place: usize) -> Result<Numbers> {
        self.numbers(place, |array| match array.data_type() {
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
                // In nanoseconds, 64 bits hold the times of 584 years only.
                let times = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
                let micros = integers(&cast(&times, &DataType::Int64)?)?;
                Ok(micros.into_iter().map(|micros| micros.map(|micros| micros * 1000)).collect())
            }
            _ => integers(array),
        })
    }

    /// Steps between numbers, or between times in nanoseconds: at least as short as they are.
    fn steps(&self, place: usize) -> Result<Numbers> {
        const DAY: i128 = 86_400_000_000_000;
        self.numbers(place, |array| {
            if !matches!(array.data_type(), DataType::Interval(_)) {
                return integers(array);
            }
            let intervals = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let nanoseconds = |interval: IntervalMonthDayNano| {
                i128::from(interval.months) * 28 * DAY
                    + i128::from(interval.days) * DAY
                    + i128::from(interval.nanoseconds)
            };
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            Ok(intervals.iter().map(|interval| interval.map(nanoseconds)).collect())
        })
    }

    /// The number of references to groups in each replacement, at most.
    fn references(&self, place: usize) -> Result<Numbers> {
        self.numbers(place, |array| {
            if !is_text(array.data_type()) {
                return Ok(Vec::new());
            }
            let texts = cast(array, &DataType::LargeUtf8)?;
            let count = |text: &str| text.bytes().filter(|byte| matches!(byte, b'\\' | b'$')).count() as i128;
            Ok(texts.as_string::<i64>().iter().map(|text| text.map(count)).collect())
        })
    }

    /// The number of items of each list.
    fn items(&self) -> Result<Numbers> {
        self.numbers(0, |lists| {
            let rows = 0..lists.len();
            let small =
                |lists: &ListArray| rows.clone().map(|row| Some(lists.value_length(row).into())).collect();
            let large = |lists: &LargeListArray| {
                rows.clone().map(|row| Some(lists.value_length(row).into())).collect()
            };
            let lengths = lists.as_list_opt::<i32>().map(small);
            Ok(lengths.or_else(|| lists.as_list_opt::<i64>().map(large)).unwrap_or_default())
        })
    }

    /// The mean size of the values of the first argument in bytes.
    fn width(&self) -> Result<i128> {
        Ok(self.array(0)?.map_or(0, |values| mean_size(&values)).max(1))
    }

    /// The mean size of the items of the lists of the first argument in bytes.
    fn width_of_items(&self) -> Result<i128> {
        let width = |lists: ArrayRef| {
            let small = lists.as_list_opt::<i32>().map(|lists| mean_size(lists.values()));
            small.or_else(|| lists.as_list_opt::<i64>().map(|lists| mean_size(lists.values())))
        };
        Ok(self.array(0)?.and_then(width).unwrap_or(0))
    }
}

fn integers(array: &ArrayRef) -> Result<Vec<Option<i128>>> {
    if !array.data_type().is_integer() {
        return Ok(Vec::new());
    }
    let numbers = cast(array, &DataType::Int64)?;
    Ok(numbers.as_primitive::<Int64Type>().iter().map(|number| number.map(i128::from)).collect())
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn lengths(array: &ArrayRef) -> Result<Vec<Option<i128>>> {
    match array.data_type() {
        DataType::Dictionary(_, values) => lengths(&cast(array, values)?),
        data_type if is_text(data_type) => integers(&length(array)?),
        _ => Ok(Vec::new()),
    }
}

fn mean_size(values: &ArrayRef) -> i128 {
    (values.get_array_memory_size() / values.len().max(1)) as i128
}
