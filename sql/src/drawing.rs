//! Draws rows as a table for people. Control characters in cells are escaped, and long cells are cut, so that one of them
//! does not widen the whole table.
//!
//! ```text
//! +--------+------+
//! | thread | name |    the columns are as wide as the header and the first PART rows need
//! +--------+------+
//! | 1      | main |
//! ```
//!
//! Rows are drawn part by part, so a table of any length needs only the memory of one part. If a later cell is wider
//! than its column, only its own line becomes longer.
//!
//! If the first part is wider than the terminal, each row is drawn as a block of lines: one line for each cell that is
//! neither NULL nor empty.

use arrow::{
    array::RecordBatch,
    datatypes::Schema,
    error::ArrowError,
    util::display::{ArrayFormatter, FormatOptions},
};
use sigmund_model::Printable;
use unicode_width::UnicodeWidthStr;

/// Rows that are drawn at a time.
pub(crate) const PART: usize = 4096;
/// Maximum number of characters of a part. Cells are padded to the longest cell of their column, so one long cell makes
/// all rows wider. If a part would exceed this number, its cells are cut.
const MOST_CHARACTERS: usize = 1 << 24;
/// Cells up to this length are never cut.
const SHORT: usize = 100;
/// Longer cells are always cut.
const LONG: usize = 32_000;

/// A table that has been drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Its lines, without control characters other than line breaks.
    pub text: String,
    /// How many rows it has.
    pub rows: usize,
}

/// A table that is being drawn.
#[derive(Debug)]
pub(crate) struct Drawing {
    names: Vec<String>,
    /// Whether line breaks in cells are kept, as in a plan, which has one step per line. Otherwise they are shown as
    /// `\n`.
    keeps_lines: bool,
    /// The width of the terminal.
    width: Option<usize>,
    columns: Option<Columns>,
    rows: usize,
}

/// The layout, which the first part determines.
#[derive(Debug)]
struct Columns {
    widths: Vec<usize>,
    /// The maximum number of characters of a cell.
    longest: usize,
    are_blocks: bool,
}

impl Drawing {
    /// A table with these columns, and no rows yet.
    pub(crate) fn new(schema: &Schema, is_plan: bool, width: Option<usize>) -> Drawing {
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        Drawing { names, keeps_lines: is_plan, width, columns: None, rows: 0 }
    }

    /// How many rows have been drawn.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The lines of the next rows; the first time, preceded by the header. The batches should have [`PART`] rows,
    /// unless they are the last ones.
    pub(crate) fn next(&mut self, batches: &[RecordBatch]) -> Result<String, ArrowError> {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let cells = rows.saturating_mul(self.names.len()).max(1);
        let longest = (MOST_CHARACTERS / cells).clamp(SHORT, LONG);
        let longest = self.columns.as_ref().map_or(longest, |columns| columns.longest);
        let mut texts = Vec::with_capacity(cells);
        for batch in batches {
            add_cells(batch, (longest, self.keeps_lines), &mut texts)?;
        }
        let first_row = self.rows + 1;
        self.rows += rows;
        let mut text = String::new();
        let names: Vec<String> = self.names.iter().map(|name| shown(name, longest, false)).collect();
        let is_first = self.columns.is_none();
        let width = self.width;
        let columns = self.columns.get_or_insert_with(|| Columns::new(&names, &texts, longest, width));
        if columns.are_blocks {
            for (number, row) in (first_row..).zip(texts.chunks(self.names.len().max(1))) {
                columns.add_block(number, &names, row, &mut text);
            }
            return Ok(text);
        }
        if is_first {
            columns.add_rule(&mut text);
            columns.add_row(&names, &mut text);
            columns.add_rule(&mut text);
        }
        for row in texts.chunks(self.names.len().max(1)) {
            columns.add_row(row, &mut text);
        }
        Ok(text)
    }

    /// The last line. If there were no rows, the header comes before it.
    pub(crate) fn end(mut self) -> Result<String, ArrowError> {
        let mut text = if self.columns.is_none() { self.next(&[])? } else { String::new() };
        let tables = self.columns.iter().filter(|columns| !columns.are_blocks);
        tables.for_each(|columns| columns.add_rule(&mut text));
        Ok(text)
    }
}

impl Columns {
    fn new(names: &[String], texts: &[String], longest: usize, width: Option<usize>) -> Columns {
        let widths = widths(names, texts);
        let line = widths.iter().map(|width| width + 3).sum::<usize>() + 1;
        // Without rows, only the header shows the columns, so it is always drawn.
        let are_blocks = !texts.is_empty() && width.is_some_and(|width| line > width);
        Columns { widths, longest, are_blocks }
    }

