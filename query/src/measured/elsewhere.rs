//! Measures that are computed in other processes.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use sigmund_sql::SuperTrace;

use super::{Asked, Measured};
use crate::Error;

/// Computes measures in other processes, for example in a cluster.
#[async_trait]
pub trait Elsewhere: fmt::Debug + Send + Sync {
    /// The answers for these super-traces, in the same order. A trace without an answer has an error.
    ///
    /// # Errors
    /// When the other processes cannot be asked.
    async fn measure(
        &self,
        traces: &[&SuperTrace],
        asked: &Asked,
    ) -> Result<Vec<Result<Measured, Error>>, Error>;
}

/// Where a session's measures are computed, as an extension of its configuration.
struct Where(Arc<dyn Elsewhere>);

/// From now on, the measures of this trace's session are computed by `elsewhere`.
pub fn measure_elsewhere(trace: &SuperTrace, elsewhere: Arc<dyn Elsewhere>) {
    let state = trace.session().state_ref();
    state.write().config_mut().set_extension(Arc::new(Where(elsewhere)));
}

/// Where measures of this trace are computed, if not in this process.
pub(super) fn of(trace: &SuperTrace) -> Option<Arc<dyn Elsewhere>> {
    let found = trace.session().state_ref().read().config().get_extension::<Where>()?;
    Some(Arc::clone(&found.0))
}
