//! A measure as the source of rows in a plan.

use std::{fmt, sync::Arc, time::Instant};

use arrow::datatypes::SchemaRef;
use datafusion::{
    common::{Result, internal_err, tree_node::TreeNodeRecursion},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{EquivalenceProperties, PhysicalExpr},
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
        ReplaceChildrenOptions,
        coop::make_cooperative,
        execution_plan::{Boundedness, EmissionType},
        metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet},
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, TryStreamExt, stream};

use super::answer_table::Question;

/// The rows of an answer. The answer is computed when the first row is requested, so EXPLAIN does not compute it.
#[derive(Debug)]
pub(super) struct AnswerExec {
    question: Question,
    /// The places of the columns of the answer that are asked for.
    columns: Vec<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl AnswerExec {
    /// `schema` is that of the answer; `columns` are all of its columns if they are not given.
    pub(super) fn new(
        question: Question,
        schema: &SchemaRef,
        columns: Option<&Vec<usize>>,
    ) -> Result<AnswerExec> {
        let columns = columns.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::new(schema.project(&columns)?)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        Ok(AnswerExec { question, columns, properties, metrics })
    }
}

impl DisplayAs for AnswerExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "AnswerExec: {}, columns=[{}]", self.question.measure.name, columns.join(", "))
    }
}

impl ExecutionPlan for AnswerExec {
    fn name(&self) -> &'static str {
        "AnswerExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
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
        if children.is_empty() { Ok(self) } else { internal_err!("AnswerExec has no input") }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (took, columns) = (metrics.elapsed_compute().clone(), self.columns.clone());
        let answer = self.question.clone().rows();
        let answer = async move {
            let began = Instant::now();
            let rows = answer.await;
            // Of all the threads that computed it, this is the time that passed.
            took.add_elapsed(began);
            rows
        };
        let rows = stream::once(answer).map_ok(stream::iter).try_flatten();
        let rows = rows.map(move |batch| Ok(batch?.project(&columns)?));
        let rows = rows.inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        Ok(make_cooperative(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
