//! Measures that are computed in other processes.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use sigmund_sql::SuperTrace;

use super::{Asked, Measured};
use crate::Error;

/// Computes measures elsewhere, as a cluster does.
#[async_trait]
pub trait Elsewhere: fmt::Debug + Send + Sync {
    /// The answers about these super-traces, in their order: an error each of those that have none.
    ///
    /// # Errors
    /// When it cannot be asked.
    async fn measure(
        &self,
        traces: &[&SuperTrace],
        asked: &Asked,
    ) -> Result<Vec<Result<Measured, Error>>, Error>;
}

/// Where a session's measures are computed, as an extension of its configuration.
struct Where(Arc<dyn Elsewhere>);

/// The measures of a super-trace's session are computed there from here on.
pub fn measure_elsewhere(trace: &SuperTrace, elsewhere: Arc<dyn Elsewhere>) {
    let state = trace.session().state_ref();
    state.write().config_mut().set_extension(Arc::new(Where(elsewhere)));
}

/// Where measures of this trace are computed, if not in this process.
pub(super) fn of(trace: &SuperTrace) -> Option<Arc<dyn Elsewhere>> {
    let found = trace.session().state_ref().read().config().get_extension::<Where>()?;
    Some(Arc::clone(&found.0))
}
