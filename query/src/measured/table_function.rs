//! Measures in SQL: `SELECT * FROM states(thread => 15, "by" => 'name')`.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use arrow::{
    array::{ArrayRef, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema},
};
use datafusion::{
    catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider},
    common::{Result, ScalarValue, plan_err},
    error::DataFusionError,
    logical_expr::Expr,
};
use sigmund_measures::{ALL, History, Interval, Life, Measure, Request, Span};
use sigmund_model::EndReason;
use sigmund_sql::{SuperTrace, nearest};

use super::{
    Asked,
    answer_table::{Of, Question, answer_table},
    words::refuse_unused,
};
use crate::{Error, ErrorKind};

/// Makes every measure a table function of the trace's session; `-` in its name is `_`.
///
/// Arguments have names: `thread`, `lwp`, `cpu` (a number, or a text with several), `from`, `to`, `by`, `worst`, `of`
/// (the span, function or lock that the measure is about), `from_event` and `to_event` (selectors of the two events
/// that it is about), `trace` (the name of one of several super-traces in the session). `compare` has the same
/// arguments, and also `measure`, `a` and `b`: the last two are names of super-traces.
pub fn register_measures(trace: &Arc<SuperTrace>) {
    register_measures_noting(trace, |_| {});
}

/// As [`register_measures`]. When an answer is computed, `note` is called with each note about it: what the trace lacks
/// for it, or that events are missing in its time.
pub fn register_measures_noting(trace: &Arc<SuperTrace>, note: impl Fn(MeasureNote) + Send + Sync + 'static) {
    let note: Arc<Note> = Arc::new(note);
    for measure in ALL {
        let function = MeasureFunction { trace: Arc::downgrade(trace), measure, note: note.clone() };
        trace.session().register_udtf(&measure.name.replace('-', "_"), Arc::new(function));
    }
    let function = CompareFunction { trace: Arc::downgrade(trace), note };
    trace.session().register_udtf(COMPARE, Arc::new(function));
}

/// A note about the answer of a measure in a query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeasureNote {
    /// The measure, and what there is to know about its answer.
    pub text: String,
    /// Whether it says that events are missing in the time of the answer.
    pub is_about_gaps: bool,
}

/// Receives the notes about answers.
pub(super) type Note = dyn Fn(MeasureNote) + Send + Sync;

struct MeasureFunction {
    /// Weak, because the session of the trace owns this function: a strong reference would be a cycle.
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
        let mut arguments = arguments(self.measure.name, args.exprs())?;
        let of = taken(&mut arguments, "trace").map_or(Of::Own, Of::One);
        self.question(of, arguments)
    }
}

impl MeasureFunction {
    fn question(&self, of: Of, arguments: Vec<(String, String)>) -> Result<Arc<dyn TableProvider>> {
        let (trace, measure, note) = (self.trace.clone(), self.measure, self.note.clone());
        let several = trace.upgrade().is_some_and(|trace| trace.named().next().is_some());
        let more: &[&str] = match of {
            Of::Two(..) => &["measure", "a", "b"],
            Of::Own | Of::One(_) if several => &["trace"],
            Of::Own | Of::One(_) => &[],
        };
        for (name, _) in &arguments {
            refuse_unused(measure, name, more).map_err(|error| in_sql(measure, error))?;
        }
        let (filter, options) = Asked { measure, arguments }.parse()?;
        answer_table(Question { trace, of, measure, filter, options, note })
    }
}

/// `compare(measure => 'states', a => 'before', b => 'after')`.
struct CompareFunction {
    trace: Weak<SuperTrace>,
    note: Arc<Note>,
}

impl fmt::Debug for CompareFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompareFunction").finish_non_exhaustive()
    }
}

impl TableFunctionImpl for CompareFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let mut arguments = arguments(COMPARE, args.exprs())?;
        let [measure, a, b] = ["measure", "a", "b"].map(|name| taken(&mut arguments, name));
        let (Some(a), Some(b)) = (a, b) else {
            return plan_err!("{COMPARE}: expected a and b, the names of two super-traces of this session");
        };
        if taken(&mut arguments, "worst").is_some() {
            return plan_err!(
                "{COMPARE}: expected the arguments of a measure but worst: it compares sums and percentiles"
            );
        }
        let name = measure.unwrap_or_else(|| "summary".into()).replace('_', "-");
        let Some(measure) = sigmund_measures::named(&name) else {
            let names: Vec<&str> = ALL.iter().map(|measure| measure.name).collect();
            let near = nearest(&name, names.iter().copied()).first().copied().unwrap_or_default();
            let names = names.join(", ");
            return plan_err!("{COMPARE}: measure: expected {names}, found {name}; nearest: {near}");
        };
        let of_measure = MeasureFunction { trace: self.trace.clone(), measure, note: self.note.clone() };
        of_measure.question(Of::Two(a, b), arguments)
    }
}

/// The name of the function that compares two super-traces.
pub(super) const COMPARE: &str = "compare";

/// The history of a trace in which nothing happened. An answer about it has the same columns as any other. It has a
/// user thread if the trace has any, the LWPs of the request, and a span with the requested name.
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

/// The rows, with a column for the name of their host.
pub(super) fn of_host(host: Option<&str>, rows: RecordBatch) -> Result<RecordBatch> {
    let Some(host) = host else { return Ok(rows) };
    let mut fields = vec![Arc::new(Field::new("host", DataType::Utf8, false))];
    fields.extend(rows.schema().fields().iter().cloned());
    let names: ArrayRef = Arc::new(StringArray::from(vec![host; rows.num_rows()]));
    let columns = [&[names], rows.columns()].concat();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Makes an error of the query. If it is about an option of the command, it names the SQL argument instead.
pub(super) fn in_sql(measure: &Measure, error: Error) -> DataFusionError {
    if error.kind() != ErrorKind::Argument {
        return DataFusionError::External(Box::new(error));
    }
    let (name, text) = (measure.name, error.to_string());
    let text = text.strip_prefix("--").unwrap_or(&text).replacen(" --to ", " to ", 1);
    let text = if text.starts_with(&format!("{name}: ")) { text } else { format!("{name}: {text}") };
    DataFusionError::External(Box::new(sigmund_sql::Error::wrong_query(text)))
}

/// Reads the pairs of names and values that the session makes of named arguments.
fn arguments(function: &str, exprs: &[Expr]) -> Result<Vec<(String, String)>> {
    let mut arguments = Vec::new();
    for pair in exprs.chunks(2) {
        let [Expr::Literal(ScalarValue::Utf8(Some(argument)), _), Expr::Literal(value, _)] = pair else {
            return plan_err!("{function}: expected arguments with names and constants, as in thread => 15");
        };
        arguments.push((argument.clone(), value.to_string()));
    }
    Ok(arguments)
}

/// Removes the first argument with this name, and returns its value.
fn taken(arguments: &mut Vec<(String, String)>, name: &str) -> Option<String> {
    let place = arguments.iter().position(|(other, _)| other == name)?;
    Some(arguments.remove(place).1)
}
