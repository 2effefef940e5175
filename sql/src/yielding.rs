//! Makes queries yield their thread regularly, whatever their plan is.
//!
//! A query can be cancelled, and its time limit takes effect, only when it gives its thread back to the runtime.
//! DataFusion ensures that at the sources of rows, and where partitions are exchanged: after 128 batches each. But a
//! join can spend a long time on one batch, and can make 10^12 rows of two batches without reading from a source again.
//! So operators that can make more rows than they read yield the thread after 10 ms, at their output and at their
//! inputs.
//!
//! The work between two batches is not interrupted: a nested loop compares one batch with all rows of the other side.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    common::{
        Result, internal_err,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    config::ConfigOptions,
    execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext},
    physical_expr::PhysicalExpr,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
        ReplaceChildrenOptions, execution_plan::CardinalityEffect,
    },
};
use futures::{Stream, StreamExt, ready};

/// How long a query may keep the thread.
const SLICE: Duration = Duration::from_millis(10);

/// Wraps operators that can make more rows than they read, and their inputs.
#[derive(Debug)]
pub(crate) struct YieldWhereRowsMultiply;

impl PhysicalOptimizerRule for YieldWhereRowsMultiply {
    fn name(&self) -> &'static str {
        "YieldWhereRowsMultiply"
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            if !may_multiply(&*plan) {
                return Ok(Transformed::no(plan));
            }
            let inputs = plan.children().into_iter().cloned().map(yielding).collect();
            let plan =
                plan.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))?;
            Ok(Transformed::yes(yielding(plan)))
        })
        .data()
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn may_multiply(plan: &dyn ExecutionPlan) -> bool {
    let effect = plan.cardinality_effect();
    !plan.children().is_empty()
        && matches!(effect, CardinalityEffect::Unknown | CardinalityEffect::GreaterEqual)
}

fn yielding(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.is::<YieldExec>() {
        true => plan,
        false => Arc::new(YieldExec { input: plan }),
    }
}

/// Passes on the same rows, and yields between batches.
#[derive(Debug)]
struct YieldExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for YieldExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YieldExec")
    }
}

impl ExecutionPlan for YieldExec {
    fn name(&self) -> &'static str {
        "YieldExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return internal_err!("YieldExec has one input");
        };
        Ok(Arc::new(YieldExec { input }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        Ok(Box::pin(Yielding { rows, since: None }))
    }
}

struct Yielding {
    rows: SendableRecordBatchStream,
    /// Since when it has kept the thread, as far as it knows.
    since: Option<Instant>,
}

impl Stream for Yielding {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let since = *self.since.get_or_insert_with(Instant::now);
        // It is polled again after others have run. Then at least one batch follows.
        if since.elapsed() > SLICE {
            self.since = None;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = self.rows.poll_next_unpin(context);
        if polled.is_pending() {
            self.since = None;
        }
        Poll::Ready(ready!(polled))
    }
}

impl RecordBatchStream for Yielding {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}
