//! Descriptions of table functions, as the catalog shows them.

use arrow::datatypes::Schema;

use crate::{
    Described,
    catalog::{described, in_nanos},
};

/// A table function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedFunction {
    /// Its name in a query.
    pub name: String,
    /// What a row is, or the question that it answers.
    pub sentence: String,
    /// Its exact definition.
    pub definition: String,
    /// Its arguments.
    pub arguments: Vec<DescribedArgument>,
    /// The columns of its result. For functions over intervals: the columns that do not depend on the tables.
    pub columns: Vec<Described>,
    /// The columns if it lists the worst cases one by one; empty if these are the same columns.
    pub columns_of_cases: Vec<Described>,
}

/// An argument of a table function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedArgument {
    /// Its name in a query. For an argument by position: a word for it.
    pub name: String,
    /// What it means.
    pub sentence: String,
}

impl DescribedArgument {
    /// An argument of this name.
    pub fn new(name: impl Into<String>, sentence: impl Into<String>) -> DescribedArgument {
        DescribedArgument { name: name.into(), sentence: sentence.into() }
    }
}

/// The columns of a result. Their descriptions are in the metadata, under `doc`.
pub fn describe_columns(schema: &Schema) -> Vec<Described> {
    let column = |field| {
        let column = described("", field);
        let in_nanos = in_nanos(&column.column).filter(|_| is_beside_ticks(schema, &column.column));
        Described { sentence: in_nanos.unwrap_or(column.sentence), ..column }
    };
    schema.fields().iter().map(|field| column(field.as_ref())).collect()
}

fn is_beside_ticks(schema: &Schema, name: &str) -> bool {
    name.strip_suffix("_ns").is_some_and(|stem| schema.column_with_name(&format!("{stem}_tick")).is_some())
}
