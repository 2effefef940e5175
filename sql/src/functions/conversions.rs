//! `to_ns(ticks)`, `to_ticks(ns)`, `wall_time(tick)`: conversions by the clock of the rows' super-trace.
//!
//! A session may read several super-traces, each with its own clock. When a query is planned,
//! [`Clocks::bind`](crate::clocks::Clocks::bind) finds out which tables the rows of a call come from, and gives the
//! function their clocks. If these clocks differ, the call has to name one, by a text or a column: `wall_time(host,
//! ts_tick)`.

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, TimestampNanosecondArray},
    datatypes::{DataType, Float64Type, Int64Type, TimeUnit},
};
use datafusion::{
    common::{DataFusionError, Result, exec_err, plan_err},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility},
};

use super::{
    clock::NamedClock,
    scalar::{as_column, number_type},
    wall_time::{self, Snapshot},
};
use crate::{clocks::Clocks, nearest};

/// What a function converts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Conversion {
    /// A length in ticks to nanoseconds, rounded towards zero. NULL if the rate of the clock is unknown.
    ToNanos,
    /// A length in nanoseconds to ticks, in the same way.
    ToTicks,
    /// An instant to the time of the machine's clock, in UTC. Between two snapshots of that clock, it is on the line
    /// through these. Before the first and after the last snapshot, it continues at the rate of the main clock. NULL if
    /// the recording has no snapshot of that clock.
    WallTime,
}

/// 2^63: one more than the largest number of 64 bits.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// All conversions.
pub(super) const CONVERSIONS: [Conversion; 3] =
    [Conversion::ToNanos, Conversion::ToTicks, Conversion::WallTime];

impl Conversion {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Conversion::ToNanos => "to_ns",
            Conversion::ToTicks => "to_ticks",
            Conversion::WallTime => "wall_time",
        }
    }
}

/// A conversion by one of some clocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ByClock {
    conversion: Conversion,
    clocks: OfClocks,
    signature: Signature,
}

/// The clocks that a function may use.
#[derive(Clone, Debug)]
enum OfClocks {
    /// The clocks that the session has when the function is called.
    Session(Arc<Clocks>),
    /// These clocks.
    Bound(Vec<NamedClock>),
}

