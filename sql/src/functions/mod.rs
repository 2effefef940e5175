//! Functions of SQL: bits, times, percentiles, histograms, names of errors.
//!
//! The executors of a cluster need these functions, too. Functions that need no super-trace are in [`all`]. Functions
//! that convert times are sent there with the clocks that they use: [`clocks_of`] and [`with_clocks`].

mod arithmetic;
mod bits;
mod bounded;
mod cardinality;
mod checked_sum;
mod clock;
mod conversions;
mod described;
mod errno;
mod percentile;
mod row_id;
mod scalar;
mod times;
mod typed;
mod wall_time;

use std::sync::Arc;

use datafusion::{
    logical_expr::{AggregateUDF, ScalarUDF},
    prelude::SessionContext,
};

use crate::{Error, clocks::Clocks};
use conversions::CONVERSIONS;

pub(crate) use arithmetic::checked;
pub use bits::{f64_bits, u64_bits};
pub(crate) use bounded::MOST_BYTES;
pub use clock::Clock;
pub(crate) use clock::NamedClock;
pub(crate) use conversions::{ByClock, only_clock};
pub use described::{described_function, described_functions};
pub(crate) use row_id::row_id;
pub(crate) use typed::TYPED;
pub use wall_time::Snapshot;

/// The functions of one row that need no super-trace. Plans of a cluster refer to them by name.
pub fn all() -> Vec<ScalarUDF> {
    named().into_iter().chain([typed::typed()]).chain(arithmetic::all()).collect()
}

/// The functions that queries can name.
pub(crate) fn named() -> Vec<ScalarUDF> {
    vec![
        u64_bits(),
        f64_bits(),
        times::duration(),
        times::log2_bucket(),
        times::time_bucket(),
        row_id(),
        errno::errno_name(),
    ]
}

/// The aggregate functions.
pub fn aggregates() -> Vec<AggregateUDF> {
    vec![percentile::percentile(), checked_sum::sum()]
}

/// Clocks, each with the names of its super-trace.
pub type ClocksByName = Vec<(Vec<String>, Clock)>;

/// The clocks that a function may use; `None` if the function does not convert times.
///
/// # Errors
/// When a table `clocks` cannot be read.
pub fn clocks_of(function: &ScalarUDF) -> Option<Result<ClocksByName, Error>> {
    let clocks = function.inner().downcast_ref::<ByClock>()?.clocks();
    Some(clocks.into_iter().map(|clock| Ok((clock.names.clone(), clock.clock()?))).collect())
}

/// The function of this name with these clocks; `None` if no such function converts times.
pub fn with_clocks(name: &str, clocks: ClocksByName) -> Option<ScalarUDF> {
    let conversion = CONVERSIONS.into_iter().find(|conversion| conversion.name() == name)?;
    let clocks = clocks.into_iter().map(|(names, clock)| NamedClock::known(names, clock));
    Some(ByClock::bound(conversion, clocks.collect()))
}

/// Registers the functions of every session, and replaces some of DataFusion. `memory` is the limit of the session in bytes.
pub(crate) fn register_all(context: &SessionContext, memory: Option<usize>) -> datafusion::error::Result<()> {
    named().into_iter().for_each(|function| context.register_udf(function));
    context.register_udf(typed::typed());
    aggregates().into_iter().for_each(|function| context.register_udaf(function));
    cardinality::register(context)?;
    bounded::register(context, memory)
}

/// Registers the functions that convert times in a session.
pub(crate) fn register(context: &SessionContext, clocks: &Arc<Clocks>) {
    for conversion in CONVERSIONS {
        context.register_udf(ByClock::of_session(conversion, clocks));
    }
}
