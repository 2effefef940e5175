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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ALL, By, History, Request, Subject};

    /// `measure: keys | figures with units`, one line each.
    #[test]
    fn the_columns_of_every_measure_are_known() {
        let mut found = Vec::new();
        for measure in ALL {
            let mut history = History::default();
            let mut request = Request { by: Some(By::Pattern), ..Request::default() };
            // About pairs no name is needed, and there are none.
            request.is_of_pairs = !matches!(measure.subject, Subject::None | Subject::Optional(_));
            history.extent = Some(crate::Interval::new(0, 1));
            let columns = measure.answer(&history, &request).unwrap().columns;
            let keys: Vec<&str> = keys(&columns).iter().map(|place| &*columns[*place].name).collect();
            let figures = figures(&columns);
            let figures: Vec<_> = figures.iter().map(|f| format!("{} {}", f.name, f.unit.name())).collect();
            found.push(format!("{}: {} | {}", measure.name, keys.join(", "), figures.join(", ")));
        }
        let lengths = "count 1/s, total ns/s, p50 ns, p99 ns";
        let expected = [
            "summary: what, number, name | total ns/s, switches 1/s, migrations 1/s, preemptions 1/s".into(),
            "active-time: name | active ns/s, life ns/s".into(),
            "states: name, state, reason, culprit | count 1/s, total ns/s".into(),
            "breakdown: name, what, which | count 1/s, part ns/s, total ns/s, on_cpu ns/s, errors 1/s".into(),
            format!(
                "functions: name, kind, function | inclusive ns/s, self ns/s, inclusive_active ns/s, \
                 self_active ns/s, active_unknown 1/s, {lengths}"
            ),
            format!("latency: name, kind | {lengths}"),
            format!("reactivity: row, what, culprit | {lengths}"),
            "explain: band, category, who, waits_for, culprit | total ns/s, mean ns".into(),
            "critical-path: cause, culprit | count 1/s, total ns/s".into(),
            "locks: name, kind, call_site | requests 1/s, contended 1/s, wait ns/s, holds 1/s, hold ns/s, \
             waited ns/s, holder_active ns/s, convoy ns/s, holder_unknown ns/s, no_holder ns/s"
                .into(),
            format!("critical-sections: name, depth | {lengths}"),
            format!("interrupts: hit_name, kind, number, name | {lengths}, wall ns/s, unended 1/s"),
            format!("noise: name, curve | {lengths}"),
            format!("quanta: name, ended_by | {lengths}, wall ns/s, preemptions 1/s"),
            format!("switch-cost: name, from | {lengths}"),
        ];
        assert_eq!(found, expected);
    }
}
