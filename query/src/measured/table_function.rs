//! Measures in SQL: `SELECT * FROM states(thread => 15, "by" => 'name')`.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Weak},
};

use arrow::{
    array::{ArrayRef, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use datafusion::{
    catalog::{
        MemTable, Session, TableFunctionArgs, TableFunctionImpl, TableProvider, streaming::StreamingTable,
    },
    common::{Result, ScalarValue, plan_err},
    error::DataFusionError,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::{Expr, TableType},
    physical_plan::{ExecutionPlan, stream::RecordBatchStreamAdapter, streaming::PartitionStream},
};
use futures::{TryStreamExt, stream};
use sigmund_measures::{ALL, Answer, History, Interval, Life, Measure, Request, Rows, Span, Subject};
use sigmund_model::EndReason;
use sigmund_sql::SuperTrace;

use super::{Asked, MeasureOptions, OfHost, batch::to_batch, elsewhere, gaps_note, measure_hosts, request};
use crate::{Error, ErrorKind, Filter};

/// Makes every measure a table function of the trace's session; `-` in its name is `_`.
///
/// Arguments have names: `thread`, `lwp`, `cpu` (a number, or a text with several), `from`, `to`, `by`, `worst`, `of` (the
/// span, function or lock that the measure is about), `from_event` and `to_event` (selectors of the two events that it is
/// about).
pub fn register_measures(trace: &Arc<SuperTrace>) {
    register_measures_noting(trace, |_| {});
}

/// As [`register_measures`], and calls `note` with each note about an answer, when it is computed: what the trace lacks for it, or
/// that events are missing in its time.
pub fn register_measures_noting(trace: &Arc<SuperTrace>, note: impl Fn(String) + Send + Sync + 'static) {
    let note: Arc<Note> = Arc::new(note);
    for measure in ALL {
        let function = MeasureFunction { trace: Arc::downgrade(trace), measure, note: note.clone() };
        trace.session().register_udtf(&measure.name.replace('-', "_"), Arc::new(function));
    }
}

/// Is told the notes about answers.
type Note = dyn Fn(String) + Send + Sync;

struct MeasureFunction {
    /// The session of the trace has this function: a strong reference would be a cycle.
    trace: Weak<SuperTrace>,
    measure: &'static Measure,
    note: Arc<Note>,
}

impl fmt::Debug for MeasureFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeasureFunction").field("measure", &self.measure.name).finish_non_exhaustive()
    }
}

impl TableFunctionImpl for MeasureFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let (filter, options) = words(self.measure, args.exprs())?.parse()?;
        let trace = open(&self.trace)?;
        // Which threads are selected does not matter for the columns, but whether any are.
        let threads = (!filter.threads.is_empty()).then(|| BTreeSet::from([0]));
        let request = request(&trace, self.measure.name, &filter, threads, &options);
        let request = request.map_err(|error| in_sql(self.measure, error))?;
        let nothing = nothing(trace.has_threads(), &request);
        if self.measure.subject == Subject::Pair && options.pair.is_none() {
            return plan_err!("{}: expected from_event and to_event, found neither", self.measure.name);
        }
        let empty = self.measure.answer(&nothing, &request).map_err(DataFusionError::Plan)?;
        let empty = Answer { rows: Rows::default(), ..empty };
        let empty = to_batch(&empty, trace.tick_hz(), trace.first_tick())?;
        let schema = of_host(trace.hosts().first().map(|(name, _)| *name), empty)?.schema();
        let (trace, measure, note) = (self.trace.clone(), self.measure, self.note.clone());
        let question = Question { trace, measure, filter, options, note };
        Ok(Arc::new(MeasureTable { question, schema }))
    }
}

/// A trace in which nothing happened: the columns of an answer about it are those of any. It has a user thread if the trace
/// has any, the LWPs that are asked about, and a span of the name that is.
pub(super) fn nothing(has_threads: bool, request: &Request) -> History {
    let mut history = History::default();
    let interval = Interval::new(0, 0);
    let life = Life { name: None, pid: None, interval, created_by: None };
    if has_threads {
        history.names.threads.insert(0, life);
    }
    for lwp in request.lwps.iter().flatten() {
        history.names.lwps.insert(*lwp, life);
    }
    if let Some(subject) = &request.subject {
        let name = Some(history.words.intern(subject));
        let (thread, end) = (has_threads.then_some(0), EndReason::Returned);
        let (lwp, is_function, depth, active, source) = (Some(0), false, 0, None, None);
        history.spans.push(Span { interval, thread, lwp, is_function, name, depth, active, source, end });
    }
    history
}

