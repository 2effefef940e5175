//! Lengths of time: ticks and nanoseconds, text for people, classes of lengths.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Int64Array, StringArray},
    datatypes::{DataType, Int64Type},
};
use datafusion::logical_expr::ScalarUDF;
use sigmund_model::Hertz;

use super::scalar::of_number;

/// `to_ns(ticks)`: a length in nanoseconds, rounded towards zero; NULL if the rate of the clock is not known.
pub(super) fn to_ns(tick_hz: Option<Hertz>) -> ScalarUDF {
    converted("to_ns", tick_hz, |ticks, hz| ticks * 1e9 / hz)
}

/// `to_ticks(ns)`: a length in ticks of the clock of the recording, as `to_ns`.
pub(super) fn to_ticks(tick_hz: Option<Hertz>) -> ScalarUDF {
    converted("to_ticks", tick_hz, |nanos, hz| nanos * hz / 1e9)
}

fn converted(name: &'static str, hz: Option<Hertz>, convert: fn(f64, f64) -> f64) -> ScalarUDF {
    of_number(name, DataType::Int64, move |lengths| {
        let converted: Int64Array = match hz {
            None => Int64Array::new_null(arrow::array::Array::len(lengths)),
            Some(hz) => {
                lengths.unary::<_, Int64Type>(|length| convert(length as f64, hz.per_second()) as i64)
            }
        };
        Ok(Arc::new(converted) as ArrayRef)
    })
}

/// `duration(ns)`: a length for people, with four digits: `12.34 µs`.
pub(super) fn duration() -> ScalarUDF {
    of_number("duration", DataType::Utf8, |nanos| {
        let texts: StringArray = nanos.iter().map(|nanos| nanos.map(text)).collect();
        Ok(Arc::new(texts) as ArrayRef)
    })
}

fn text(nanos: i64) -> String {
    let units = [(1_000, "ns"), (1_000_000, "µs"), (1_000_000_000, "ms")];
    let length = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    match units.into_iter().find(|(limit, _)| length < *limit) {
        Some((_, "ns")) => format!("{sign}{length} ns"),
        Some((limit, unit)) => format!("{sign}{} {unit}", four_digits(length as f64 * 1e3 / limit as f64)),
        None => format!("{sign}{} s", four_digits(length as f64 / 1e9)),
    }
}

fn four_digits(number: f64) -> String {
    let decimals = match number {
        ..10.0 => 3,
        ..100.0 => 2,
        ..1000.0 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}")
}

/// `log2_bucket(x)`: the power of two that begins the class of a length in a histogram: the largest that is not greater; 0 of
/// numbers below 1.
pub(super) fn log2_bucket() -> ScalarUDF {
    of_number("log2_bucket", DataType::Int64, |numbers| {
        let bucket = |number: i64| if number < 1 { 0 } else { 1 << number.ilog2() };
        Ok(Arc::new(numbers.unary::<_, Int64Type>(bucket)) as ArrayRef)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_four_digits_and_a_unit() {
        let texts = [0, 999, 1_000, 12_345, 999_950, 1_000_000, 1_234_567_890, -5_000, i64::MIN].map(text);
        let expected = [
            "0 ns",
            "999 ns",
            "1.000 µs",
            "12.35 µs",
            "1000.0 µs",
            "1.000 ms",
            "1.235 s",
            "-5.000 µs",
            "-9223372037 s",
        ];
        assert_eq!(texts, expected);
    }
}
