//! Prints the catalog of a session: tables, views and table functions, with their columns and arguments.

use anyhow::Result;
use sigmund_sql::{
    Described, DescribedFunction, RelationKind, SuperTrace,
    functions::{described_function, described_functions},
    intervals::interval_functions,
};

use crate::{
    cli::FormatArg,
    output::{Cell, print_table},
    terminal,
};

/// The kind that is shown for table functions; the other kinds are in [`RelationKind`].
const FUNCTION: &str = "function";

/// The kind that is shown for functions of values.
const OF_VALUES: &str = "function of values";

/// The maximum width of a line of text for people.
const TEXT_WIDTH: usize = 100;

/// Prints all names, each with the description of a row. Tables as they are stored are not shown to people.
pub(super) fn all(trace: &SuperTrace, format: FormatArg) -> Result<()> {
    let is_shown = |kind| kind != RelationKind::Stored || format != FormatArg::Human;
    let relations = trace.relations();
    let relations = relations.iter().filter(|relation| is_shown(relation.kind));
    // A trace may have thousands of events: functions come before them.
    let (events, tables): (Vec<_>, Vec<_>) =
        relations.partition(|relation| relation.kind == RelationKind::Event);
    let row =
        |relation: &sigmund_sql::Relation| cells([&relation.name, relation.kind.name(), &relation.sentence]);
    let function =
        |kind| move |function: &DescribedFunction| cells([&function.name, kind, &function.sentence]);
    let mut rows: Vec<_> = tables.into_iter().map(row).collect();
    rows.extend(functions(trace).iter().map(function(FUNCTION)));
    rows.extend(described_functions().iter().map(function(OF_VALUES)));
    rows.extend(events.into_iter().map(row));
    print_table(&["name", "kind", "what"], &rows, format)
}

/// Prints the columns of a table or view, or the definition, the arguments and the columns of a function.
///
/// # Errors
/// When there is none of this name, with the nearest names.
pub(super) async fn one(trace: &SuperTrace, name: &str, format: FormatArg) -> Result<()> {
    let error = match trace.describe(name).await {
        Ok(columns) => return print_columns(&columns, format),
        Err(error) => error,
    };
    // The name may be written as in a query, or as the flag of a measure.
    let name = name.trim_end_matches("()").replace('-', "_");
    let of_tables = functions(trace).into_iter().find(|function| function.name == name);
    match of_tables.or_else(|| described_function(&trace.session().state(), &name)) {
        Some(function) if format == FormatArg::Human => for_people(&function),
        Some(function) => in_parts(&function, format),
        None => Err(error.into()),
    }
}

/// Whether this is the name of a function, and not of a table.
pub(super) fn is_function(trace: &SuperTrace, name: &str) -> bool {
    let name = name.trim_end_matches("()").replace('-', "_");
    let is_table = trace.relations().iter().any(|relation| relation.name == name);
    let is_of_tables = || functions(trace).iter().any(|function| function.name == name);
    !is_table && (is_of_tables() || described_function(&trace.session().state(), &name).is_some())
}

fn functions(trace: &SuperTrace) -> Vec<DescribedFunction> {
    let mut functions = sigmund_query::measure_functions(trace);
    functions.extend(interval_functions());
    functions
}

fn print_columns(columns: &[Described], format: FormatArg) -> Result<()> {
    let rows: Vec<_> = columns.iter().map(|column| column_cells(column).to_vec()).collect();
    print_table(&["column", "type", "unit", "what"], &rows, format)
}

fn for_people(function: &DescribedFunction) -> Result<()> {
    let arguments: Vec<&str> = function.arguments.iter().map(|argument| argument.name.as_str()).collect();
    let head = format!("{}({})", function.name, arguments.join(", "));
    let mut lines = vec![head, wrapped(&function.sentence)];
    if !function.definition.is_empty() {
        lines.extend([String::new(), wrapped(&function.definition)]);
    }
    terminal::block(&lines.join("\n"))?;
    let described = function.arguments.iter().filter(|argument| !argument.sentence.is_empty());
    let rows: Vec<_> = described.map(|argument| cells([&argument.name, &argument.sentence])).collect();
    if !rows.is_empty() {
        terminal::line("")?;
        print_table(&["argument", "what"], &rows, FormatArg::Human)?;
    }
    if !function.columns.is_empty() {
        terminal::line("")?;
        print_columns(&function.columns, FormatArg::Human)?;
    }
    if !function.columns_of_cases.is_empty() {
        terminal::block("\nWith worst => N a row is one case:\n\n")?;
        print_columns(&function.columns_of_cases, FormatArg::Human)?;
    }
    Ok(())
}

/// Prints everything about a function as one table.
fn in_parts(function: &DescribedFunction, format: FormatArg) -> Result<()> {
    let mut rows = vec![
        cells(["function", &function.name, "", "", &function.sentence]),
        cells(["definition", "", "", "", &function.definition]),
    ];
    let arguments = function.arguments.iter();
    rows.extend(arguments.map(|argument| cells(["argument", &argument.name, "", "", &argument.sentence])));
    for (part, columns) in [("column", &function.columns), ("column of a case", &function.columns_of_cases)] {
        let row = |column| [cells([part]), column_cells(column).to_vec()].concat();
        rows.extend(columns.iter().map(row));
    }
    print_table(&["part", "name", "type", "unit", "what"], &rows, format)
}

fn column_cells(column: &Described) -> Vec<Cell<'static>> {
    cells([&column.column, &column.ty, column.unit, &column.sentence])
}

/// Makes cells of texts. An empty text becomes a cell without a value.
fn cells<const N: usize>(texts: [&str; N]) -> Vec<Cell<'static>> {
    texts.into_iter().map(|text| Some(text).filter(|text| !text.is_empty()).into()).collect()
}

/// Wraps a text into lines. Continuation lines of a list item are indented.
fn wrapped(text: &str) -> String {
    let paragraphs: Vec<String> = text.lines().map(wrapped_paragraph).collect();
    paragraphs.join("\n")
}

fn wrapped_paragraph(text: &str) -> String {
    let indent = if text.starts_with("- ") { "  " } else { "" };
    let (mut lines, mut width) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > TEXT_WIDTH {
            lines.push('\n');
            lines.push_str(indent);
            width = indent.len();
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fill_lines_and_none_is_cut() {
        let text = format!("{} {} c", "a".repeat(98), "b".repeat(120));
        assert_eq!(wrapped(&text), format!("{}\n{}\nc", "a".repeat(98), "b".repeat(120)));
        assert_eq!(wrapped("a  b\n\n c"), "a b\n\nc");
        let point = format!("- {} {}", "a".repeat(98), "b");
        assert_eq!(wrapped(&point), format!("- {}\n  b", "a".repeat(98)));
    }
}
