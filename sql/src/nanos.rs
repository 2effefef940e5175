//! Expressions of views that convert ticks to nanoseconds. They are computed only if a query selects them.
//!
//! An interval has to end, in nanoseconds, exactly where the next one begins. So if a length begins at an instant of
//! its row, it is converted as the difference of the converted end and the converted beginning. Lengths that are sums
//! of others (`active_tick`) have no beginning, and are converted on their own.

use arrow::datatypes::DataType;
use datafusion::{
    common::ScalarValue,
    functions::core::expr_fn::coalesce,
    logical_expr::{Expr, cast, ident, lit},
};

use crate::Info;

/// Instants count from the first event; all other ticks are lengths.
const INSTANTS: &[&str] = &["ts_tick", "from_tick", "to_tick", "before_tick", "after_tick", "parent_tick"];

/// `X_ns` for the column `X_tick`; `None` for a column that holds no ticks.
pub(crate) fn beside(column: &str, info: &Info) -> Option<Expr> {
    let stem = column.strip_suffix("_tick")?;
    let nanos = match begin(column) {
        Some(begin) => length_from(begin, ident(column), info),
        None if INSTANTS.contains(&column) => instant(ident(column), info),
        None => length(ident(column), info),
    };
    Some(nanos.alias(format!("{stem}_ns")))
}

/// The instant at which a length of a table begins.
fn begin(column: &str) -> Option<Expr> {
    match column {
        "dur_tick" | "latency_tick" | "wait_tick" => Some(ident("ts_tick")),
        "hold_tick" => Some(ident("ts_tick") + coalesce(vec![ident("wait_tick"), lit(0_i64)])),
        _ => None,
    }
}

/// Nanoseconds since the first event.
pub(crate) fn instant(ticks: Expr, info: &Info) -> Expr {
    let first = info.first_tick().map_or(0, |t| t.0 as i64);
    length(ticks - lit(first), info)
}

/// A length that begins at a given instant; both are in ticks.
pub(crate) fn length_from(begin: Expr, ticks: Expr, info: &Info) -> Expr {
    match info.tick_hz() {
        None => unknown(),
        Some(_) => instant(begin.clone() + ticks, info) - instant(begin, info),
    }
}

/// A length on its own, rounded towards zero as in `Hertz::to_nanos`.
pub(crate) fn length(ticks: Expr, info: &Info) -> Expr {
    match info.tick_hz() {
        None => unknown(),
        Some(hz) => {
            let nanos = cast(ticks, DataType::Float64) * lit(1e9) / lit(hz.per_second());
            cast(nanos, DataType::Int64)
        }
    }
}

fn unknown() -> Expr {
    lit(ScalarValue::Int64(None))
}
