//! Answers of measures as tables of SQL, computed when they are read.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
    sync::{Arc, Weak},
};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion::{
    catalog::{MemTable, Session, TableProvider},
    common::{Result, plan_err},
    error::DataFusionError,
    logical_expr::{Expr, TableType},
    physical_plan::ExecutionPlan,
};
use futures::{FutureExt, future::BoxFuture};
use sigmund_measures::{Answer, Level, Measure, Subject, columns_to_compare, request_to_compare};
use sigmund_model::{Hertz, Ticks};
use sigmund_sql::SuperTrace;

use super::{
    MeasureOptions, OfHost, OfHosts,
    batch::{rows_to_batch, to_batch},
    compare_traces, elsewhere,
    exec::AnswerExec,
    gaps_note, level, measure_hosts, request,
    table_function::{MeasureNote, Note, in_sql, nothing, of_host},
};
use crate::Filter;

/// The answer of a measure, computed when the table is read.
#[derive(Debug)]
struct MeasureTable {
    question: Question,
    schema: SchemaRef,
}

/// The answer of a question as a table.
///
/// # Errors
/// When the question cannot be asked of these super-traces.
pub(super) fn answer_table(question: Question) -> Result<Arc<dyn TableProvider>> {
    let schema = question.schema()?;
    Ok(Arc::new(MeasureTable { question, schema }))
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
        if elsewhere::of(&*open(&self.question.trace)?).is_none() {
            return Ok(Arc::new(AnswerExec::new(self.question.clone(), &schema, projection)?));
        }
        // The plan is sent to other processes, so it has to contain the rows.
        let rows = self.question.clone().rows().await?.collect::<Result<_>>()?;
        MemTable::try_new(schema, vec![rows])?.scan(state, projection, filters, limit).await
    }
}

/// A measure, and the traces and options that it is asked about.
#[derive(Clone)]
pub(super) struct Question {
    /// The trace whose session received the query. Weak, because a strong reference would be a cycle.
    pub(super) trace: Weak<SuperTrace>,
    pub(super) of: Of,
    pub(super) measure: &'static Measure,
    pub(super) filter: Filter,
    pub(super) options: MeasureOptions,
    pub(super) note: Arc<Note>,
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("measure", &self.measure.name).finish_non_exhaustive()
    }
}

/// The super-traces of a session that a question is about.
#[derive(Clone)]
pub(super) enum Of {
    /// The session's own super-trace, or all hosts of its fleet.
    Own,
    /// One, by name.
    One(String),
    /// The differences between two, by name.
    Two(String, String),
}

