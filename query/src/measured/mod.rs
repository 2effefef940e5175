//! The measures of `sigmund-measures` on a super-trace: by filters, or as table functions of SQL.

mod answer_table;
mod batch;
mod compared;
mod described;
mod elsewhere;
mod exec;
mod gaps;
mod hosts;
mod level;
mod load;
mod spill;
mod table_function;
mod words;

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use sigmund_measures::{
    Answer, By, Canvas, History, Interval, Level, Measure, Needs, Request, Sliced, Subject,
};
use sigmund_model::tables::{SYSCALLS, Table, WAKEUPS};
use sigmund_sql::SuperTrace;

use crate::{Error, Filter, SelectedLwps, Selector, nearest_values, reactivity::known};

use load::{About, Known, Memory, Order, Slices, Stopped};

pub use batch::to_batch;
pub use compared::compare_traces;
pub use described::{measure_arguments, measure_columns, measure_functions};
pub use elsewhere::{Elsewhere, measure_elsewhere};
pub use gaps::{count_gaps, gaps_note};
pub use hosts::{OfHost, OfHosts, measure_hosts};
pub use load::SliceSize;
pub use table_function::{MeasureNote, register_measures, register_measures_noting};
pub use words::Asked;

/// The options of a measure, apart from the filter.
#[derive(Clone, Debug, Default)]
pub struct MeasureOptions {
    /// The grouping: what a row of the answer is.
    pub by: Option<By>,
    /// How many worst cases to list.
    pub worst: usize,
    /// The span, function or lock that the question is about.
    pub subject: Option<String>,
    /// FROM and TO, if the question is about pairs of events.
    pub pair: Option<(Selector, Selector)>,
    /// Whether the answer also has the lengths that its rows summarize.
    pub with_lengths: bool,
    /// How a timeline is drawn.
    pub canvas: Canvas,
}

impl MeasureOptions {
    fn about(&self) -> About<'_> {
        let pair = self.pair.as_ref().map(|(from, to)| (from, to));
        About { subject: self.subject.as_deref(), pair, ..About::default() }
    }
}

/// An answer, and the number of gaps in its window.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The answer.
    pub answer: Answer,
    /// The number of gaps in the window: places where events are missing that analyses depend on.
    pub gaps: usize,
}

/// Computes a measure.
///
/// # Errors
/// When the filter selects events, which measures do not support, or a level that does not fit the rows; when it names
/// a thread, LWP or CPU that the trace does not have; when the measure refuses the request; when the trace cannot be
/// read.
pub fn measure<'a>(
    trace: &'a SuperTrace,
    measure: &'a Measure,
    filter: &'a Filter,
    options: &'a MeasureOptions,
) -> BoxFuture<'a, Result<Measured, Error>> {
    measure_in_slices(trace, measure, filter, options, SliceSize::default())
}

/// [`measure`], with slices of this size. The answer does not depend on it.
///
/// # Errors
/// As [`measure`].
#[doc(hidden)]
pub fn measure_in_slices<'a>(
    trace: &'a SuperTrace,
    measure: &'a Measure,
    filter: &'a Filter,
    options: &'a MeasureOptions,
    size: SliceSize,
) -> BoxFuture<'a, Result<Measured, Error>> {
    Box::pin(async move {
        let request = asked(trace, (measure.name, measure.needs), filter, options).await?;
        let window = loaded_window(trace, measure.first_needs(&request), &request).await?;
        let mut measured = computed(trace, measure, (&request, window), options, (size, None)).await?.0;
        measured.answer.notes.extend(selection_notes(trace, measure.name, filter, &request)?);
        if let Some((from, to)) = options.pair.as_ref().filter(|_| has_no_pair(&measured.answer)) {
            measured.answer.notes.extend(nearest_values(trace, from).await?);
            measured.answer.notes.extend(nearest_values(trace, to).await?);
        }
        Ok(measured)
    })
}

