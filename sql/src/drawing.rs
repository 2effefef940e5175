//! Draws rows as a table for people. Control characters in cells are escaped, and long cells are cut, so that one of them
//! does not widen the whole table.

use arrow::{
    array::{ArrayRef, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema, SchemaRef},
    error::ArrowError,
    util::{
        display::{ArrayFormatter, FormatOptions},
        pretty::pretty_format_batches,
    },
};
use sigmund_model::Printable;

/// Maximum number of characters of a table. Every cell is padded to the longest of its column, so one long cell widens all
/// rows: beyond this number, cells are cut.
const MOST_CHARACTERS: usize = 1 << 27;
/// Cells up to this length are never cut.
const SHORT: usize = 100;
/// Longer cells are always cut: a character may take two columns, and a line has at most 65 535.
const LONG: usize = 32_000;

/// A table that has been drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Its lines, without control characters other than line breaks.
    pub text: String,
    /// How many rows it has.
    pub rows: usize,
}

/// Draws all rows. Line breaks in cells are shown as `\n`, unless the table is a plan: that has one step a line.
pub(crate) fn draw(schema: &Schema, batches: &[RecordBatch], is_plan: bool) -> Result<Drawn, ArrowError> {
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let cells = rows.saturating_mul(schema.fields().len()).max(1);
    let longest = (MOST_CHARACTERS / cells).clamp(SHORT, LONG);
    let texts = SchemaRef::new(Schema::new(
        schema
            .fields()
            .iter()
            .map(|field| Field::new(shown(field.name(), longest, false), DataType::Utf8, true))
            .collect::<Vec<_>>(),
    ));
    let mut drawn = Vec::with_capacity(batches.len() + 1);
    // Without rows, the names of the columns are drawn nevertheless.
    drawn.push(RecordBatch::new_empty(texts.clone()));
    for batch in batches {
        let columns = batch.columns().iter().map(|column| column_of_texts(column, longest, is_plan));
        drawn.push(RecordBatch::try_new(texts.clone(), columns.collect::<Result<_, _>>()?)?);
    }
    Ok(Drawn { text: pretty_format_batches(&drawn)?.to_string(), rows })
}

fn column_of_texts(column: &ArrayRef, longest: usize, is_plan: bool) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let text = |row| Ok(shown(&formatter.value(row).try_to_string()?, longest, is_plan));
    let texts: StringArray =
        (0..column.len()).map(|row| text(row).map(Some)).collect::<Result<_, ArrowError>>()?;
    Ok(std::sync::Arc::new(texts))
}

fn shown(text: &str, longest: usize, keeps_lines: bool) -> String {
    if keeps_lines {
        return text.lines().map(|line| shown(line, longest, false)).collect::<Vec<_>>().join("\n");
    }
    let end = |text: &str| text.char_indices().nth(longest).map(|(at, _)| at);
    let cut = end(text);
    // Escapes make it longer.
    let mut printable = Printable(&text[..cut.unwrap_or(text.len())]).to_string();
    let cut_again = end(&printable);
    printable.truncate(cut_again.unwrap_or(printable.len()));
    if cut.or(cut_again).is_some() {
        printable.push('…');
    }
    printable
}