/// The rows, with the name of their host.
pub(super) fn of_host(host: Option<&str>, rows: RecordBatch) -> Result<RecordBatch> {
    let Some(host) = host else { return Ok(rows) };
    let mut fields = vec![Arc::new(Field::new("host", DataType::Utf8, false))];
    fields.extend(rows.schema().fields().iter().cloned());
    let names: ArrayRef = Arc::new(StringArray::from(vec![host; rows.num_rows()]));
    let columns = [&[names], rows.columns()].concat();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn open(trace: &Weak<SuperTrace>) -> Result<Arc<SuperTrace>> {
    trace.upgrade().ok_or_else(|| DataFusionError::Execution("the super-trace has been closed".into()))
}

/// An error as one of the query. Of an option of the command, SQL has an argument.
pub(super) fn in_sql(measure: &Measure, error: Error) -> DataFusionError {
    if error.kind() != ErrorKind::Argument {
        return DataFusionError::External(Box::new(error));
    }
    let (name, text) = (measure.name, error.to_string());
    let text = text.strip_prefix("--").unwrap_or(&text);
    let text =
        if text.starts_with(&format!("{name}: ")) { text.to_string() } else { format!("{name}: {text}") };
    DataFusionError::External(Box::new(sigmund_sql::Error::wrong_query(text)))
}

/// Names and values in turns, as the session passes named arguments on.
fn words(measure: &'static Measure, exprs: &[Expr]) -> Result<Asked> {
    let name = measure.name;
    let mut arguments = Vec::new();
    for pair in exprs.chunks(2) {
        let [Expr::Literal(ScalarValue::Utf8(Some(argument)), _), Expr::Literal(value, _)] = pair else {
            return plan_err!("{name}: expected arguments with names and constants, as in thread => 15");
        };
        arguments.push((argument.clone(), value.to_string()));
    }
    Ok(Asked { measure, arguments })
}

/// The answer of a measure, computed when the table is read.
struct MeasureTable {
    question: Question,
    schema: SchemaRef,
}

impl fmt::Debug for MeasureTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeasureTable").field("measure", &self.question.measure.name).finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl TableProvider for MeasureTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = Arc::clone(&self.schema);
        if elsewhere::of(&*open(&self.question.trace)?).is_some() {
            // A plan that goes to other processes has the rows.
            let rows = MemTable::try_new(schema, vec![self.question.clone().answer().await?])?;
            return rows.scan(state, projection, filters, limit).await;
        }
        let rows = MeasureRows { question: self.question.clone(), schema: Arc::clone(&schema) };
        StreamingTable::try_new(schema, vec![Arc::new(rows)])?.scan(state, projection, filters, limit).await
    }
}

/// What is asked of which trace.
#[derive(Clone)]
struct Question {
    trace: Weak<SuperTrace>,
    measure: &'static Measure,
    filter: Filter,
    options: MeasureOptions,
    note: Arc<Note>,
}

impl Question {
    /// The rows of all hosts, in small batches.
    async fn answer(self) -> Result<Vec<RecordBatch>> {
        let Question { trace, measure, filter, options, note } = self;
        let trace = open(&trace)?;
        let answers = measure_hosts(&trace, measure, &filter, &options).await;
        let mut batches = Vec::new();
        for OfHost { host, trace, measured } in answers.map_err(|error| in_sql(measure, error))? {
            let of =
                host.map_or_else(|| measure.name.to_string(), |host| format!("{} of {host}", measure.name));
            measured.answer.notes.iter().for_each(|text| note(format!("{of}: {text}")));
            if measured.gaps > 0 {
                note(format!("{of}: {}", gaps_note(measured.gaps)));
            }
            let rows = to_batch(&measured.answer, trace.tick_hz(), trace.first_tick())?;
            let rows = of_host(host, rows)?;
            let parts = (0..rows.num_rows()).step_by(BATCH);
            batches.extend(parts.map(|from| rows.slice(from, BATCH.min(rows.num_rows() - from))));
        }
        Ok(batches)
    }
}

/// Rows of a batch, as DataFusion's sources have them.
const BATCH: usize = 8192;

/// The rows of an answer, which is computed when the first is asked for: not by EXPLAIN.
struct MeasureRows {
    question: Question,
    schema: SchemaRef,
}

impl fmt::Debug for MeasureRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeasureRows").field("measure", &self.question.measure.name).finish_non_exhaustive()
    }
}

impl PartitionStream for MeasureRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let answer = self.question.clone().answer();
        let rows = stream::once(answer).map_ok(|batches| stream::iter(batches.into_iter().map(Ok)));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows.try_flatten()))
    }
}
