//! A query that runs, within the memory of its session.
//!
//! DataFusion's hash join holds the rows of one side in memory, and cannot use temporary files. Its join of sorted rows can, but
//! is slower. So a query begins with hash joins; if they need more memory than there is, it begins anew with joins of sorted rows.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::Arc,
};

use arrow::array::RecordBatch;
use datafusion::{
    common::tree_node::{TreeNode, TreeNodeRecursion},
    error::{DataFusionError, Result},
    execution::{SendableRecordBatchStream, SessionState, TaskContext},
    logical_expr::LogicalPlan,
    physical_plan::{
        EmptyRecordBatchStream, ExecutionPlan, empty::EmptyExec, execute_stream, joins::HashJoinExec,
    },
    prelude::DataFrame,
};
use futures::{FutureExt, StreamExt};

use crate::{files::Sources, large_constants::refuse_large_constants};

pub(crate) struct Running {
    plan: Arc<dyn ExecutionPlan>,
    batches: SendableRecordBatchStream,
    /// What it takes to begin anew, while no batch was returned.
    again: Option<(SessionState, LogicalPlan)>,
}

impl Running {
    /// Plans a query, and begins to run it.
    pub(crate) async fn start(frame: DataFrame) -> Result<Running> {
        let (state, query) = frame.into_parts();
        let (plan, batches) = run(&state, &query).await?;
        let again = holds_hashed_rows(&plan)?.then_some((state, query));
        Ok(Running { plan, batches, again })
    }

    /// The rows; those of all its attempts have the same columns.
    pub(crate) fn batches(&self) -> &SendableRecordBatchStream {
        &self.batches
    }

    /// The next batch. An error names the damaged file among `sources`, if there is one.
    pub(crate) async fn next(&mut self, sources: &Sources) -> Option<Result<RecordBatch>> {
        let mut batch = next_of(&mut self.batches).await;
        if let Some(again) = self.again.take()
            && let Some(Err(error)) = &batch
            && matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
        {
            batch = match self.start_sorted(again).await {
                Ok(()) => next_of(&mut self.batches).await,
                Err(error) => Some(Err(error)),
            };
        }
        match batch {
            Some(Err(error)) => Some(Err(sources.named(&self.plan, error).await)),
            batch => batch,
        }
    }

    /// Begins anew, with joins that use temporary files.
    async fn start_sorted(&mut self, (mut state, query): (SessionState, LogicalPlan)) -> Result<()> {
        // The first attempt ends, and frees its memory.
        let columns = self.batches.schema();
        self.batches = Box::pin(EmptyRecordBatchStream::new(Arc::clone(&columns)));
        self.plan = Arc::new(EmptyExec::new(columns));
        tokio::task::yield_now().await;
        state.config_mut().options_mut().optimizer.prefer_hash_join = false;
        (self.plan, self.batches) = run(&state, &query).await?;
        Ok(())
    }
}

/// The next batch. A column of a batch that is larger than Arrow's arrays can be is an error.
async fn next_of(batches: &mut SendableRecordBatchStream) -> Option<Result<RecordBatch>> {
    match AssertUnwindSafe(batches.next()).catch_unwind().await {
        Ok(next) => next,
        Err(panic) if is_overflow(&*panic) => {
            // What has panicked would panic again if it were polled.
            *batches = Box::pin(EmptyRecordBatchStream::new(batches.schema()));
            // It is no lack of memory, which a join of sorted rows could need less of.
            Some(Err(DataFusionError::Execution(
                "expected at most 2 GiB in one column of a batch of 8192 rows, found more".into(),
            )))
        }
        Err(panic) => resume_unwind(panic),
    }
}

/// Whether a panic is that of an array of Arrow whose texts or lists have more bytes or items than an offset can count.
fn is_overflow(panic: &(dyn Any + Send)) -> bool {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .is_some_and(|text| text.contains("offset overflow"))
}

async fn run(
    state: &SessionState,
    query: &LogicalPlan,
) -> Result<(Arc<dyn ExecutionPlan>, SendableRecordBatchStream)> {
    let query = state.optimize(query)?;
    refuse_large_constants(&query, false)?;
    let plan = state.query_planner().create_physical_plan(&query, state).await?;
    let batches = execute_stream(Arc::clone(&plan), Arc::new(TaskContext::from(state)))?;
    Ok((plan, batches))
}

fn holds_hashed_rows(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut holds = false;
    plan.apply(|plan| {
        holds |= plan.is::<HashJoinExec>();
        Ok(if holds { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(holds)
}
