//! Formats results: tables, figures, lengths. [`crate::terminal`] prints them.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, ErrorKind, Write},
    ops::Range,
    path::Path,
};

use anyhow::{Error, Result};
use comfy_table::{CellAlignment, presets};
use rayon::prelude::*;
use serde::{Serializer as _, ser::SerializeSeq as _};
use serde_json::{Map, Value};
use sigmund_model::{Hertz, Printable, Ticks};

use crate::{cli::FormatArg, terminal};

pub(crate) use crate::terminal::{Progress, notice, report_error};

/// The text of an error and its causes, without causes that are already part of the text.
pub(crate) fn reasons(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

/// A path, quoted for a shell, that is not taken for a flag.
pub(crate) fn quoted_path(path: &Path) -> String {
    let path = path.display().to_string();
    let is_flag = path.starts_with('-');
    quoted(&if is_flag { format!("./{path}") } else { path })
}

/// A word, quoted for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ':' | ',' | '@' | '+');
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Whether an error is a broken pipe: the reader of the output has exited.
pub(crate) fn is_broken_pipe(error: &Error) -> bool {
    let is_one = |error: &io::Error| error.kind() == ErrorKind::BrokenPipe;
    #[cfg(feature = "sql")]
    if error.chain().any(is_broken_pipe_of_an_answer) {
        return true;
    }
    let of_json = |error: &serde_json::Error| error.io_error_kind() == Some(ErrorKind::BrokenPipe);
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(is_one)
            || cause.downcast_ref::<serde_json::Error>().is_some_and(of_json)
    })
}

#[cfg(feature = "sql")]
fn is_broken_pipe_of_an_answer(cause: &(dyn std::error::Error + 'static)) -> bool {
    let is_answer =
        |e: &sigmund_query::Error| e.kind() == sigmund_query::ErrorKind::Output(ErrorKind::BrokenPipe);
    let is_export =
        |e: &sigmund_export::Error| e.kind() == sigmund_export::ErrorKind::Output(ErrorKind::BrokenPipe);
    cause.downcast_ref::<sigmund_query::Error>().is_some_and(is_answer)
        || cause.downcast_ref::<sigmund_export::Error>().is_some_and(is_export)
}

/// One cell of a table.
#[derive(Clone, Debug)]
pub(crate) enum Cell<'a> {
    Count(i64),
    Fraction(f64),
    Text(Cow<'a, str>),
    /// A duration with its unit, for people.
    #[cfg(feature = "sql")]
    Length(String),
    Nothing,
}

impl From<u32> for Cell<'_> {
    fn from(n: u32) -> Self {
        Cell::Count(n.into())
    }
}

impl From<u64> for Cell<'_> {
    fn from(n: u64) -> Self {
        Cell::Count(n as i64)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Cell::Nothing, Into::into)
    }
}

impl From<&str> for Cell<'_> {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_string().into())
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Cell::Text(text.into())
    }
}

impl Cell<'_> {
    fn write(&self, text: &mut String) {
        match self {
            Cell::Count(n) => text.push_str(itoa::Buffer::new().format(*n)),
            Cell::Fraction(x) => _ = write!(text, "{x}"),
            Cell::Text(own) => text.push_str(own),
            #[cfg(feature = "sql")]
            Cell::Length(own) => text.push_str(own),
            Cell::Nothing => {}
        }
    }

    /// The same cell with an owned text.
    pub(crate) fn into_owned(self) -> Cell<'static> {
        match self {
            Cell::Count(n) => Cell::Count(n),
            Cell::Fraction(x) => Cell::Fraction(x),
            Cell::Text(own) => Cell::Text(own.into_owned().into()),
            #[cfg(feature = "sql")]
            Cell::Length(own) => Cell::Length(own),
            Cell::Nothing => Cell::Nothing,
        }
    }

    /// Whether it may contain any characters. Figures never contain characters that separate cells.
    fn is_text(&self) -> bool {
        !matches!(self, Cell::Count(_) | Cell::Fraction(_) | Cell::Nothing)
    }

    /// The text of the cell; fractions have three decimal places.
    pub(crate) fn for_people(&self) -> String {
        let mut text = String::new();
        match self {
            Cell::Fraction(x) => _ = write!(text, "{x:.3}"),
            cell => cell.write(&mut text),
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Cell::Count(n) => (*n).into(),
            Cell::Fraction(x) => (*x).into(),
            Cell::Text(text) => text.as_ref().into(),
            #[cfg(feature = "sql")]
            Cell::Length(text) => text.as_str().into(),
            Cell::Nothing => Value::Null,
        }
    }
}

