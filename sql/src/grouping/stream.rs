//! What the operator does with the rows of one partition.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, RecordBatch},
    datatypes::{DataType, SchemaRef},
};
use datafusion::{
    common::Result,
    error::DataFusionError,
    execution::{
        SendableRecordBatchStream, TaskContext,
        memory_pool::{MemoryConsumer, MemoryReservation},
    },
    logical_expr::{EmitTo, GroupsAccumulator},
    physical_expr::PhysicalExpr,
    physical_plan::{
        ExecutionPlan,
        aggregates::{AggregateExec, aggregate_expressions, evaluate_many},
        metrics::{BaselineMetrics, RecordOutput},
    },
};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::groups::{Groups, ROWS};

/// The groups of the rows of `input`, each with the states of the functions of `plain`. A group comes more than once if there are
/// many, or if memory is short.
pub(super) fn grouped(
    plain: &AggregateExec,
    input: SendableRecordBatchStream,
    partition: usize,
    context: &TaskContext,
    metrics: BaselineMetrics,
) -> Result<impl Stream<Item = Result<RecordBatch>> + Send + use<>> {
    let rows = Rows { input: Some(input), rest: None };
    let grouping = Grouping::new(plain, partition, context, metrics)?;
    let batches = stream::try_unfold((rows, grouping), async |(mut rows, mut grouping)| {
        let next = taken(&mut rows, &mut grouping).await?;
        Ok::<_, DataFusionError>(next.map(|batch| (batch, (rows, grouping))))
    });
    // The second stage spills between batches: not of more rows than usual.
    let size = context.session_config().batch_size();
    Ok(batches.map_ok(move |batch| stream::iter(pieces(batch, size).map(Ok))).try_flatten())
}

/// Adds rows until there is no room for more, and takes the groups. `None` if no rows were left.
async fn taken(rows: &mut Rows, grouping: &mut Grouping) -> Result<Option<RecordBatch>> {
    while let Some(some) = rows.next().await? {
        grouping.add(&some)?;
        if !grouping.has_room() {
            return grouping.take().map(Some);
        }
    }
    (!grouping.is_empty()).then(|| grouping.take()).transpose()
}

/// A batch in pieces of `size` rows.
fn pieces(batch: RecordBatch, size: usize) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    (0..rows).step_by(size).map(move |from| batch.slice(from, size.min(rows - from)))
}

/// The rows of a partition, [`ROWS`] at a time.
struct Rows {
    /// `None` after its end.
    input: Option<SendableRecordBatchStream>,
    /// What is left of a batch.
    rest: Option<RecordBatch>,
}

impl Rows {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = match (self.rest.take(), &mut self.input) {
            (Some(rest), _) => rest,
            (None, None) => return Ok(None),
            (None, Some(input)) => match input.next().await {
                Some(batch) => batch?,
                None => {
                    self.input = None;
                    return Ok(None);
                }
            },
        };
        if batch.num_rows() <= ROWS {
            return Ok(Some(batch));
        }
        self.rest = Some(batch.slice(ROWS, batch.num_rows() - ROWS));
        Ok(Some(batch.slice(0, ROWS)))
    }
}

/// The groups so far, with the states of the functions.
struct Grouping {
    by: Vec<Arc<dyn PhysicalExpr>>,
    groups: Groups,
    functions: Vec<Function>,
    /// Of what is taken: the columns of the groups, then those of the states.
    schema: SchemaRef,
    reservation: MemoryReservation,
    metrics: BaselineMetrics,
    /// The group of each row.
    of_rows: Vec<usize>,
}

/// A function that is computed for each group.
struct Function {
    states: Box<dyn GroupsAccumulator>,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    filter: Option<Arc<dyn PhysicalExpr>>,
}

impl Grouping {
    fn new(
        plain: &AggregateExec,
        partition: usize,
        context: &TaskContext,
        metrics: BaselineMetrics,
    ) -> Result<Grouping> {
        let by: Vec<_> = plain.group_expr().expr().iter().map(|(column, _)| Arc::clone(column)).collect();
        let arguments = aggregate_expressions(plain.aggr_expr(), plain.mode(), by.len())?;
        let functions = plain.aggr_expr().iter().zip(arguments).zip(plain.filter_expr());
        let functions = functions.map(|((function, arguments), filter)| {
            let states = function.create_groups_accumulator()?;
            Ok(Function { states, arguments, filter: filter.clone() })
        });
        let consumer = MemoryConsumer::new(format!("GroupWordsExec[{partition}]")).with_can_spill(true);
        Ok(Grouping {
            groups: Groups::new(by.len()),
            by,
            functions: functions.collect::<Result<_>>()?,
            schema: plain.schema(),
            reservation: consumer.register(context.memory_pool()),
            metrics,
            of_rows: Vec::new(),
        })
    }

    fn is_empty(&self) -> bool {
        self.groups.len() == 0
    }

    fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        let _timer = self.metrics.elapsed_compute().timer();
        let words = arrays(&self.by, rows)?;
        self.groups.of(&words, &mut self.of_rows);
        for Function { states, arguments, filter } in &mut self.functions {
            let filter = filter.as_ref().map(|filter| filter.evaluate(rows)?.into_array(rows.num_rows()));
            let filter = filter.transpose()?;
            let filter = filter.as_ref().map(|filter| filter.as_boolean());
            states.update_batch(&arrays(arguments, rows)?, &self.of_rows, filter, self.groups.len())?;
        }
        Ok(())
    }

    /// Whether more rows can be added before the groups are taken.
    fn has_room(&mut self) -> bool {
        let states = self.functions.iter().map(|function| function.states.size()).sum::<usize>();
        let of_rows = self.of_rows.capacity() * size_of::<usize>();
        let fits = self.reservation.try_resize(self.groups.size() + states + of_rows).is_ok();
        fits && !self.groups.are_many()
    }

    /// The groups, of which none is left.
    fn take(&mut self) -> Result<RecordBatch> {
        let _timer = self.metrics.elapsed_compute().timer();
        let types = self.schema.fields().iter().take(self.by.len());
        let types: Vec<DataType> = types.map(|field| field.data_type().clone()).collect();
        let mut columns = self.groups.take(&types)?;
        for function in &mut self.functions {
            columns.extend(function.states.state(EmitTo::All)?);
        }
        self.reservation.free();
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?.record_output(&self.metrics))
    }
}

fn arrays(expressions: &[Arc<dyn PhysicalExpr>], rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
    evaluate_many(&[expressions.to_vec()], rows).map(|each| each.into_iter().flatten().collect())
}
