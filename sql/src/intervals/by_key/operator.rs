//! The operator in a plan. It stands for a `SortExec` that it keeps, and has all its properties.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use arrow::datatypes::SchemaRef;
use datafusion::{
    common::{
        Result, internal_err, tree_node::TreeNodeRecursion, utils::memory::get_record_batch_memory_size,
    },
    error::DataFusionError,
    execution::{SendableRecordBatchStream, TaskContext, memory_pool::MemoryConsumer},
    physical_expr::PhysicalExpr,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements,
        PlanProperties, ReplaceChildrenOptions,
        execution_plan::CardinalityEffect,
        metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet},
        sorts::sort::SortExec,
        stream::{EmptyRecordBatchStream, RecordBatchStreamAdapter},
        streaming::{PartitionStream, StreamingTableExec},
    },
};
use futures::{StreamExt, TryStreamExt, stream};

use super::buckets::{Buckets, PER_ROW};
use crate::larger_batches::larger;

/// Sorts rows by key and start.
#[derive(Debug)]
pub(super) struct SortByKeyExec {
    sort: Arc<SortExec>,
    /// The number of columns of the key.
    keys: usize,
    metrics: ExecutionPlanMetricsSet,
}

impl SortByKeyExec {
    /// In the place of `sort`, whose order is by the first `keys` columns, then by start and end.
    pub(super) fn new(sort: SortExec, keys: usize) -> SortByKeyExec {
        SortByKeyExec { sort: Arc::new(sort), keys, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for SortByKeyExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SortByKeyExec: ")?;
        self.sort.fmt_as(format, f)
    }
}

impl ExecutionPlan for SortByKeyExec {
    fn name(&self) -> &'static str {
        "SortByKeyExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.sort.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.sort.input_distribution_requirements()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.sort.input()]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn apply_expressions(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.sort.apply_expressions(each)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sort = Arc::clone(&self.sort).replace_children(children, options)?;
        match sort.downcast_ref::<SortExec>() {
            Some(sort) => Ok(Arc::new(SortByKeyExec::new(sort.clone(), self.keys))),
            None => internal_err!("SortByKeyExec stands for {}", sort.name()),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.sort.input().execute(partition, Arc::clone(&context))?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let sorted = sorted(Arc::clone(&self.sort), self.keys, input, (partition, context), metrics);
        let rows = stream::once(sorted).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// The rows of a partition, sorted. If they do not fit into memory, `sort` sorts them.
async fn sorted(
    sort: Arc<SortExec>,
    keys: usize,
    mut input: SendableRecordBatchStream,
    (partition, context): (usize, Arc<TaskContext>),
    metrics: BaselineMetrics,
) -> Result<SendableRecordBatchStream> {
    let schema = input.schema();
    let consumer = MemoryConsumer::new(format!("SortByKeyExec[{partition}]")).with_can_spill(true);
    let reservation = consumer.register(context.memory_pool());
    let mut buckets = Buckets::new(Arc::clone(&schema), keys)?;
    while let Some(batch) = input.next().await.transpose()? {
        let rows = batch.num_rows();
        let size = get_record_batch_memory_size(&batch) + rows * PER_ROW;
        if !buckets.has_room(rows) || reservation.try_grow(size).is_err() {
            let all = stream::iter(buckets.into_batches().chain([Ok(batch)])).chain(input);
            let all = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), all));
            drop(reservation);
            return sorted_by(&sort, Once::new(all), context);
        }
        if rows > 0 {
            buckets.add(&batch)?;
        }
    }
    if buckets.is_empty() {
        return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
    }
    let rows = buckets.sorted().await;
    let size = context.session_config().batch_size();
    // The memory is reserved until the last row was read.
    let state = (rows, metrics, reservation);
    let rows = stream::try_unfold(state, move |(mut rows, metrics, reservation)| async move {
        let timer = metrics.elapsed_compute().timer();
        let next = rows.next(size)?;
        timer.done();
        let Some(batch) = next else { return Ok::<_, DataFusionError>(None) };
        metrics.record_output(batch.num_rows());
        Ok(Some((batch, (rows, metrics, reservation))))
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// The rows of a stream in the order of `sort`, which uses temporary files.
fn sorted_by(sort: &SortExec, rows: Once, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
    let schema = Arc::clone(&rows.schema);
    let rows = StreamingTableExec::try_new(schema, vec![Arc::new(rows)], None, [], false, None)?;
    SortExec::new(sort.expr().clone(), larger(Arc::new(rows)))
        .with_preserve_partitioning(true)
        .execute(0, context)
}

/// A stream as the source of a plan that is executed once.
struct Once {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl Once {
    fn new(rows: SendableRecordBatchStream) -> Once {
        Once { schema: rows.schema(), rows: Mutex::new(Some(rows)) }
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        rows.unwrap_or_else(|| Box::pin(EmptyRecordBatchStream::new(Arc::clone(&self.schema))))
    }
}