    fn add_block(&self, number: usize, names: &[String], cells: &[String], text: &mut String) {
        let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
        text.push_str(&format!("row {number}\n"));
        for (name, cell) in names.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            let padding = " ".repeat(width - name.width());
            text.push_str(&format!("  {name}{padding}  {cell}\n"));
        }
    }

    fn add_rule(&self, text: &mut String) {
        for width in &self.widths {
            text.push('+');
            text.extend(std::iter::repeat_n('-', width + 2));
        }
        text.push_str("+\n");
    }

    fn add_row(&self, cells: &[String], text: &mut String) {
        let lines = |cell: &String| if self.widths.is_empty() { 0 } else { cell.lines().count() };
        let height = cells.iter().map(lines).max().unwrap_or(0).max(1);
        for line in 0..height {
            for (cell, width) in cells.iter().zip(&self.widths) {
                let cell = if height == 1 { cell } else { cell.lines().nth(line).unwrap_or_default() };
                text.push_str("| ");
                text.push_str(cell);
                text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()) + 1));
            }
            text.push_str("|\n");
        }
    }
}

/// The widths that the columns need for these texts, which are given row by row.
fn widths(names: &[String], texts: &[String]) -> Vec<usize> {
    let mut widths: Vec<usize> = names.iter().map(|name| name.width()).collect();
    for row in texts.chunks(names.len().max(1)) {
        for (cell, width) in row.iter().zip(&mut widths) {
            *width = cell.lines().map(UnicodeWidthStr::width).fold(*width, usize::max);
        }
    }
    widths
}

/// Adds the cells of all rows, row by row.
fn add_cells(
    batch: &RecordBatch,
    (longest, keeps_lines): (usize, bool),
    texts: &mut Vec<String>,
) -> Result<(), ArrowError> {
    let options = FormatOptions::default();
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
    let columns: Vec<ArrayFormatter<'_>> = columns.collect::<Result<_, _>>()?;
    for row in 0..batch.num_rows() {
        for column in &columns {
            texts.push(shown(&column.value(row).try_to_string()?, longest, keeps_lines));
        }
    }
    Ok(())
}

fn shown(text: &str, longest: usize, keeps_lines: bool) -> String {
    if keeps_lines {
        return text.lines().map(|line| shown(line, longest, false)).collect::<Vec<_>>().join("\n");
    }
    let end = |text: &str| text.char_indices().nth(longest).map(|(at, _)| at);
    let cut = end(text);
    // Escapes can make it longer, so it is cut again.
    let mut printable = Printable(&text[..cut.unwrap_or(text.len())]).to_string();
    let cut_again = end(&printable);
    printable.truncate(cut_again.unwrap_or(printable.len()));
    if cut.or(cut_again).is_some() {
        printable.push('…');
    }
    printable
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{ArrayRef, Int64Array, StringArray},
        util::pretty::pretty_format_batches,
    };

    use super::*;

    fn rows(names: &[&str]) -> RecordBatch {
        let numbers = Int64Array::from_iter((0..names.len() as i64).map(|n| (n % 2 == 0).then_some(n)));
        let names = StringArray::from_iter_values(names);
        RecordBatch::try_from_iter([
            ("number", Arc::new(numbers) as ArrayRef),
            ("name", Arc::new(names) as ArrayRef),
        ])
        .unwrap()
    }

    fn drawn(parts: &[RecordBatch]) -> String {
        let mut drawing = Drawing::new(&parts[0].schema(), false, None);
        let text = parts.iter().map(|part| drawing.next(std::slice::from_ref(part)).unwrap());
        let text: String = text.collect();
        text + &drawing.end().unwrap()
    }

    #[test]
    fn a_table_of_one_part_is_that_of_arrow() {
        for names in [&["a", "bcdefghi", "", "日本", "é"][..], &[]] {
            let expected = pretty_format_batches(&[rows(names)]).unwrap().to_string();
            assert_eq!(drawn(&[rows(names)]).trim_end(), expected);
        }
    }

    #[test]
    fn a_table_that_is_wider_than_the_terminal_is_a_block_for_each_row() {
        let part = rows(&["ab", "abcde"]);
        let drawn = |width| {
            let mut drawing = Drawing::new(&part.schema(), false, Some(width));
            let text = [(); 2].map(|()| drawing.next(std::slice::from_ref(&part)).unwrap()).concat();
            text + &drawing.end().unwrap()
        };
        assert!(drawn(18).starts_with("+--------+-------+\n"));
        let block = "  number  0\n  name    ab\n";
        assert_eq!(
            drawn(17),
            format!("row 1\n{block}row 2\n  name    abcde\nrow 3\n{block}row 4\n  name    abcde\n")
        );
        let empty = Drawing::new(&part.schema(), false, Some(5)).end().unwrap();
        assert!(empty.starts_with("+--------+------+\n"), "{empty}");
    }

    #[test]
    fn a_later_part_has_the_widths_of_the_first_and_a_wide_cell_only_its_own_line() {
        let text = drawn(&[rows(&["ab", "abcde"]), rows(&["x", "longer than that", "y"])]);
        let expected = "\
+--------+-------+
| number | name  |
+--------+-------+
| 0      | ab    |
|        | abcde |
| 0      | x     |
|        | longer than that |
| 2      | y     |
+--------+-------+
";
        assert_eq!(text, expected);
    }
}
