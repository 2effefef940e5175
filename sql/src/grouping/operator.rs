//! The operator in a plan. It stands for an `AggregateExec` that it keeps, and has all its properties.

use std::{fmt, sync::Arc};

use datafusion::{
    common::{Result, internal_err, tree_node::TreeNodeRecursion},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::PhysicalExpr,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements,
        PlanProperties, ReplaceChildrenOptions,
        aggregates::AggregateExec,
        execution_plan::CardinalityEffect,
        metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet},
        stream::RecordBatchStreamAdapter,
    },
};

use super::stream;

/// Groups rows by columns of words, and aggregates each group.
#[derive(Debug)]
pub(super) struct GroupWordsExec {
    plain: Arc<AggregateExec>,
    metrics: ExecutionPlanMetricsSet,
}

impl GroupWordsExec {
    /// In the place of `plain`, which is the first stage of an aggregation.
    pub(super) fn new(plain: AggregateExec) -> GroupWordsExec {
        GroupWordsExec { plain: Arc::new(plain), metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for GroupWordsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupWordsExec: ")?;
        self.plain.fmt_as(format, f)
    }
}

impl ExecutionPlan for GroupWordsExec {
    fn name(&self) -> &'static str {
        "GroupWordsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plain.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.plain.input_distribution_requirements()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.plain.input()]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    fn apply_expressions(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.plain.apply_expressions(each)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plain = Arc::clone(&self.plain).replace_children(children, options)?;
        match plain.downcast_ref::<AggregateExec>() {
            Some(plain) => Ok(Arc::new(GroupWordsExec::new(plain.clone()))),
            None => internal_err!("GroupWordsExec stands for {}", plain.name()),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.plain.input().execute(partition, Arc::clone(&context))?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let grouped = stream::grouped(&self.plain, input, partition, &context, metrics)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), grouped)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
