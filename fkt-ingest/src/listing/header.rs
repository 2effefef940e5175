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

    /// The cells of a line.
    ///
    /// # Errors
    /// If it has more than the header: these come from a stray tab. Trailing empty cells may be missing.
    pub(super) fn cells<'l>(&self, line: &'l str) -> Result<Cells<'l>, BadLine> {
        let mut cells = Cells::default();
        let mut places = self.places.iter();
        for (index, cell) in line.split('\t').enumerate() {
            match places.next() {
                Some(Some(column)) => {
                    let first = &mut cells.0[*column as usize];
                    *first = first.or(Some(cell.trim()));
                }
                Some(None) => {}
                None => {
                    let found = index + line.split('\t').skip(index).count();
                    let expected = format!("{} columns, as in the header", self.places.len());
                    return Err(BadLine::new(&expected, &found.to_string()));
                }
            }
        }
        Ok(cells)
    }
}

/// The cells of one line, without the blanks around them.
#[derive(Debug, Default)]
pub(super) struct Cells<'l>([Option<&'l str>; Column::ALL.len()]);

impl<'l> Cells<'l> {
    /// The cell of a column; empty if the line has none.
    pub(super) fn of(&self, column: Column) -> &'l str {
        self.0[column as usize].unwrap_or_default()
    }
}