impl PartialEq for OfClocks {
    fn eq(&self, other: &OfClocks) -> bool {
        match (self, other) {
            (OfClocks::Session(one), OfClocks::Session(other)) => Arc::ptr_eq(one, other),
            (OfClocks::Bound(one), OfClocks::Bound(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for OfClocks {}

impl std::hash::Hash for OfClocks {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            OfClocks::Session(clocks) => Arc::as_ptr(clocks).hash(state),
            OfClocks::Bound(clocks) => clocks.hash(state),
        }
    }
}

impl ByClock {
    fn function(conversion: Conversion, clocks: OfClocks) -> ScalarUDF {
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::new_from_impl(ByClock { conversion, clocks, signature })
    }

    /// A function with the clocks of a session.
    pub(super) fn of_session(conversion: Conversion, clocks: &Arc<Clocks>) -> ScalarUDF {
        ByClock::function(conversion, OfClocks::Session(Arc::clone(clocks)))
    }

    /// A function with these clocks.
    pub(crate) fn bound(conversion: Conversion, clocks: Vec<NamedClock>) -> ScalarUDF {
        ByClock::function(conversion, OfClocks::Bound(clocks))
    }

    pub(crate) fn conversion(&self) -> Conversion {
        self.conversion
    }

    /// Whether it still has the clocks of the session.
    pub(crate) fn is_of_session(&self) -> bool {
        matches!(self.clocks, OfClocks::Session(_))
    }

    /// The clocks that it may use.
    pub(super) fn clocks(&self) -> Vec<NamedClock> {
        match &self.clocks {
            OfClocks::Session(clocks) => clocks.of_names_without_schema(),
            OfClocks::Bound(clocks) => clocks.clone(),
        }
    }
}

/// The clock of a call that names none. There must be only one, or all must convert in the same way.
///
/// # Errors
/// When there are several clocks that differ; when snapshots cannot be read.
pub(crate) fn only_clock(conversion: Conversion, clocks: &[NamedClock]) -> Result<Option<&NamedClock>> {
    let Some((first, others)) = clocks.split_first() else { return Ok(None) };
    let known = Converter::of(conversion, first)?;
    for other in others {
        if Converter::of(conversion, other)? != known {
            let name = conversion.name();
            let names = clocks.iter().filter_map(|clock| clock.names.first()).map(String::as_str);
            return plan_err!(
                "{name}: expected a host or the name of a super-trace as first argument, as in {name}(host, …), found none: \
                 each of {} has a clock of its own",
                names.collect::<Vec<_>>().join(", ")
            );
        }
    }
    Ok(Some(first))
}

/// The parts of a clock that a conversion needs.
#[derive(Clone, Debug, PartialEq)]
struct Converter {
    conversion: Conversion,
    tick_hz: Option<f64>,
    snapshots: Arc<[Snapshot]>,
}

impl Converter {
    fn of(conversion: Conversion, clock: &NamedClock) -> Result<Converter> {
        let snapshots = match conversion {
            Conversion::WallTime => clock.snapshots(),
            Conversion::ToNanos | Conversion::ToTicks => Ok(Arc::default()),
        };
        let snapshots = snapshots.map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(Converter { conversion, tick_hz: clock.tick_hz.map(|hz| hz.per_second()), snapshots })
    }

    fn instant(&self, tick: i64) -> Option<i64> {
        wall_time::at(&self.snapshots, self.tick_hz.map(|hz| 1e9 / hz), tick)
    }

    fn length(&self, length: f64) -> Result<Option<i64>> {
        let Some(hz) = self.tick_hz else { return Ok(None) };
        let converted = match self.conversion {
            Conversion::ToTicks => length * hz / 1e9,
            Conversion::ToNanos | Conversion::WallTime => length * 1e9 / hz,
        };
        // The floating-point numbers nearest to 2^63 are 2^63 itself, which is too large, and 1024 less.
        match converted.abs() < TOO_LARGE {
            true => Ok(Some(converted as i64)),
            false => exec_err!(
                "{}: expected a number that gives one within 64 bits, found {length}",
                self.conversion.name()
            ),
        }
    }

    /// The converted value in a row.
    fn value(&self, times: &Times<'_>, row: usize) -> Result<Option<i64>> {
        match (times, self.conversion) {
            (times, _) if !times.is_valid(row) => Ok(None),
            (Times::Whole(numbers), Conversion::WallTime) => Ok(self.instant(numbers.value(row))),
            (Times::Whole(numbers), _) => self.length(numbers.value(row) as f64),
            (Times::Fractions(numbers), _) => self.length(numbers.value(row)),
        }
    }
}

enum Times<'a> {
    Whole(&'a Int64Array),
    Fractions(&'a arrow::array::Float64Array),
}

impl<'a> Times<'a> {
    fn of(array: &'a ArrayRef) -> Result<Times<'a>> {
        match (array.as_primitive_opt::<Int64Type>(), array.as_primitive_opt::<Float64Type>()) {
            (Some(numbers), _) => Ok(Times::Whole(numbers)),
            (_, Some(numbers)) => Ok(Times::Fractions(numbers)),
            _ => exec_err!("expected a number, found {}", array.data_type()),
        }
    }

    fn is_valid(&self, row: usize) -> bool {
        match self {
            Times::Whole(numbers) => numbers.is_valid(row),
            Times::Fractions(numbers) => numbers.is_valid(row),
        }
    }
}

/// A converter for each clock, by its names.
struct ByName<'c> {
    conversion: Conversion,
    clocks: &'c [NamedClock],
    known: HashMap<&'c str, Converter>,
}

impl<'c> ByName<'c> {
    fn of(&mut self, name: &str) -> Result<&Converter> {
        if !self.known.contains_key(name) {
            let has = |clock: &&NamedClock| clock.names.iter().any(|of_clock| of_clock == name);
            let Some(clock) = self.clocks.iter().find(has) else { return self.unknown(name) };
            let converter = Converter::of(self.conversion, clock)?;
            self.known.extend(clock.names.iter().map(|name| (name.as_str(), converter.clone())));
        }
        match self.known.get(name) {
            Some(converter) => Ok(converter),
            None => self.unknown(name),
        }
    }

    fn unknown<T>(&self, name: &str) -> Result<T> {
        let names = self.clocks.iter().flat_map(|clock| clock.names.iter().map(String::as_str));
        let near = nearest(name, names).join(", ");
        let hint = if near.is_empty() { String::new() } else { format!("; nearest: {near}") };
        let function = self.conversion.name();
        exec_err!("{function}: expected a host or the name of a super-trace, found `{name}`{hint}")
    }
}

impl ScalarUDFImpl for ByClock {
    fn name(&self) -> &str {
        self.conversion.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        let number = |ty: &DataType| match (number_type(ty), self.conversion) {
            (Some(_), Conversion::WallTime) => Ok(DataType::Int64),
            (Some(number), Conversion::ToNanos | Conversion::ToTicks) => Ok(number),
            (None, _) => plan_err!("{name}: expected a number, found {ty}"),
        };
        match types {
            [time] => Ok(vec![number(time)?]),
            [_, time] => Ok(vec![DataType::Utf8, number(time)?]),
            _ => plan_err!(
                "{name}: expected a number, or a host and a number, found {} arguments",
                types.len()
            ),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.conversion {
            Conversion::WallTime => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Conversion::ToNanos | Conversion::ToTicks => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let clocks = self.clocks();
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let values: Int64Array = match arrays.as_slice() {
            [times] => {
                let clock = only_clock(self.conversion, &clocks)?;
                let converter = clock.map(|clock| Converter::of(self.conversion, clock)).transpose()?;
                let of = Times::of(times)?;
                let value = |row| converter.as_ref().map_or(Ok(None), |clock| clock.value(&of, row));
                (0..times.len()).map(value).collect::<Result<_>>()?
            }
            [names, times] => {
                let (names, of) = (names.as_string::<i32>(), Times::of(times)?);
                let mut by_name =
                    ByName { conversion: self.conversion, clocks: &clocks, known: HashMap::new() };
                let value = |row: usize| match names.is_valid(row) {
                    true => by_name.of(names.value(row))?.value(&of, row),
                    false => Ok(None),
                };
                (0..times.len()).map(value).collect::<Result<_>>()?
            }
            _ => return exec_err!("{}: expected 1 or 2 arguments, found {}", self.name(), arrays.len()),
        };
        let values: ArrayRef = match self.conversion {
            Conversion::WallTime => Arc::new(
                TimestampNanosecondArray::new(values.values().clone(), values.nulls().cloned())
                    .with_timezone("UTC"),
            ),
            Conversion::ToNanos | Conversion::ToTicks => Arc::new(values),
        };
        as_column(&args.args, values)
    }
}
