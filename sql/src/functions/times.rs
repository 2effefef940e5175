//! Lengths of time as text for people, and classes of lengths and instants.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, Int64Array, StringArray},
    compute::binary,
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    common::{Result, exec_err},
    logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf},
};

use super::scalar::{as_column, of_number};

/// `duration(ns)`: a length as text for people, with four digits: `12.34 µs`. From a minute on, with two units: `1 d 6
/// h`.
pub(super) fn duration() -> ScalarUDF {
    of_number("duration", DataType::Utf8, f64::round, |nanos| {
        let texts: StringArray = nanos.iter().map(|nanos| nanos.map(text)).collect();
        Arc::new(texts)
    })
}

fn text(nanos: i64) -> String {
    let length = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    if length < 1_000 {
        return format!("{sign}{length} ns");
    }
    // Each unit is used up to the length that would be rounded to the next unit.
    for (unit, nanos, limit) in [("µs", 1e3, 999.95), ("ms", 1e6, 999.95), ("s", 1e9, 59.995)] {
        let number = length as f64 / nanos;
        if number < limit {
            return format!("{sign}{} {unit}", four_digits(number));
        }
    }
    let seconds = length / 1_000_000_000 + u64::from(length % 1_000_000_000 >= 500_000_000);
    let (minutes, hours) = ((seconds + 30) / 60, (seconds + 1800) / 3600);
    match (seconds, minutes) {
        (..3_600, _) => in_two(sign, seconds, 60, ["min", "s"]),
        (_, ..1_440) => in_two(sign, minutes, 60, ["h", "min"]),
        _ => in_two(sign, hours, 24, ["d", "h"]),
    }
}

/// `count` small units, as a number of large units and the rest.
fn in_two(sign: &str, count: u64, per_large: u64, [large, small]: [&str; 2]) -> String {
    match count % per_large {
        0 => format!("{sign}{} {large}", count / per_large),
        rest => format!("{sign}{} {large} {rest} {small}", count / per_large),
    }
}

fn four_digits(number: f64) -> String {
    let decimals = match number {
        ..9.9995 => 3,
        ..99.995 => 2,
        _ => 1,
    };
    format!("{number:.decimals$}")
}

/// `log2_bucket(x)`: the class of a length in a histogram, given by its lower bound: the largest power of two that is
/// not greater than `x`. 0 for numbers below 1.
pub(super) fn log2_bucket() -> ScalarUDF {
    of_number("log2_bucket", DataType::Int64, f64::floor, |numbers| {
        let bucket = |number: i64| if number < 1 { 0 } else { 1 << number.ilog2() };
        Arc::new(numbers.unary::<_, Int64Type>(bucket))
    })
}

/// `time_bucket(width, instant)`: the class of an instant in a histogram over time, given by its start: the latest
/// multiple of the width that is not later than the instant.
pub(super) fn time_bucket() -> ScalarUDF {
    let arguments = vec![DataType::Int64, DataType::Int64];
    create_udf("time_bucket", arguments, DataType::Int64, Volatility::Immutable, Arc::new(bucketed))
}

fn bucketed(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let [widths, instants] = arrays.as_slice() else {
        return exec_err!("time_bucket: expected a width and an instant, found {} arguments", args.len());
    };
    let (widths, instants) = (widths.as_primitive::<Int64Type>(), instants.as_primitive::<Int64Type>());
    if let Some(width) = widths.iter().flatten().find(|width| *width < 1) {
        return exec_err!("time_bucket: expected a width of 1 or more, found {width}");
    }
    let bucket = |width: i64, instant: i64| match width {
        1.. => instant.saturating_sub(instant.rem_euclid(width)),
        // The slot of a NULL may hold any value.
        _ => 0,
    };
    let buckets: Int64Array = binary(widths, instants, bucket)?;
    as_column(args, Arc::new(buckets) as ArrayRef)
}

#[cfg(test)]
mod tests {
    use datafusion::error::DataFusionError;

    use super::*;

    #[test]
    fn people_read_four_digits_and_a_unit() {
        let texts =
            [0, 999, 1_000, 12_345, 999_940, 999_999, 1_000_000, 1_234_567_890, -5_000, 9_999_600].map(text);
        let expected = [
            "0 ns",
            "999 ns",
            "1.000 µs",
            "12.35 µs",
            "999.9 µs",
            "1.000 ms",
            "1.000 ms",
            "1.235 s",
            "-5.000 µs",
            "10.00 ms",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn people_read_minutes_hours_and_days_as_two_numbers() {
        let second = 1_000_000_000;
        let texts = [
            59_994_000_000,
            59_996_000_000,
            90 * second,
            3599 * second + second / 2,
            3600 * second,
            5400 * second,
            86_400 * second - 1,
            30 * 3600 * second,
            -30 * 3600 * second,
            i64::MIN,
        ];
        let expected = [
            "59.99 s",
            "1 min",
            "1 min 30 s",
            "1 h",
            "1 h",
            "1 h 30 min",
            "1 d",
            "1 d 6 h",
            "-1 d 6 h",
            "-106752 d",
        ];
        assert_eq!(texts.map(text), expected);
    }

    #[test]
    fn an_instant_is_in_the_bucket_that_begins_last() {
        let of = |width: i64, instant: i64| {
            let args = [width, instant].map(|number| ColumnarValue::Scalar(Some(number).into()));
            let buckets = bucketed(&args)?.to_array(1)?;
            Ok::<i64, DataFusionError>(buckets.as_primitive::<Int64Type>().value(0))
        };
        assert_eq!([(10, 25), (10, 30), (10, -1)].map(|(width, at)| of(width, at).unwrap()), [20, 30, -10]);
        assert!(of(0, 5).unwrap_err().to_string().contains("expected a width of 1 or more, found 0"));
    }
}
