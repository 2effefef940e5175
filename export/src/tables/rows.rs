//! Writes tables as text: a line per row, or one array of objects.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    sync::Arc,
};

use arrow::{
    array::RecordBatch,
    datatypes::{Schema, SchemaRef},
    error::ArrowError,
    json::{ArrayWriter, LineDelimitedWriter, WriterBuilder},
    util::display::FormatOptions,
};

use super::values::Values;

/// Lines are written when they have this number of bytes.
const WRITTEN: usize = 1 << 16;

/// The format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// Comma separated, with a header.
    Csv,
    /// Tab separated, with a header.
    Tsv,
    /// An object per line.
    Ndjson,
    /// One array of objects.
    Json,
}

/// Writes rows, batch by batch.
pub struct RowWriter<W: Write> {
    lines: Lines,
    /// The names of an object's members, if some columns have the same name.
    names: Option<SchemaRef>,
    out: W,
}

enum Lines {
    Separated { separator: char, line: String },
    Objects(LineDelimitedWriter<Vec<u8>>),
    Array(ArrayWriter<Vec<u8>>),
}

impl<W: Write> RowWriter<W> {
    /// Writes the header, if the format has one.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn new(format: RowFormat, schema: &Schema, out: W) -> io::Result<RowWriter<W>> {
        let separated = |separator| Lines::Separated { separator, line: String::new() };
        let lines = match format {
            RowFormat::Csv => separated(','),
            RowFormat::Tsv => separated('\t'),
            RowFormat::Ndjson => Lines::Objects(objects().build(Vec::new())),
            RowFormat::Json => Lines::Array(objects().build(Vec::new())),
        };
        let names = match lines {
            Lines::Separated { .. } => None,
            Lines::Objects(_) | Lines::Array(_) => with_different_names(schema),
        };
        let mut writer = RowWriter { lines, names, out };
        if let Lines::Separated { separator, line } = &mut writer.lines {
            for (index, field) in schema.fields().iter().enumerate() {
                cell(line, index, Some(field.name()), *separator);
            }
            line.push('\n');
            write_line(line, &mut writer.out)?;
        }
        Ok(writer)
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If they cannot be formatted, or `out` cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let renamed;
        let batch = match &self.names {
            Some(names) => {
                renamed = RecordBatch::try_new(Arc::clone(names), batch.columns().to_vec())?;
                &renamed
            }
            None => batch,
        };
        let json = match &mut self.lines {
            Lines::Separated { separator, line } => {
                return write_separated(&mut self.out, batch, *separator, line);
            }
            Lines::Objects(writer) => {
                writer.write(batch)?;
                writer.get_mut()
            }
            Lines::Array(writer) => {
                writer.write(batch)?;
                writer.get_mut()
            }
        };
        self.out.write_all(json)?;
        json.clear();
        Ok(())
    }

    /// Completes the output and returns it.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn finish(mut self) -> Result<W, ArrowError> {
        let rest = match self.lines {
            Lines::Separated { .. } => Vec::new(),
            Lines::Objects(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
            Lines::Array(mut writer) => {
                writer.finish()?;
                let mut rest = writer.into_inner();
                rest.push(b'\n');
                rest
            }
        };
        self.out.write_all(&rest)?;
        Ok(self.out)
    }
}

/// Objects always have all members. NULL is written as `null`, like in the answers to measures.
fn objects() -> WriterBuilder {
    WriterBuilder::new().with_explicit_nulls(true)
}

/// The columns with different names. If several columns have the same name, a number is appended to the later ones:
/// most programs keep only one of an object's members with the same name. `None` if the names already differ.
fn with_different_names(schema: &Schema) -> Option<SchemaRef> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let given: BTreeSet<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    if given.len() == schema.fields().len() {
        return None;
    }
    let mut fields = Vec::new();
    for field in schema.fields() {
        let mut name = field.name().clone();
        let mut number = 2;
        while taken.contains(&name) || (number > 2 && given.contains(name.as_str())) {
            name = format!("{}_{number}", field.name());
            number += 1;
        }
        taken.insert(name.clone());
        fields.push(field.as_ref().clone().with_name(name));
    }
    Some(Arc::new(Schema::new(fields)))
}

fn write_separated(
    out: &mut impl Write,
    batch: &RecordBatch,
    separator: char,
    line: &mut String,
) -> Result<(), ArrowError> {
    let options = FormatOptions::new();
    let columns: Result<Vec<_>, _> =
        batch.columns().iter().map(|column| Values::of(column, &options)).collect();
    let columns = columns?;
    let mut text = String::new();
    for row in 0..batch.num_rows() {
        for (index, column) in columns.iter().enumerate() {
            text.clear();
            column.push(&mut text, row)?;
            // A column of the type Null has no validity bitmap.
            let values = batch.column(index);
            let is_text = !text.is_empty() || (values.is_valid(row) && !values.data_type().is_null());
            cell(line, index, is_text.then_some(&text), separator);
        }
        line.push('\n');
        if line.len() >= WRITTEN {
            write_line(line, out)?;
        }
    }
    Ok(write_line(line, out)?)
}

/// A text that contains the separator, quotes or newlines is quoted (RFC 4180). An empty text is quoted, too, because
/// NULL is written as nothing.
fn cell(line: &mut String, index: usize, text: Option<&str>, separator: char) {
    if index > 0 {
        line.push(separator);
    }
    let Some(text) = text else { return };
    if text.is_empty() || text.contains([separator, '"', '\n', '\r']) {
        line.push('"');
        for (part, after_quote) in text.split('"').zip(std::iter::once(false).chain(std::iter::repeat(true)))
        {
            if after_quote {
                line.push_str("\"\"");
            }
            line.push_str(part);
        }
        line.push('"');
    } else {
        line.push_str(text);
    }
}

fn write_line(line: &mut String, out: &mut impl Write) -> io::Result<()> {
    out.write_all(line.as_bytes())?;
    line.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn a_text_with_a_separator_or_a_quote_is_quoted() {
        let mut line = String::new();
        let texts = [Some("plain"), Some("a,b"), Some("say \"so\""), None, Some(""), Some("two\nlines")];
        for (index, text) in texts.into_iter().enumerate() {
            cell(&mut line, index, text, ',');
        }
        assert_eq!(line, "plain,\"a,b\",\"say \"\"so\"\"\",,\"\",\"two\nlines\"");
    }

    #[test]
    fn columns_with_one_name_are_members_with_different_ones() {
        let names = |given: &[&str]| {
            let fields: Vec<Field> =
                given.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
            let renamed = with_different_names(&Schema::new(fields));
            renamed.map(|schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>())
        };
        assert_eq!(names(&["a", "b"]), None);
        assert_eq!(names(&["a", "b", "a", "a"]).unwrap(), ["a", "b", "a_2", "a_3"]);
        assert_eq!(names(&["a", "a_2", "a"]).unwrap(), ["a", "a_2", "a_3"]);
    }
}
