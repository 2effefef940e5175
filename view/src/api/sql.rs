//! SQL queries of the page. They are read-only, and only the first rows are returned.

use serde_json::{Value, json};

use super::{
    Query, Refusal,
    cells::{cell, each},
};
use crate::View;

const MOST: usize = 10_000;

pub(super) async fn sql(view: &View, query: &Query) -> Result<Value, Refusal> {
    let text = query.body.get("query").and_then(Value::as_str).unwrap_or_default();
    let columns: Vec<Value> = view
        .trace
        .sql(text)
        .await?
        .schema()
        .fields()
        .iter()
        .map(|field| json!({ "name": field.name(), "type": field.data_type().to_string() }))
        .collect();
    let mut rows = Vec::new();
    each(view, text, MOST, |batch| {
        for row in 0..batch.num_rows() {
            rows.push(batch.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>());
        }
    })
    .await?;
    let more = rows.len() > MOST;
    rows.truncate(MOST);
    Ok(json!({ "columns": columns, "rows": rows, "more": more, "first_tick": view.extent.0.to_string() }))
}

/// The words for completion.
pub(super) async fn names(view: &View) -> Result<Value, Refusal> {
    let mut tables = Vec::new();
    for relation in view.trace.relations() {
        // There may be thousands of event views: their columns are left out.
        let columns = match relation.kind {
            sigmund_sql::RelationKind::Event => Vec::new(),
            _ => view.trace.describe(&relation.name).await?,
        };
        let columns = columns
            .iter()
            .map(|column| json!({ "name": column.column, "type": column.ty, "about": column.sentence }));
        tables.push(json!({
            "name": relation.name,
            "about": relation.sentence,
            "columns": columns.collect::<Vec<_>>(),
        }));
    }
    let functions = sigmund_measures::ALL.iter().map(|measure| measure.name.replace('-', "_"));
    Ok(json!({ "tables": tables, "functions": functions.collect::<Vec<_>>() }))
}
