//! Functions of SQL: bits, times, percentiles.
//!
//! An executor of a cluster must know them too: those that need no super-trace are in [`all`].

mod bits;
mod clock;
mod percentile;
mod scalar;
mod times;
mod wall_time;

use std::sync::Arc;

use datafusion::{
    logical_expr::{AggregateUDF, ScalarUDF},
    prelude::SessionContext,
};

use crate::{Info, files::Files};

pub use bits::{f64_bits, u64_bits};
pub use clock::Clock;
pub use wall_time::Snapshot;

/// The functions of one row that need no super-trace.
pub fn all() -> Vec<ScalarUDF> {
    vec![u64_bits(), f64_bits(), times::duration(), times::log2_bucket()]
}

/// The functions of many rows.
pub fn aggregates() -> Vec<AggregateUDF> {
    vec![percentile::percentile()]
}

/// The session has the functions that convert times of this super-trace, from here on.
pub(crate) fn register(context: &SessionContext, files: &Arc<Files>, info: &Info) {
    let hz = info.tick_hz();
    for function in [times::to_ns(hz), times::to_ticks(hz), wall_time::wall_time(files, info)] {
        context.register_udf(function);
    }
}