/// Whether an answer has no pair of events: it has no rows, or all FROM events are unmatched.
fn has_no_pair(answer: &Answer) -> bool {
    let (row, what) = (answer.column("row"), answer.column("what"));
    let Some((row, what)) = row.zip(what) else { return answer.rows.is_empty() };
    let count = answer.column("count");
    let is_pairs = |at: &usize| {
        answer.rows.cell(*at, row) == "pairs".into() && answer.rows.cell(*at, what) == "all".into()
    };
    let of_pairs = (0..answer.rows.len()).find(is_pairs).zip(count);
    of_pairs.is_none_or(|(at, count)| answer.rows.cell(at, count) == 0_i64.into())
}

/// Computes a measure. Also returns the threads and gaps that were read, for the next call. With these given, the gaps
/// of the answer are not counted.
async fn computed(
    trace: &SuperTrace,
    measure: &Measure,
    (request, window): (&Request, load::Window),
    options: &MeasureOptions,
    (size, mut known): (SliceSize, Option<Known>),
) -> Result<(Measured, Known), Error> {
    let refused = |message| Error::argument(format!("{}: {message}", measure.name));
    let is_first = known.is_none();
    if measure.subject == Subject::Pair && options.pair.is_none() {
        return Err(refused("expected two events, FROM and TO, found neither".to_string()));
    }
    let spill = spill::to_temporary_file();
    let memory = Memory::of(trace, measure.name).spilling(&spill);
    let threads = request.threads.as_ref().filter(|_| is_of_threads(request));
    let about = About { threads, ..options.about() };
    // If the rows are not sorted as small slices require, everything is computed again as one slice.
    for size in [size, SliceSize::WHOLE] {
        let mut computed = measure.start(request);
        loop {
            // In a pass over some times, it matters what there is in all of the window.
            let is_of_times = computed.times().is_some();
            let window = if is_of_times { load::Window::whole(request.window) } else { window };
            let (slices, order);
            (slices, computed, order) =
                pass(trace, measure, (computed, about), window, (size, memory, known)).await?;
            if order == Order::Broken {
                known = Some(slices.into_known());
                break;
            }
            let shared = slices.shared();
            if computed.is_done(shared).map_err(refused)? {
                let mut answer = computed.finish(shared).map_err(refused)?;
                memory.check()?;
                answer.notes.extend(slices.left_out.iter().map(|table| left_out_note(table)));
                answer.notes.extend(not_recorded(trace, measure, &slices.left_out));
                let gaps = if is_first { gaps::count(trace, shared, request).await? } else { 0 };
                return Ok((Measured { answer, gaps }, slices.into_known()));
            }
            known = Some(slices.into_known());
        }
    }
    Err(refused("expected rows in the order of their ends, found others".to_string()))
}

