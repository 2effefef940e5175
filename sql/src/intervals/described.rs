//! The catalog's descriptions of the functions over intervals.

use arrow::datatypes::{DataType, Field, Schema};

use super::operation::{OPERATIONS, Operation};
use crate::{DescribedArgument, DescribedFunction, describe_columns};

/// What is true of all of them.
const RULES: &str = "\
    A table needs `ts_tick`, and `dur_tick` if its rows are not instants; or `ts` and `dur`, in which the times of the result \
    are then. A row without a length lasts until the end of the trace. An instant meets the interval that it is in: its start, \
    but not its end.";

/// Descriptions of all functions over intervals.
pub fn interval_functions() -> Vec<DescribedFunction> {
    OPERATIONS.into_iter().map(described).collect()
}

fn described(operation: Operation) -> DescribedFunction {
    let tables: &[&str] = if operation.tables() == 2 { &["a", "b"] } else { &["a"] };
    let table = |name: &&str| {
        DescribedArgument::new(*name, "A table or view by its name, or a query in parentheses.")
    };
    let key = DescribedArgument::new(
        "key...",
        "Columns of the tables: only rows that are equal in all of them meet. Without a key all rows do.",
    );
    let kept = match operation.keeps_columns() {
        true => {
            " Besides, it has the columns of the tables; a name that two columns have is preceded by that of its table."
        }
        false => "",
    };
    DescribedFunction {
        name: operation.name().to_string(),
        sentence: operation.sentence().to_string(),
        definition: format!("{RULES} The result has its times, and the columns of the key.{kept}"),
        arguments: tables.iter().map(table).chain([key]).collect(),
        columns: describe_columns(&columns(operation)),
        columns_of_cases: Vec::new(),
    }
}

/// The columns that do not depend on the tables, if the times are in ticks.
fn columns(operation: Operation) -> Schema {
    let field = |name: &str, doc: &str| {
        Field::new(name, DataType::Int64, false).with_metadata([("doc".to_string(), doc.to_string())].into())
    };
    let mut fields = vec![
        field("ts_tick", "Start of the interval."),
        field("ts_ns", ""),
        field("dur_tick", "Its length."),
        field("dur_ns", ""),
    ];
    match operation.added() {
        Some("self") => {
            let self_time = "The part of its length that no row that begins later covers; of rows that begin together, the shorter counts as later.";
            fields.extend([field("self_tick", self_time), field("self_ns", "")]);
        }
        Some(count) => fields.push(field(count, "How many rows of the table it is made of.")),
        None => {}
    }
    Schema::new(fields)
}