impl Question {
    /// The rows of the answer. Boxed, since rustc would look through all that the future holds for 8 s in
    /// [`MeasureTable::scan`].
    pub(super) fn rows(self) -> BoxFuture<'static, Result<Batches>> {
        self.answer().boxed()
    }

    /// The columns of the answer.
    pub(super) fn schema(&self) -> Result<SchemaRef> {
        let Question { measure, filter, options, of, .. } = self;
        let session = open(&self.trace)?;
        let traces = match of {
            Of::Own if session.hosts().is_empty() => vec![&*session],
            Of::Own => session.hosts().into_iter().map(|(_, trace)| trace).collect(),
            Of::One(name) => vec![named(&session, ("trace", measure), name)?],
            Of::Two(a, b) => {
                vec![named(&session, ("a", measure), a)?, named(&session, ("b", measure), b)?]
            }
        };
        let trace = if matches!(of, Of::Own) { &*session } else { traces[0] };
        let filter = &level::common(&traces, filter, options.by).map_err(|error| in_sql(measure, error))?;
        if !matches!(of, Of::Own) && elsewhere::of(&session).is_some() {
            return plan_err!(
                "{}: a cluster is asked about the session's own super-trace: expected no trace and no compare",
                measure.name
            );
        }
        if measure.subject == Subject::Pair && options.pair.is_none() {
            return plan_err!("{}: expected from_event and to_event, found neither", measure.name);
        }
        // The columns do not depend on which threads are selected, but on whether any are.
        let level = level::level(trace, measure.name, filter, options.by);
        let level = level.map_err(|error| in_sql(measure, error))?;
        let are_threads = !filter.processes.is_empty() && level == Some(Level::Threads);
        let threads = (are_threads || !filter.threads.is_empty()).then(|| BTreeSet::from([0]));
        let request = request(trace, measure.name, filter, threads, options);
        let mut request = request.map_err(|error| in_sql(measure, error))?;
        if let Of::Two(..) = of {
            request = request_to_compare(measure, &request);
        }
        let empty = measure.answer(&nothing(trace.has_threads(), &request), &request);
        let empty = empty.map_err(DataFusionError::Plan)?;
        let columns = match of {
            Of::Two(..) => columns_to_compare(&empty),
            Of::Own | Of::One(_) => empty.columns,
        };
        let host = session.hosts().first().map(|(name, _)| *name).filter(|_| matches!(of, Of::Own));
        let rows = to_batch(&Answer::new(columns), trace.tick_hz(), trace.first_tick())?;
        Ok(of_host(host, rows)?.schema())
    }

    /// The rows of all hosts.
    async fn answer(self) -> Result<Batches> {
        let Question { measure, filter, options, note, .. } = &self;
        let session = open(&self.trace)?;
        let named = |argument, name| named(&session, (argument, measure), name);
        let tell = |of: &str, text: &str, is_about_gaps| {
            note(MeasureNote { text: format!("{of}: {text}"), is_about_gaps })
        };
        let wrong = |error| in_sql(measure, error);
        let answers = match &self.of {
            Of::Own => {
                let OfHosts { answers, notes } =
                    measure_hosts(&session, measure, filter, options).await.map_err(wrong)?;
                notes.iter().for_each(|text| tell(measure.name, text, false));
                answers
            }
            Of::One(name) => {
                let trace = named("trace", name)?;
                let measured = super::measure(trace, measure, filter, options).await.map_err(wrong)?;
                vec![OfHost { host: None, trace, measured }]
            }
            Of::Two(a, b) => {
                let (trace, other) = (named("a", a)?, named("b", b)?);
                let measured =
                    compare_traces((trace, other), measure, filter, options).await.map_err(wrong)?;
                vec![OfHost { host: None, trace, measured }]
            }
        };
        let mut parts = VecDeque::new();
        for OfHost { host, trace, measured } in answers {
            let of =
                host.map_or_else(|| measure.name.to_string(), |host| format!("{} of {host}", measure.name));
            measured.answer.notes.iter().for_each(|text| tell(&of, text, false));
            if measured.gaps > 0 {
                tell(&of, &gaps_note(measured.gaps), true);
            }
            let host = host.map(str::to_string);
            let (tick_hz, first) = (trace.tick_hz(), trace.first_tick());
            parts.push_back(OfTrace { host, answer: measured.answer, tick_hz, first });
        }
        Ok(Batches { parts, at: 0 })
    }
}

fn open(trace: &Weak<SuperTrace>) -> Result<Arc<SuperTrace>> {
    trace.upgrade().ok_or_else(|| DataFusionError::External("the super-trace has been closed".into()))
}

/// The super-trace of a session that an argument names.
fn named<'t>(
    session: &'t SuperTrace,
    (argument, measure): (&str, &Measure),
    name: &str,
) -> Result<&'t SuperTrace> {
    if let Some((_, trace)) = session.named().find(|(other, _)| *other == name) {
        return Ok(trace);
    }
    let names: Vec<&str> = session.named().map(|(name, _)| name).collect();
    let expected = match names.is_empty() {
        true => "this session has one super-trace, which has no name: expected none".to_string(),
        false => format!("expected {}", names.join(", ")),
    };
    let error = format!("{}: {argument}: {expected}, found {name}", measure.name);
    Err(DataFusionError::External(Box::new(sigmund_sql::Error::wrong_query(error))))
}

/// Rows per batch, as in DataFusion's own sources.
const BATCH: usize = 8192;

/// The rows of answers in small batches. Each is made when it is asked for: as columns of Arrow, millions of rows take several times
/// the memory.
pub(super) struct Batches {
    parts: VecDeque<OfTrace>,
    /// How many rows of the first part were taken.
    at: usize,
}

/// The answer about one super-trace.
struct OfTrace {
    host: Option<String>,
    answer: Answer,
    tick_hz: Option<Hertz>,
    first: Option<Ticks>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            let OfTrace { host, answer, tick_hz, first } = self.parts.front()?;
            let rows = self.at..answer.rows.len().min(self.at + BATCH);
            if !rows.is_empty() {
                self.at = rows.end;
                let batch = rows_to_batch(answer, rows, *tick_hz, *first);
                return Some(batch.map_err(Into::into).and_then(|batch| of_host(host.as_deref(), batch)));
            }
            self.parts.pop_front();
            self.at = 0;
        }
    }
}