/// A small table with a heading. It has the same columns in every format.
pub(crate) struct Table {
    pub(crate) heading: &'static str,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell<'static>>>,
}

impl Table {
    /// One row for each element of `all`.
    pub(crate) fn new<T>(
        heading: &'static str,
        columns: &[&'static str],
        all: impl IntoIterator<Item = T>,
        row: impl Fn(T) -> Vec<Cell<'static>>,
    ) -> Table {
        Table { heading, columns: columns.to_vec(), rows: all.into_iter().map(row).collect() }
    }

    /// Each row as a JSON object.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let object = |row: &Vec<Cell<'_>>| {
            let cells = self.columns.iter().zip(row).map(|(name, cell)| ((*name).to_string(), cell.json()));
            Value::Object(cells.collect())
        };
        self.rows.iter().map(object).collect()
    }

    pub(crate) fn print(&self, format: FormatArg) -> Result<()> {
        print_table(&self.columns, &self.rows, format)
    }
}

/// Prints one JSON object.
pub(crate) fn print_json(object: &Value) -> Result<()> {
    let out = &mut terminal::data();
    serde_json::to_writer_pretty(&mut *out, object)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// Prints all rows for people, however many there are.
#[cfg(feature = "sql")]
pub(crate) fn print_all_rows(columns: &[&str], rows: &[Vec<Cell<'_>>]) -> Result<()> {
    Ok(terminal::block(&human(columns, rows.iter()).to_string())?)
}

/// Prints a small table in any format.
pub(crate) fn print_table(columns: &[&str], rows: &[Vec<Cell<'_>>], format: FormatArg) -> Result<()> {
    let rows_in =
        |some: Range<usize>, each: &mut EachRow<'_>| rows[some].iter().try_for_each(|row| each(row));
    print_rows(columns, rows.len(), rows_in, format)
}

/// The maximum number of rows that are shown to people.
const SHOWN: usize = 1000;

/// The number of rows that a thread formats at a time.
const PART: usize = 4096;

/// What is called with the cells of one row after the other.
pub(crate) type EachRow<'e> = dyn FnMut(&[Cell<'_>]) -> Result<()> + 'e;

/// Prints the rows of a table, of which there may be millions. `rows` passes the rows with the given numbers on, and is
/// called on all CPUs. People are shown only the first rows.
pub(crate) fn print_rows(
    columns: &[&str],
    len: usize,
    rows: impl Fn(Range<usize>, &mut EachRow<'_>) -> Result<()> + Sync,
    format: FormatArg,
) -> Result<()> {
    if format == FormatArg::Human {
        let more = len.saturating_sub(SHOWN);
        let mut shown: Vec<Vec<Cell<'static>>> = Vec::new();
        rows(0..len - more, &mut |row| {
            shown.push(row.iter().cloned().map(Cell::into_owned).collect());
            Ok(())
        })?;
        let text = human(columns, shown.iter()).to_string();
        let width = terminal::width().filter(|_| !terminal::is_for_pager());
        let is_too_wide = width.is_some_and(|width| text.lines().any(|line| line.chars().count() > width));
        match is_too_wide {
            true => terminal::block(&blocks(columns, shown.iter(), len))?,
            false => terminal::block(&text)?,
        }
        if more > 0 {
            let more = counted(more as u64, "more row");
            notice(&format!("{more}; `--format tsv` prints all"));
        }
        return Ok(());
    }
    let out = &mut terminal::data();
    let object = |row: &[Cell<'_>]| -> Map<String, Value> {
        columns.iter().zip(row).map(|(name, cell)| ((*name).to_string(), cell.json())).collect()
    };
    let head = |separator| {
        let names: Vec<Cell<'_>> = columns.iter().map(|name| (*name).into()).collect();
        let mut line = String::new();
        separated(&mut line, &names, separator);
        line
    };
    let lines = |out: &mut dyn Write, separator: char| {
        in_parts(out, len, &rows, |text, row| {
            separated(text, row, separator);
            Ok(())
        })
    };
    match format {
        FormatArg::Tsv => {
            out.write_all(head('\t').as_bytes())?;
            lines(out, '\t')?;
        }
        FormatArg::Csv | FormatArg::Human => {
            out.write_all(head(',').as_bytes())?;
            lines(out, ',')?;
        }
        FormatArg::Json => {
            let mut json = serde_json::Serializer::pretty(&mut *out);
            let mut array = json.serialize_seq(None)?;
            rows(0..len, &mut |row| Ok(array.serialize_element(&object(row))?))?;
            array.end()?;
            writeln!(out)?;
        }
        FormatArg::Ndjson => in_parts(out, len, &rows, |text, row| {
            text.push_str(&serde_json::to_string(&object(row))?);
            text.push('\n');
            Ok(())
        })?,
    }
    Ok(out.flush()?)
}

/// Formats the rows in parallel, and writes them in order.
fn in_parts(
    out: &mut dyn Write,
    len: usize,
    rows: &(impl Fn(Range<usize>, &mut EachRow<'_>) -> Result<()> + Sync),
    each: impl Fn(&mut String, &[Cell<'_>]) -> Result<()> + Sync,
) -> Result<()> {
    let format = |part: Range<usize>| {
        let mut text = String::with_capacity(part.len() * 100);
        rows(part, &mut |row| each(&mut text, row)).map(|()| text)
    };
    let at_once = PART * rayon::current_num_threads() * 4;
    for first in (0..len).step_by(at_once) {
        let end = len.min(first + at_once);
        let parts = (first..end).into_par_iter().step_by(PART).map(|from| format(from..end.min(from + PART)));
        let texts: Vec<String> = parts.collect::<Result<_>>()?;
        texts.iter().try_for_each(|text| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}

/// Cells are escaped before the table is drawn, so that a line break in a name cannot begin a new row.
fn human<'a>(columns: &[&str], rows: impl Iterator<Item: AsRef<[Cell<'a>]>>) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::NOTHING).set_header(columns.iter().map(|name| Printable(name).to_string()));
    for row in rows {
        table.add_row(row.as_ref().iter().map(|cell| {
            let align =
                if matches!(cell, Cell::Text(_)) { CellAlignment::Left } else { CellAlignment::Right };
            comfy_table::Cell::new(Printable(cell.for_people()).to_string()).set_alignment(align)
        }));
    }
    table
}

/// A block for each row, with a line for each cell that has a value.
fn blocks<'a>(columns: &[&str], rows: impl Iterator<Item: AsRef<[Cell<'a>]>>, len: usize) -> String {
    let width = columns.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (number, row) in (1..).zip(rows) {
        _ = writeln!(text, "row {number} of {len}");
        for (name, cell) in columns.iter().zip(row.as_ref()) {
            if !matches!(cell, Cell::Nothing) {
                let (name, cell) = (Printable(name).to_string(), Printable(cell.for_people()).to_string());
                _ = writeln!(text, "  {name:width$}  {cell}");
            }
        }
    }
    text
}

/// Adds a line. A text is quoted if it contains the separator, quotes or newlines (RFC 4180). An empty text is quoted,
/// too, because an empty cell without quotes means that there is no value.
fn separated(line: &mut String, cells: &[Cell<'_>], separator: char) {
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            line.push(separator);
        }
        let from = line.len();
        cell.write(line);
        if cell.is_text() && needs_quotes(&line[from..], separator) {
            let quoted = line[from..].replace('"', "\"\"");
            line.truncate(from);
            line.extend(["\"", &quoted, "\""]);
        }
    }
    line.push('\n');
}

/// Separators are ASCII, so bytes can be compared.
fn needs_quotes(text: &str, separator: char) -> bool {
    text.is_empty()
        || text.bytes().any(|byte| matches!(byte, b'"' | b'\n' | b'\r') || char::from(byte) == separator)
}

/// A length for people: `1.234 ms`, or cycles if the tick rate is unknown.
pub(crate) fn length(length: Ticks, tick_hz: Option<Hertz>) -> String {
    let Some(hz) = tick_hz else { return format!("{} cycles", length.0) };
    let ns = length.0 as f64 * 1e9 / hz.per_second();
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e6 => format!("{:.3} us", ns / 1e3),
        _ if ns < 1e9 => format!("{:.3} ms", ns / 1e6),
        _ => format!("{:.3} s", ns / 1e9),
    }
}

/// `1 LWP`, `2 LWPs`.
pub(crate) fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_block_of_the_cells_that_have_a_value() {
        let rows = [
            vec![Cell::from("a\nb"), Cell::Nothing, Cell::Length("1.5 ms".into())],
            vec![Cell::Nothing, Cell::Fraction(0.25), Cell::Nothing],
        ];
        assert_eq!(
            blocks(&["name", "percent", "total"], rows.iter(), 2),
            "row 1 of 2\n  name     a\\nb\n  total    1.5 ms\nrow 2 of 2\n  percent  0.250\n"
        );
    }
}
