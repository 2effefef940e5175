//! Which columns of an answer form the key of a row, and which are compared.

use crate::{Column, Kind};

/// Numbers that differ from run to run. They are not part of a row's key.
const IDENTIFIERS: [&str; 5] = ["thread", "lwp", "pid", "process", "object"];

/// Numbers that are part of a row's key.
const NUMBERS_OF_KEYS: [&str; 2] = ["number", "depth"];

/// Not compared: these are neither sums nor distributions of one row.
const NOT_COMPARED: [&str; 3] = ["holders", "instances", "lock_convoy_tick"];

/// The unit of a figure, the most informative first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    TimePerSecond,
    Time,
    PerSecond,
}

impl Unit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::TimePerSecond => "ns/s",
            Unit::Time => "ns",
            Unit::PerSecond => "1/s",
        }
    }

    /// Whether it can be added over time and over rows.
    pub(super) fn is_sum(self) -> bool {
        self != Unit::Time
    }
}

/// A column that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Figure {
    /// Its name without `_tick`.
    pub(super) name: String,
    /// Its place in the answer.
    pub(super) place: usize,
    pub(super) unit: Unit,
}

/// The places of the key's columns. They are before the first figure, and have texts and numbers that are the same in
/// every run.
pub(super) fn keys(columns: &[Column]) -> Vec<usize> {
    let is_identity = |column: &Column| {
        let name: &str = &column.name;
        column.kind == Kind::Text || IDENTIFIERS.contains(&name) || NUMBERS_OF_KEYS.contains(&name)
    };
    let first = columns.iter().position(|column| !is_identity(column)).unwrap_or(columns.len());
    (0..first).filter(|place| !IDENTIFIERS.contains(&&*columns[*place].name)).collect()
}

/// The columns that are compared.
pub(super) fn figures(columns: &[Column]) -> Vec<Figure> {
    let is_there = |name: &str| columns.iter().any(|column| column.name == name);
    let has_percentiles = is_there("p50_tick");
    let first = keys(columns).last().map_or(0, |last| last + 1);
    let figure = |(place, column): (usize, &Column)| {
        let full: &str = &column.name;
        let name = full.strip_suffix("_tick").unwrap_or(full);
        let unit = match column.kind {
            Kind::Count => Unit::PerSecond,
            Kind::Length if matches!(name, "p50" | "p99") => Unit::Time,
            Kind::Length if name == "mean" => Unit::Time,
            Kind::Length => Unit::TimePerSecond,
            _ => return None,
        };
        // Left out: the longest in a longer window is longer. A length that belongs to an actor named beside it is of
        // another actor in each run.
        let is_extreme = matches!(name, "min" | "max" | "p90") || name.starts_with("longest");
        let is_mean = name.ends_with("_mean") || (name == "mean" && has_percentiles);
        let is_of_named = column.kind == Kind::Length && is_there(name);
        let is_left_out = NOT_COMPARED.contains(&full) || IDENTIFIERS.contains(&full);
        (!is_extreme && !is_mean && !is_of_named && !is_left_out).then(|| Figure {
            name: name.to_string(),
            place,
            unit,
        })
    };
    columns.iter().enumerate().skip(first).filter_map(figure).collect()
}
