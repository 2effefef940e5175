//! The header line: the order of the columns.

use super::row::BadLine;

/// A column of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Type,
    DateTick,
    Pid,
    Cpu,
    Thr,
    Code,
    Name,
    Params,
}

impl Column {
    const ALL: [(Column, &'static [&'static str]); 8] = [
        (Column::Type, &["type"]),
        (Column::DateTick, &["date_tick"]),
        (Column::Pid, &["pid"]),
        (Column::Cpu, &["cpu"]),
        (Column::Thr, &["thr"]),
        (Column::Code, &["code"]),
        (Column::Name, &["name", "event"]),
        (Column::Params, &["params", "param(s)", "param"]),
    ];

    fn named(name: &str) -> Option<Column> {
        Column::ALL.iter().find(|(_, names)| names.contains(&name)).map(|(column, _)| *column)
    }
}

/// The positions of the columns.
#[derive(Debug)]
pub(super) struct Header {
    places: Vec<Option<Column>>,
}

impl Header {
    /// Reads a header line. Unknown columns are ignored.
    pub(super) fn parse(line: &str) -> Result<Header, BadLine> {
        let places: Vec<_> = line.split('\t').map(|name| Column::named(name.trim())).collect();
        for needed in [Column::Type, Column::DateTick, Column::Name] {
            if !places.contains(&Some(needed)) {
                let expected = "a header with the columns type, date_tick and name (or event), tab separated";
                return Err(BadLine::new(expected, line));
            }
        }
        Ok(Header { places })
    }

    /// The cell of a column in a line; empty if the line has none.
    pub(super) fn cell<'l>(&self, line: &'l str, column: Column) -> &'l str {
        let cell = line.split('\t').zip(&self.places).find(|(_, place)| **place == Some(column));
        cell.map_or("", |(cell, _)| cell.trim())
    }

    /// The number of columns.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}
