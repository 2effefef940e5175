//! The answer of a measure: a table with described columns.

use std::borrow::Cow;

use crate::{Distribution, Rows, Timeline};

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name; ends in `_tick` if it holds lengths or instants in ticks.
    pub name: Cow<'static, str>,
    /// What it holds.
    pub kind: Kind,
    /// A sentence about it.
    pub doc: Cow<'static, str>,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number of things, or the number of a thing.
    Count,
    /// What was waited for or held: the address of a lock, or the small number of a user thread or a descriptor.
    Object,
    /// A length of time in ticks.
    Length,
    /// An instant in ticks of the main clock.
    Instant,
    /// A share in per cent.
    Percent,
    /// A figure of another kind.
    Fraction,
    /// A word or text.
    Text,
}

impl Column {
    /// Numbers of things.
    pub const fn count(name: &'static str, doc: &'static str) -> Column {
        Column { name: Cow::Borrowed(name), kind: Kind::Count, doc: Cow::Borrowed(doc) }
    }

    /// Objects.
    pub const fn object(name: &'static str, doc: &'static str) -> Column {
        Column { name: Cow::Borrowed(name), kind: Kind::Object, doc: Cow::Borrowed(doc) }
    }

    /// Lengths; the name ends in `_tick`.
    pub const fn length(name: &'static str, doc: &'static str) -> Column {
        Column { name: Cow::Borrowed(name), kind: Kind::Length, doc: Cow::Borrowed(doc) }
    }

    /// Instants; the name ends in `_tick`.
    pub const fn instant(name: &'static str, doc: &'static str) -> Column {
        Column { name: Cow::Borrowed(name), kind: Kind::Instant, doc: Cow::Borrowed(doc) }
    }

    /// Shares in per cent.
    pub const fn percent(name: &'static str, doc: &'static str) -> Column {
        Column { name: Cow::Borrowed(name), kind: Kind::Percent, doc: Cow::Borrowed(doc) }
    }

    /// Texts.
    pub const fn text(name: &'static str, doc: &'static str) -> Column {
        Column { name: Cow::Borrowed(name), kind: Kind::Text, doc: Cow::Borrowed(doc) }
    }
}

/// One cell. Most texts are borrowed, from names or from rows, because there may be as many as there are rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Not known, or none.
    Null,
    /// Of [`Kind::Count`], [`Kind::Object`], [`Kind::Length`] or [`Kind::Instant`].
    Number(i64),
    /// Of [`Kind::Percent`] or [`Kind::Fraction`].
    Fraction(f64),
    /// Of [`Kind::Text`].
    Text(Cow<'a, str>),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Number(number)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Number(number as i64)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Value::Number(number.into())
    }
}

impl From<usize> for Value<'_> {
    fn from(number: usize) -> Self {
        Value::Number(number as i64)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Fraction(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(text.into())
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// A [`Kind::Object`] as text for people. An address is hexadecimal, as elsewhere. The number of a user thread or a
/// descriptor is decimal.
///
/// Programs and their heaps are loaded far above 4 GiB, and no program has that many threads. So a value below 4 GiB is
/// not taken for an address.
pub fn object_text(object: i64) -> String {
    if (0..1 << 32).contains(&object) { object.to_string() } else { format!("{object:#x}") }
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a cell for each column.
    pub rows: Rows,
    /// For each row, the lengths that its figures summarize. Empty if the request does not ask for them, or if the
    /// measure has no lengths or lists single cases.
    pub distributions: Vec<Distribution>,
    /// The timeline, of [`GANTT`](crate::GANTT).
    pub timeline: Option<Timeline>,
    /// Notes for the reader, a sentence each.
    pub notes: Vec<String>,
}

impl Answer {
    /// An empty table.
    pub fn new(columns: Vec<Column>) -> Answer {
        Answer { columns, ..Answer::default() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Value<'_>>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a cell for each column");
        self.rows.push(&row);
    }

    /// Adds a row whose figures summarize these lengths.
    pub(crate) fn push_with_lengths(&mut self, row: Vec<Value<'_>>, lengths: Distribution) {
        self.push(row);
        self.distributions.push(lengths);
    }

    /// The place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// `part` of `whole` in per cent; 0 of nothing.
pub fn percent(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
