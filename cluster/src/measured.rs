//! The operator that computes a measure. Each row of its input names a super-trace; for each, it returns the pieces of
//! an answer.
//!
//! Ballista gives each task some partitions of a plan's leaves, and numbers them anew. It can divide rows in memory. So
//! the names of super-traces are rows in memory, one partition each, and this operator is above them.

use std::{fmt, sync::Arc};

use arrow::{
    array::{AsArray, Int64Array, RecordBatch, StringArray},
    datatypes::{DataType, Field, Int64Type, Schema, SchemaRef},
};
use datafusion::{
    common::{DataFusionError, Result, internal_err, plan_err, tree_node::TreeNodeRecursion},
    datasource::memory::MemorySourceConfig,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{EquivalenceProperties, PhysicalExpr},
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
        Partitioning, PlanProperties, ReplaceChildrenOptions,
        execution_plan::{Boundedness, EmissionType},
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use sigmund_measures::named;
use sigmund_query::{Asked, Error};

use crate::{
    answers::{Piece, pieces},
    place::Place,
    traces::Traces,
};

/// A question in the form in which it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    measure: String,
    arguments: Vec<(String, String)>,
}

impl Question {
    pub(crate) fn new(asked: &Asked) -> Question {
        Question { measure: asked.measure.name.to_string(), arguments: asked.arguments.clone() }
    }

    fn asked(&self) -> Result<Asked> {
        let Some(measure) = named(&self.measure) else {
            return plan_err!("expected a measure, found {}: the client has another version", self.measure);
        };
        Ok(Asked { measure, arguments: self.arguments.clone() })
    }
}

/// Computes a measure of super-traces.
#[derive(Debug)]
pub(crate) struct MeasureExec {
    question: Question,
    /// Rows with the numbers and places of the super-traces.
    input: Arc<dyn ExecutionPlan>,
    /// The open super-traces of an executor. Only executors execute this operator.
    traces: Option<Arc<Traces>>,
    properties: Arc<PlanProperties>,
}

/// The schema of rows that name super-traces.
fn input_schema() -> SchemaRef {
    let number = Field::new("number", DataType::Int64, false);
    Arc::new(Schema::new(vec![number, Field::new("place", DataType::Utf8, false)]))
}

impl MeasureExec {
    /// The plan for a question about the super-traces at some places.
    pub(crate) fn about(question: Question, places: &[Place]) -> Result<Arc<dyn ExecutionPlan>> {
        let mut partitions = Vec::new();
        for (number, place) in (0_i64..).zip(places) {
            let (number, place) = (Int64Array::from(vec![number]), StringArray::from(vec![place.text()?]));
            let row = RecordBatch::try_new(input_schema(), vec![Arc::new(number), Arc::new(place)])?;
            partitions.push(vec![row]);
        }
        let input = MemorySourceConfig::try_new_exec(&partitions, input_schema(), None)?;
        Ok(Arc::new(MeasureExec::new(question, input, None)?))
    }

    /// The operator for a question about the super-traces that `input` names.
    pub(crate) fn new(
        question: Question,
        input: Arc<dyn ExecutionPlan>,
        traces: Option<Arc<Traces>>,
    ) -> Result<MeasureExec> {
        if input.schema().fields() != input_schema().fields() {
            return plan_err!("measure: expected rows that name super-traces, found others");
        }
        let piece = Field::new("piece", DataType::Utf8, false);
        let schema = Arc::new(Schema::new(vec![Field::new("number", DataType::Int64, false), piece]));
        let partitions = Partitioning::UnknownPartitioning(input.output_partitioning().partition_count());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            partitions,
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(MeasureExec { question, input, traces, properties: Arc::new(properties) })
    }

    pub(crate) fn question(&self) -> &Question {
        &self.question
    }
}

/// Reads the numbers of super-traces, and the pieces of their answers, from a batch.
pub(crate) fn pieces_of(batch: &RecordBatch) -> Result<Vec<(i64, Piece)>> {
    let [numbers, texts] = batch.columns() else {
        return internal_err!("pieces of answers have two columns");
    };
    let (numbers, texts) = (numbers.as_primitive_opt::<Int64Type>(), texts.as_string_opt::<i32>());
    let Some((numbers, texts)) = numbers.zip(texts) else {
        return internal_err!("pieces of answers are texts with numbers");
    };
    let piece = |(number, text): (&i64, Option<&str>)| {
        let piece = serde_json::from_str(text.unwrap_or_default());
        Ok((*number, piece.map_err(|error| DataFusionError::External(Box::new(error)))?))
    };
    numbers.values().iter().zip(texts).map(piece).collect()
}

/// The answer about a super-trace, in pieces, as rows.
async fn answer(
    question: Question,
    traces: Arc<Traces>,
    number: i64,
    place: String,
) -> Result<Vec<RecordBatch>> {
    let asked = question.asked()?;
    let (filter, options) = asked.parse()?;
    let place = Place::parse(&place)?;
    let opened = tokio::task::spawn_blocking(move || traces.open(&place)).await;
    let trace = opened.map_err(|error| DataFusionError::External(Box::new(error)))??;
    let measured = match trace.get().await {
        Ok(trace) => sigmund_query::measure(trace, asked.measure, &filter, &options).await,
        Err(error) => Err(Error::from(error)),
    };
    let schema = Arc::new(Schema::new(vec![
        Field::new("number", DataType::Int64, false),
        Field::new("piece", DataType::Utf8, false),
    ]));
    let batch = |piece: &Piece| {
        let text =
            serde_json::to_string(piece).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let columns: Vec<arrow::array::ArrayRef> =
            vec![Arc::new(Int64Array::from(vec![number])), Arc::new(StringArray::from(vec![text]))];
        Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
    };
    pieces(measured).iter().map(batch).collect()
}

impl DisplayAs for MeasureExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MeasureExec: {} {:?}", self.question.measure, self.question.arguments)
    }
}

impl ExecutionPlan for MeasureExec {
    fn name(&self) -> &'static str {
        "MeasureExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
            return internal_err!("MeasureExec has one input");
        };
        Ok(Arc::new(MeasureExec::new(self.question.clone(), input, self.traces.clone())?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(traces) = self.traces.clone() else {
            return internal_err!("a measure is computed by executors");
        };
        let question = self.question.clone();
        let rows = self.input.execute(partition, context)?;
        let answers = rows.and_then(move |names| {
            let (question, traces) = (question.clone(), Arc::clone(&traces));
            async move {
                let mut batches = Vec::new();
                let numbers = names.column(0).as_primitive::<Int64Type>().values();
                for (number, place) in numbers.iter().zip(names.column(1).as_string::<i32>()) {
                    let place = place.unwrap_or_default().to_string();
                    batches.extend(answer(question.clone(), Arc::clone(&traces), *number, place).await?);
                }
                Ok(futures::stream::iter(batches.into_iter().map(Ok::<_, DataFusionError>)))
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), answers.try_flatten().boxed())))
    }
}
