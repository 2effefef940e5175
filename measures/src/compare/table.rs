//! An answer as a table by the keys of its rows, in units that do not depend on the clock.

use std::collections::BTreeMap;

use sigmund_model::Hertz;

use super::figures::{Figure, Unit, figures, keys};
use crate::{Answer, Column, Interval, Kind, Value};

/// The key of a row: a text for each of its columns.
pub(super) type Key = Vec<Option<String>>;

/// An answer, ready to be compared.
pub(super) struct Table {
    /// The columns of the keys.
    pub(super) keys: Vec<Column>,
    /// The names of the key's columns and of the figures.
    pub(super) names: Vec<String>,
    pub(super) figures: Vec<Figure>,
    /// For each row, a cell for each figure. Sums are in nanoseconds or counts, and not per second.
    pub(super) rows: BTreeMap<Key, Vec<Option<f64>>>,
    /// The number of lengths behind the percentiles and means of a row, if the answer has it.
    lengths: BTreeMap<Key, i64>,
    /// The number of rows that had the same key as another one.
    pub(super) merged: usize,
    /// The length of the window.
    pub(super) seconds: f64,
}

impl Table {
    pub(super) fn new(answer: &Answer, hz: Hertz, window: Interval) -> Table {
        let (places, figures) = (keys(&answer.columns), figures(&answer.columns));
        let keys: Vec<Column> = places.iter().map(|place| key_column(&answer.columns[*place])).collect();
        let names = keys.iter().map(|column| column.name.to_string());
        let names = names.chain(figures.iter().map(|figure| figure.name.clone())).collect();
        let mut table = Table {
            keys,
            names,
            figures,
            rows: BTreeMap::new(),
            lengths: BTreeMap::new(),
            merged: 0,
            seconds: window.ticks() as f64 / hz.per_second(),
        };
        let ns = 1e9 / hz.per_second();
        let lengths = answer.column("count").or_else(|| answer.column("instances"));
        for row in answer.rows.iter() {
            let values = table.figures.iter().map(|figure| match (row.get(figure.place), figure.unit) {
                (Some(Value::Number(number)), Unit::PerSecond) => Some(*number as f64),
                (Some(Value::Number(ticks)), _) => Some(*ticks as f64 * ns),
                _ => None,
            });
            let values: Vec<Option<f64>> = values.collect();
            let key = key(&answer.columns, &places, &row);
            if let Some(Value::Number(lengths)) = lengths.and_then(|place| row.get(place)) {
                table.lengths.insert(key.clone(), *lengths);
            }
            table.add(key, values);
        }
        table
    }

    /// Adds a row. For rows with the same key, sums are added; their other figures become unknown.
    fn add(&mut self, key: Key, values: Vec<Option<f64>>) {
        let Some(known) = self.rows.get_mut(&key) else {
            self.rows.insert(key, values);
            return;
        };
        self.merged += 1;
        for ((figure, known), value) in self.figures.iter().zip(known).zip(values) {
            *known = match (figure.unit.is_sum(), *known, value) {
                (false, ..) => None,
                (true, Some(known), Some(value)) => Some(known + value),
                (true, known, value) => known.or(value),
            };
        }
    }

    /// A figure of a row as in the answer; `None` if the row does not have it.
    pub(super) fn raw(&self, key: &Key, figure: &Figure) -> Option<f64> {
        let place = self.figures.iter().position(|other| other.place == figure.place)?;
        self.rows.get(key)?.get(place).copied().flatten()
    }

    /// The number of lengths behind the percentiles and means of a row; `None` if the answer does not have it.
    pub(super) fn lengths(&self, key: &Key) -> Option<i64> {
        self.lengths.get(key).copied()
    }

    /// A figure of a row; sums are per second.
    pub(super) fn value(&self, key: &Key, figure: &Figure) -> Option<f64> {
        let per = if figure.unit.is_sum() { self.seconds } else { 1.0 };
        Some(self.raw(key, figure)? / per)
    }
}

/// A column of keys always holds texts.
pub(super) fn key_column(column: &Column) -> Column {
    Column { kind: Kind::Text, ..column.clone() }
}

fn key(columns: &[Column], places: &[usize], row: &[Value<'_>]) -> Key {
    let is_named = places.iter().any(|place| columns[*place].name == "name" && is_text(row.get(*place)));
    let cell = |place: &usize| match (row.get(*place), &*columns[*place].name) {
        (Some(Value::Text(text)), "culprit" | "waits_for") => Some(without_numbers(text)),
        (Some(Value::Text(text)), _) => Some(text.to_string()),
        // The number of an interrupt or a thread may differ in the next run. The number of a CPU does not.
        (Some(Value::Number(_)), "number") if is_named => None,
        (Some(Value::Number(number)), _) => Some(number.to_string()),
        _ => None,
    };
    places.iter().map(cell).collect()
}

fn is_text(value: Option<&Value<'_>>) -> bool {
    matches!(value, Some(Value::Text(_)))
}

/// A text with each number in it, decimal or hexadecimal with `0x`, as `*`.
fn without_numbers(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut parts = text.split("0x");
    left.push_str(parts.next().unwrap_or_default());
    for part in parts {
        left.push('0');
        left.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    crate::pattern(&left).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn culprits_are_the_same_in_another_run() {
        let texts = ["LWP 90(cc1)", "mutex 0x7ffc12ab", "idle", "0x12, 0xab and 5", "0x"];
        assert_eq!(texts.map(without_numbers), ["LWP *(cc*)", "mutex *", "idle", "*, * and *", "*"]);
    }
}
