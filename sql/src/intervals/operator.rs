//! The operator in a plan. Its inputs have to be sorted by key and start, and all rows of one key have to be in the
//! same partition.

use std::{fmt, sync::Arc};

use arrow::{compute::SortOptions, datatypes::SchemaRef};
use datafusion::{
    common::{Result, internal_err, tree_node::TreeNodeRecursion},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{
        Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr,
        PhysicalSortExpr,
    },
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
        InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
        execution_plan::{Boundedness, EmissionType},
        expressions::Column,
        metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet},
        stream::RecordBatchStreamAdapter,
    },
};
use futures::TryStreamExt;

use super::{operation::Operation, output::Origin, stream};

/// Combines the rows of its inputs to rows of a function over intervals.
#[derive(Clone, Debug)]
pub(super) struct IntervalExec {
    operation: Operation,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    /// The number of key columns, which come first in each input. The start and the end follow.
    keys: usize,
    /// Whether all rows have the same key.
    has_one_key: bool,
    origins: Vec<Origin>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl IntervalExec {
    pub(super) fn new(
        operation: Operation,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
        (keys, has_one_key): (usize, bool),
        origins: Vec<Origin>,
        schema: SchemaRef,
    ) -> IntervalExec {
        let partitions = inputs[0].output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(if has_one_key { 1 } else { partitions }),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        IntervalExec { operation, inputs, keys, has_one_key, origins, properties, metrics }
    }

    /// Its parts: the function, the key, and where the columns of the result come from.
    pub(super) fn parts(&self) -> (Operation, (usize, bool), &[Origin]) {
        (self.operation, (self.keys, self.has_one_key), &self.origins)
    }

    fn column(input: &Arc<dyn ExecutionPlan>, place: usize) -> Arc<dyn PhysicalExpr> {
        let schema = input.schema();
        Arc::new(Column::new(schema.field(place).name(), place))
    }

    fn key_of(&self, input: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn PhysicalExpr>> {
        (0..self.keys).map(|place| IntervalExec::column(input, place)).collect()
    }

    /// The required order: by key and start, and for equal starts the longest first.
    fn order_of(&self, input: &Arc<dyn ExecutionPlan>) -> Option<OrderingRequirements> {
        let by = |place: usize, descending: bool| PhysicalSortExpr {
            expr: IntervalExec::column(input, place),
            options: SortOptions { descending, nulls_first: false },
        };
        let order = (0..self.keys + 1).map(|place| by(place, false)).chain([by(self.keys + 1, true)]);
        LexOrdering::new(order).map(OrderingRequirements::from)
    }
}

impl DisplayAs for IntervalExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntervalExec: {}", self.operation.name())
    }
}

impl ExecutionPlan for IntervalExec {
    fn name(&self) -> &'static str {
        "IntervalExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let of = |input: &Arc<dyn ExecutionPlan>| match self.has_one_key {
            true => Distribution::SinglePartition,
            false => Distribution::KeyPartitioned(self.key_of(input)),
        };
        let each: Vec<Distribution> = self.inputs.iter().map(of).collect();
        match self.has_one_key || each.len() < 2 {
            true => InputDistributionRequirements::new(each),
            false => InputDistributionRequirements::co_partitioned(each),
        }
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.inputs.iter().map(|input| self.order_of(input)).collect()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
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
        if children.len() != self.inputs.len() {
            return internal_err!("{}: {} inputs", self.operation.name(), children.len());
        }
        let IntervalExec { operation, keys, has_one_key, origins, .. } = self.as_ref();
        let (key, origins) = ((*keys, *has_one_key), origins.clone());
        Ok(Arc::new(IntervalExec::new(*operation, children, key, origins, self.schema())))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let inputs = self.inputs.iter().map(|input| input.execute(partition, Arc::clone(&context)));
        let inputs: Vec<SendableRecordBatchStream> = inputs.collect::<Result<_>>()?;
        let batch_size = context.session_config().batch_size();
        let made = stream::made(self.operation, inputs, self.keys, &self.origins, self.schema(), batch_size)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let made = made.inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), made)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