/// Adds all slices to a measure. Returns the slices, the measure, and whether the rows were sorted as slices of this
/// size require.
async fn pass(
    trace: &SuperTrace,
    measure: &Measure,
    (computed, about): (Box<dyn Sliced>, About<'_>),
    window: load::Window,
    (size, memory, known): (SliceSize, Memory<'_>, Option<Known>),
) -> Result<(Slices, Box<dyn Sliced>, Order), Error> {
    let stopped = |stopped| match stopped {
        Stopped::Refused(message) => Error::argument(format!("{}: {message}", measure.name)),
        Stopped::Failed(error) => error,
    };
    let needs = computed.needs().unwrap_or(measure.needs);
    let times = computed.times();
    let about = About { times: times.as_deref(), ..about };
    // In these times, other threads matter than those that were asked about.
    let known = known.filter(|_| times.is_none());
    let mut slices = Slices::open(trace, needs, window, about, known).await?;
    let of_rows = window.of_rows;
    let (mut computed, mut order) =
        slices.each(of_rows, of_rows, (size, memory), computed).await.map_err(stopped)?;
    let before = Interval { from: i64::MIN, to: of_rows.from };
    if order == Order::Kept && computed.looks_back() && before.from < before.to {
        (computed, order) = slices.each(before, of_rows, (size, memory), computed).await.map_err(stopped)?;
    }
    Ok((slices, computed, order))
}

/// What was made of a history.
#[derive(Clone, Debug)]
pub struct Made<T> {
    /// The result.
    pub result: T,
    /// Notes about it.
    pub notes: Vec<String>,
    /// The number of gaps, as in [`Measured`].
    pub gaps: usize,
}

/// Calls `of` with the history that a filter selects, in one piece: the tables `needs`, and of these all that `needs` does
/// not leave out. Tests compare with it what slices leave out.
///
/// # Errors
/// As [`measure`].
#[doc(hidden)]
pub async fn with_history<T>(
    trace: &SuperTrace,
    (name, needs): (&str, Needs),
    filter: &Filter,
    options: &MeasureOptions,
    of: impl FnOnce(&History, &Request) -> Result<T, String>,
) -> Result<Made<T>, Error> {
    let Loaded { history, request, mut notes } = loaded(trace, (name, needs), filter, options).await?;
    let result = of(&history, &request).map_err(|message| Error::argument(format!("{name}: {message}")))?;
    notes.extend(selection_notes(trace, name, filter, &request)?);
    let gaps = gaps::count(trace, &history, &request).await?;
    Ok(Made { result, notes, gaps })
}

/// The history that a filter selects.
struct Loaded {
    history: History,
    request: Request,
    /// On what it lacks.
    notes: Vec<String>,
}

fn loaded<'a>(
    trace: &'a SuperTrace,
    (name, needs): (&'a str, Needs),
    filter: &'a Filter,
    options: &'a MeasureOptions,
) -> BoxFuture<'a, Result<Loaded, Error>> {
    Box::pin(async move {
        let request = asked(trace, (name, needs), filter, options).await?;
        let window = loaded_window(trace, needs, &request).await?;
        let memory = Memory::of(trace, name);
        let slices = Slices::open(trace, needs, window, options.about(), None).await?;
        let notes = slices.left_out.iter().map(|table| left_out_note(table)).collect();
        Ok(Loaded { history: slices.whole(memory).await?, request, notes })
    })
}

/// The request that a filter makes.
async fn asked(
    trace: &SuperTrace,
    (name, needs): (&str, Needs),
    filter: &Filter,
    options: &MeasureOptions,
) -> Result<Request, Error> {
    filter.check_known(trace).await?;
    let threads = match level::level(trace, name, filter, options.by)? {
        Some(Level::Threads) => filter.threads_of_processes(trace).await?,
        _ => filter.thread_numbers(trace)?,
    };
    let threads = threads.map(|threads| threads.iter().map(|thread| thread.0).collect());
    let mut request = request(trace, name, filter, threads, options)?;
    if let Some(subject) = &request.subject
        && needs.spans
        && (request.window != Interval::ALL || request.threads.is_some())
    {
        request.is_subject_known = known::is_span(trace, subject).await?;
    }
    if let Some(subject) = &request.subject
        && needs.locks
        && !needs.spans
    {
        known::check_lock(trace, subject).await?;
    }
    if let Some((from, to)) = &options.pair {
        known::check(trace, from).await?;
        known::check(trace, to).await?;
    }
    Ok(request)
}

/// The window that has to be loaded for a request.
async fn loaded_window(trace: &SuperTrace, needs: Needs, request: &Request) -> Result<load::Window, Error> {
    match &request.threads {
        // LWPs live before and after the threads that they carry, so this does not apply to rows of LWPs.
        Some(threads) if needs.only_lives && is_of_threads(request) => {
            load::within_lives(trace, threads, request.window, needs.before_lives).await
        }
        _ => Ok(load::Window::whole(request.window)),
    }
}

/// Whether a question about user threads is answered by what they did, and not by what LWPs did.
fn is_of_threads(request: &Request) -> bool {
    request.by != Some(By::Lwp) && request.level != Some(Level::Lwps)
}

fn left_out_note(table: &str) -> String {
    format!("the table {table} was left out of this super-trace: the answer lacks what depends on it")
}

/// Whether there are events of the kernel.
fn has_kernel_side(trace: &SuperTrace) -> bool {
    trace.info().get("kernel_events").is_some_and(|events| events != "0")
}

/// Notes about what the kernel trace lacks and the measure would have used. The measures themselves note missing
/// interrupts.
fn not_recorded(trace: &SuperTrace, measure: &Measure, left_out: &[&str]) -> Vec<String> {
    let lacks = |table: &Table| !left_out.contains(&table.name) && trace.row_count(table) == 0;
    let Needs { lwp_states, syscalls, wakeups, .. } = measure.needs;
    let mut notes = Vec::new();
    if !lwp_states || !has_kernel_side(trace) {
        return notes;
    }
    if syscalls && lacks(&SYSCALLS) {
        notes.push("No system calls are recorded, so it is not known which ones LWPs were in.".into());
    }
    if wakeups && lacks(&WAKEUPS) {
        notes.push("No wakeups are recorded: who woke whom is not known.".into());
    }
    let has = |name: &str| trace.event_types().iter().any(|event| event.events > 0 && event.ty.name == name);
    if wakeups && has("sched_wakeup") && !has("sched_waking") {
        notes.push(
            "sched_waking is not recorded: waits of LWPs for a CPU begin with sched_wakeup, a little later."
                .into(),
        );
    }
    notes
}

fn refuse_events(name: &str, filter: &Filter) -> Result<(), Error> {
    if filter.events.is_empty() {
        return Ok(());
    }
    let message = format!("{name}: this measure is about threads, not events: expected no event filter");
    Err(Error::argument(message))
}

/// Notes about the processes and LWPs that a filter selects.
fn selection_notes(
    trace: &SuperTrace,
    name: &str,
    filter: &Filter,
    request: &Request,
) -> Result<impl Iterator<Item = String>, Error> {
    let Request { level, by, .. } = request;
    let shared = lwps_of_level(trace, filter, *level)?.and_then(|lwps| lwps.note());
    let notes = [
        level::without_threads(trace, filter, *level)?,
        level::lwps_without_threads(trace, name, filter, (*level, *by))?,
        shared,
    ];
    Ok(notes.into_iter().flatten())
}

/// The LWPs that the request is limited to. User threads of processes may be on any LWP.
fn lwps_of_level(
    trace: &SuperTrace,
    filter: &Filter,
    level: Option<Level>,
) -> Result<Option<SelectedLwps>, Error> {
    match level {
        Some(Level::Threads) => {
            Filter { lwps: filter.lwps.clone(), ..Filter::default() }.selected_lwps(trace)
        }
        _ => filter.selected_lwps(trace),
    }
}

fn request(
    trace: &SuperTrace,
    name: &str,
    filter: &Filter,
    threads: Option<BTreeSet<u64>>,
    options: &MeasureOptions,
) -> Result<Request, Error> {
    refuse_events(name, filter)?;
    words::refuse_unused_options(name, options)?;
    let window = filter.window(trace)?;
    let level = level::level(trace, name, filter, options.by)?;
    let lwps = lwps_of_level(trace, filter, level)?;
    Ok(Request {
        window: Interval::new(
            window.from.unwrap_or(i64::MIN),
            // The end tick is included.
            window.to.map_or(i64::MAX, |to| to.saturating_add(1)),
        ),
        threads,
        lwps: lwps.map(|lwps| lwps.numbers().into_iter().map(|lwp| lwp.0).collect()),
        cpus: (!filter.cpus.is_empty()).then(|| filter.cpus.iter().map(|cpu| cpu.0).collect()),
        by: options.by,
        level,
        worst: options.worst,
        subject: options.subject.clone(),
        is_subject_known: false,
        is_of_pairs: options.pair.is_some(),
        with_lengths: options.with_lengths,
        canvas: options.canvas,
        has_user_threads: trace.has_threads(),
    })
}
