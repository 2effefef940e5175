//! Makes queries yield their thread regularly, whatever their plan is.
//!
//! A query can be cancelled, and its time limit takes effect, only when it gives its thread back to the runtime.
//! DataFusion ensures that at the sources of rows, and where partitions are exchanged: after 128 batches each. But a
//! join can spend a long time on one batch, and can make 10^12 rows of two batches without reading from a source again.
//! So operators that can make more rows than they read yield the thread after 10 ms, at their output and at their
//! inputs.
//!
//! The work between two batches is not interrupted. A nested loop compares each batch of its right side with all rows
//! of its left side, which may be millions: so these batches are cut to pieces, each for some 0.2 s.

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
        ReplaceChildrenOptions, execution_plan::CardinalityEffect, joins::NestedLoopJoinExec,
    },
};
use futures::{Stream, StreamExt, ready};

/// How long a query may keep the thread.
const SLICE: Duration = Duration::from_millis(10);

/// How long a nested loop may compare one piece of a batch.
const PIECE: Duration = Duration::from_millis(200);

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
            let is_loop = plan.is::<NestedLoopJoinExec>();
            let inputs = plan.children().into_iter().cloned().enumerate();
            let inputs = inputs.map(|(side, input)| yielding(input, is_loop && side == 1)).collect();
            let plan =
                plan.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))?;
            Ok(Transformed::yes(yielding(plan, false)))
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

fn yielding(plan: Arc<dyn ExecutionPlan>, in_pieces: bool) -> Arc<dyn ExecutionPlan> {
    match plan.is::<YieldExec>() && !in_pieces {
        true => plan,
        false => Arc::new(YieldExec { input: plan, in_pieces }),
    }
}

/// Passes on the same rows, and yields between batches.
#[derive(Debug)]
struct YieldExec {
    input: Arc<dyn ExecutionPlan>,
    /// Whether batches are cut, because what is done with each may take long.
    in_pieces: bool,
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
        Ok(Arc::new(YieldExec { input, in_pieces: self.in_pieces }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        Ok(Box::pin(Yielding { rows, since: None, pieces: self.in_pieces.then(Pieces::new) }))
    }
}

struct Yielding {
    rows: SendableRecordBatchStream,
    /// Since when it has kept the thread, as far as it knows.
    since: Option<Instant>,
    pieces: Option<Pieces>,
}

/// Cuts batches to pieces with so many rows that the work for each takes [`PIECE`]. It begins with one row.
#[derive(Debug)]
struct Pieces {
    /// The number of rows of the next piece.
    rows: usize,
    /// What is left of a batch.
    rest: Option<RecordBatch>,
    /// When the last piece was taken, and its rows.
    taken: Option<(Instant, usize)>,
}

impl Pieces {
    fn new() -> Pieces {
        Pieces { rows: 1, rest: None, taken: None }
    }

    /// The next piece of what is left of a batch.
    fn next(&mut self) -> Option<RecordBatch> {
        let rest = self.rest.take()?;
        let rows = self.rows.min(rest.num_rows());
        if rows < rest.num_rows() {
            self.rest = Some(rest.slice(rows, rest.num_rows() - rows));
        }
        self.taken = Some((Instant::now(), rows));
        Some(rest.slice(0, rows))
    }

    /// Learns how long the work for the last piece took.
    fn is_asked_for_more(&mut self) {
        if let Some((when, rows)) = self.taken.take() {
            self.rows = rows_in(PIECE, rows, when.elapsed());
        }
    }
}

/// The number of rows for which the work takes `time`, if it took `took` for `rows`.
fn rows_in(time: Duration, rows: usize, took: Duration) -> usize {
    let ratio = time.as_secs_f64() / took.as_secs_f64().max(1e-9);
    // A float that is too large becomes the largest number.
    ((rows as f64 * ratio) as usize).max(1)
}

impl Stream for Yielding {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(pieces) = &mut self.pieces {
            pieces.is_asked_for_more();
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        // It is polled again after others have run. Then at least one batch follows.
        if since.elapsed() > SLICE {
            self.since = None;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(piece) = self.pieces.as_mut().and_then(Pieces::next) {
            return Poll::Ready(Some(Ok(piece)));
        }
        let polled = self.rows.poll_next_unpin(context);
        if polled.is_pending() {
            self.since = None;
        }
        let batch = ready!(polled);
        Poll::Ready(match (&mut self.pieces, batch) {
            (Some(pieces), Some(Ok(batch))) => {
                pieces.rest = Some(batch);
                pieces.next().map(Ok)
            }
            (_, batch) => batch,
        })
    }
}

impl RecordBatchStream for Yielding {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}
