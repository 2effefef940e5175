//! Expressions of views that convert ticks to nanoseconds. They are computed only if a query selects them.

use arrow::datatypes::DataType;
use datafusion::{
    common::ScalarValue,
    logical_expr::{Expr, cast, ident, lit},
};

use crate::Info;

/// Instants count from the first event; all other ticks are lengths.
const INSTANTS: &[&str] = &["ts_tick", "from_tick", "to_tick", "before_tick", "after_tick"];

/// `X_ns` for the column `X_tick`; `None` for a column that holds no ticks.
pub(crate) fn beside(column: &str, info: &Info) -> Option<Expr> {
    let stem = column.strip_suffix("_tick")?;
    let nanos = if INSTANTS.contains(&column) { instant(column, info) } else { length(column, info) };
    Some(nanos.alias(format!("{stem}_ns")))
}

/// Nanoseconds since the first event.
pub(crate) fn instant(column: &str, info: &Info) -> Expr {
    let first = info.first_tick().map_or(0, |t| t.0 as i64);
    to_nanos(ident(column) - lit(first), info)
}

/// A length in nanoseconds, rounded towards zero as `Hertz::to_nanos` rounds.
pub(crate) fn length(column: &str, info: &Info) -> Expr {
    to_nanos(ident(column), info)
}

/// [`length`] of an expression.
pub(crate) fn of_length(ticks: Expr, info: &Info) -> Expr {
    to_nanos(ticks, info)
}

fn to_nanos(ticks: Expr, info: &Info) -> Expr {
    match info.tick_hz() {
        None => lit(ScalarValue::Int64(None)),
        Some(hz) => {
            let nanos = cast(ticks, DataType::Float64) * lit(1e9) / lit(hz.per_second());
            cast(nanos, DataType::Int64)
        }
    }
}
