//! The columns of a result.

use std::{collections::BTreeMap, sync::Arc};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, plan_err};

use super::{
    input::{Input, Unit},
    operation::Operation,
    times::Times,
};
use crate::{fleet::HOST, nearest};

/// The time columns of a result: in ticks, in nanoseconds by our names, and in nanoseconds by Perfetto's names.
const TIMES: [[&str; 3]; 3] =
    [["ts_tick", "ts_ns", "ts"], ["dur_tick", "dur_ns", "dur"], ["self_tick", "self_ns", "self_dur"]];

/// Where a column of the result comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Key(usize),
    From,
    Length,
    /// The column with this name of an input.
    Column(usize, String),
    Added,
}

/// The columns of a result, and where they come from.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) keys: Vec<(String, DataType)>,
    pub(super) origins: Vec<Origin>,
    pub(super) schema: SchemaRef,
    pub(super) unit: Unit,
    /// Whether an input has Perfetto's time columns. The result then has them, too.
    has_perfettos: bool,
}

impl Output {
    pub(super) fn new(
        operation: Operation,
        inputs: &[Input],
        keys: &[String],
        times: &Times,
    ) -> Result<Output> {
        let name = operation.name();
        let of_all = |unit: &Unit| inputs.iter().all(|input| input.has_time_in(*unit));
        let Some(unit) = [Unit::Ticks, Unit::Nanos].into_iter().find(of_all) else {
            return plan_err!("{name}: expected times in the same unit, found ts_tick and ts");
        };
        // Rows of different hosts must not be combined, so the host is part of the key.
        let host = HOST.to_string();
        let is_of_key = times.are_by_host() && inputs.iter().all(|input| input.has(HOST));
        let host = (is_of_key && !keys.contains(&host)).then_some(&host);
        let keys = host.into_iter().chain(keys).map(|key| Ok((key.clone(), key_type(name, inputs, key)?)));
        let keys: Vec<(String, DataType)> = keys.collect::<Result<_>>()?;
        let [start, length] = unit.columns();
        let mut columns: Vec<(Origin, Field)> = Vec::new();
        columns.push((Origin::From, Field::new(start, DataType::Int64, false)));
        columns.push((Origin::Length, Field::new(length, DataType::Int64, false)));
        for (place, (key, ty)) in keys.iter().enumerate() {
            columns.push((Origin::Key(place), Field::new(key, ty.clone(), true)));
        }
        if let Some(added) = operation.added() {
            let added = match (added, unit) {
                ("self", Unit::Ticks) => "self_tick",
                ("self", Unit::Nanos) => "self_dur",
                _ => added,
            };
            columns.push((Origin::Added, Field::new(added, DataType::Int64, false)));
        }
        if operation.keeps_columns() {
            columns.extend(kept(inputs, &columns));
        }
        let (origins, fields): (Vec<Origin>, Vec<Field>) = columns.into_iter().unzip();
        let has_perfettos = inputs.iter().any(|input| input.has_time_in(Unit::Nanos));
        Ok(Output { keys, origins, schema: Arc::new(Schema::new(fields)), unit, has_perfettos })
    }

    /// The columns in nanoseconds to add: for each, the column in ticks, and the new name.
    pub(super) fn in_nanos(&self) -> Vec<(&'static str, &'static str)> {
        if self.unit == Unit::Nanos {
            return Vec::new();
        }
        let is_there = |column: &str| self.schema.column_with_name(column).is_some();
        let times = || TIMES.into_iter().filter(|[tick, ..]| is_there(tick));
        let perfettos = times().filter(|_| self.has_perfettos);
        times().map(|[tick, ns, _]| (tick, ns)).chain(perfettos.map(|[tick, _, ns]| (tick, ns))).collect()
    }

    /// Of the columns of the result at these places, the ones that come from one input.
    pub(super) fn of_input(&self, places: &[usize], input: usize) -> Vec<String> {
        let of = |place: &usize| match &self.origins[*place] {
            Origin::Column(of, column) if *of == input => Some(column.clone()),
            _ => None,
        };
        places.iter().filter_map(of).collect()
    }
}

/// The columns of the inputs that are kept. If a name is taken, or two inputs have the same name, the column is
/// prefixed with the name of its table.
fn kept(inputs: &[Input], taken: &[(Origin, Field)]) -> Vec<(Origin, Field)> {
    let is_taken = |name: &str| taken.iter().any(|(_, field)| field.name() == name);
    let is_key = |name: &str| {
        taken.iter().any(|(origin, field)| matches!(origin, Origin::Key(_)) && field.name() == name)
    };
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, _) in inputs.iter().flat_map(Input::columns) {
        *count.entry(name).or_default() += 1;
    }
    let are_namesakes = inputs.windows(2).any(|pair| pair[0].name == pair[1].name);
    let mut kept: Vec<(Origin, Field)> = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let table = match are_namesakes {
            true => ["left", "right"][number].to_string(),
            false => input.name.clone(),
        };
        for (column, ty) in input.columns().filter(|(column, _)| !is_key(column)) {
            // With a single input, the times of the result replace its own.
            let is_time = TIMES[..2].iter().flatten().any(|time| *time == column);
            if inputs.len() == 1 && is_time {
                continue;
            }
            let is_time = is_time
                || match inputs.len() {
                    1 => TIMES[2].contains(&column),
                    _ => column == "ts_end",
                };
            let of_several = count.get(column).is_some_and(|count| *count > 1);
            let mut name = match of_several || is_time || is_taken(column) {
                true => format!("{table}_{column}"),
                false => column.to_string(),
            };
            while is_taken(&name) || kept.iter().any(|(_, field)| *field.name() == name) {
                name.push('_');
            }
            kept.push((Origin::Column(number, column.to_string()), Field::new(name, ty.clone(), true)));
        }
    }
    kept
}

fn key_type(function: &str, inputs: &[Input], key: &str) -> Result<DataType> {
    let mut common: Option<DataType> = None;
    for input in inputs {
        let Some(found) = input.column_type(key) else {
            let near = nearest(key, input.columns().map(|(name, _)| name)).join(", ");
            return plan_err!(
                "{function}: {}: expected a column {key} of the key, found none; nearest: {near}",
                input.name
            );
        };
        let joined = common_key_type(common.as_ref().unwrap_or(found), found);
        let Some(joined) = joined else {
            return plan_err!(
                "{function}: {key}: expected one type in both tables, found {found} in {}",
                input.name
            );
        };
        common = Some(joined);
    }
    Ok(common.unwrap_or(DataType::Int64))
}

/// The type in which keys of these two types can be compared; `None` if there is none.
fn common_key_type(one: &DataType, other: &DataType) -> Option<DataType> {
    let plain = |ty: &DataType| match ty {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        ty if ty.is_integer() => DataType::Int64,
        ty => ty.clone(),
    };
    let (one, other) = (plain(one), plain(other));
    (one == other).then_some(one)
}
