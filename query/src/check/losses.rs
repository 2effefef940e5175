//! What is missing: the rows of `losses`, by kind and severity. A serious one breaks the trace.

use arrow::{
    array::{Array, AsArray},
    datatypes::Int64Type,
};
use sigmund_model::{Severity, tables::LOSSES};
use sigmund_sql::SuperTrace;

use super::{Figure, Item, Verdict};
use crate::Error;

const BY_KIND: &str = "
    SELECT CAST(severity AS VARCHAR) AS severity, CAST(kind AS VARCHAR) AS kind,
           count(*) AS losses, sum(count) AS events, min(detail) AS example
    FROM raw_losses
    GROUP BY severity, kind
    ORDER BY severity, kind";

/// One figure per severity and kind.
pub(crate) async fn check(trace: &SuperTrace) -> Result<Item, Error> {
    let rows =
        trace.sql(BY_KIND).await?.into_frame().collect().await.map_err(Error::on(trace, LOSSES.name))?;
    let (mut figures, mut details, mut serious) = (Vec::new(), Vec::new(), false);
    for batch in &rows {
        let (severity, kind) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        let losses = batch.column(2).as_primitive::<Int64Type>();
        let events = batch.column(3).as_primitive::<Int64Type>();
        let example = batch.column(4).as_string::<i32>();
        for row in 0..batch.num_rows() {
            let what = format!("{} {}", severity.value(row), kind.value(row));
            figures.push(Figure::new(what.clone(), losses.value(row) as f64));
            if events.is_valid(row) {
                figures.push(Figure::new(format!("{what} events"), events.value(row) as f64));
            }
            serious |= severity.value(row) == Severity::Serious.name();
            details.push(format!("{what}: {}", example.value(row)));
        }
    }
    Ok(Item {
        name: "losses",
        promise: "Nothing is missing that makes the answers doubtful.",
        verdict: if serious { Verdict::Broken } else { Verdict::Ok },
        figures,
        detail: details.join("; "),
    })
}
