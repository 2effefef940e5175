//! Rows of `syscalls`, `interrupts`, `spans`, `locks`, `wakeups` and `counters`.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, HashMap},
    fmt::Write,
    sync::Arc,
};

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{DataType, Int32Type},
};
use datafusion::logical_expr::{Expr, ident, lit};
use futures::StreamExt;
use sigmund_model::{
    Context, EndReason, Level, WaitKind,
    tables::{COUNTERS, INTERRUPTS, LOCKS, SPANS, SYSCALLS, Table, WAKEUPS},
};
use sigmund_query::{Filter, Window, number_in};
use sigmund_sql::SuperTrace;

use super::{
    by_begin::{ByBegin, Row, RowReader, RowSource, Selection, cut, has_column, number},
    replayer::Replayer,
};
use crate::{
    Error,
    timeline::{Actors, SliceKind},
};

/// Maximum number of names in the cache of a [`SliceReader`].
const MAX_NAMES: usize = 1 << 16;

/// The number of an LWP or a user thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ActorNumber {
    Lwp(i64),
    Thread(i64),
}

impl ActorNumber {
    /// The user thread if there is one, otherwise the LWP.
    fn most_specific(thread: Option<i64>, lwp: Option<i64>) -> Option<ActorNumber> {
        thread.map(ActorNumber::Thread).or(lwp.map(ActorNumber::Lwp))
    }
}

/// The sources of all tables of intervals that a filter selects.
pub(super) async fn intervals(
    trace: &SuperTrace,
    filter: &Filter,
    actors: &Actors,
    window: &Window,
) -> Result<Vec<Box<dyn RowSource>>, Error> {
    let tables = IntervalTables { trace, filter, actors, window };
    let left_out = super::left_out_tables(trace);
    let is_in_trace = |table: &Table| !left_out.iter().any(|left_out| left_out.name == table.name);
    let mut sources: Vec<Box<dyn RowSource>> = Vec::new();
    let (kernel, user) = (filter.level != Some(Level::User), filter.level != Some(Level::Kern));
    for (table, is_selected) in [(&SYSCALLS, kernel), (&INTERRUPTS, kernel), (&SPANS, user)] {
        if is_selected && is_in_trace(table) {
            sources.push(tables.slices(table).await?);
        }
    }
    if user && is_in_trace(&LOCKS) {
        sources.push(tables.holds().await?);
    }
    if is_in_trace(&WAKEUPS) {
        sources.push(tables.wakeups().await?);
    }
    if is_in_trace(&COUNTERS) {
        sources.push(tables.counters().await?);
    }
    Ok(sources)
}

/// Opens the tables of intervals.
struct IntervalTables<'a> {
    trace: &'a SuperTrace,
    filter: &'a Filter,
    actors: &'a Actors,
    window: &'a Window,
}

impl IntervalTables<'_> {
    async fn slices(&self, table: &'static Table) -> Result<Box<dyn RowSource>, Error> {
        let (tracks, columns) = match table.name {
            "syscalls" => (self.actors.lwps.len(), ["lwp", "name", "number", "end_reason"].as_slice()),
            "interrupts" => {
                (self.actors.cpus.len(), ["cpu", "name", "number", "end_reason", "kind", "depth"].as_slice())
            }
            _ => (
                self.actors.threads.len(),
                ["thread", "name", "lwp", "end_reason", "kind", "depth"].as_slice(),
            ),
        };
        let selection = self.selection(table, (ident("ts_tick"), ident("dur_tick")), columns, tracks)?;
        let reader = SliceReader {
            table: table.name,
            window: *self.window,
            names: HashMap::default(),
            name: String::new(),
        };
        Ok(Box::new(ByBegin::open(self.trace, selection, reader).await?))
    }

    async fn holds(&self) -> Result<Box<dyn RowSource>, Error> {
        // A row with a hold has a wait, which may be 0. The hold begins when the wait ends.
        let taken = ident("ts_tick") + ident("wait_tick");
        let columns = ["thread", "lwp", "object", "kind", "end_reason"];
        let mut selection =
            self.selection(&LOCKS, (taken, ident("hold_tick")), &columns, self.actors.threads.len())?;
        selection.conditions.push(ident("hold_tick").is_not_null());
        Ok(Box::new(ByBegin::open(self.trace, selection, HoldReader { window: *self.window }).await?))
    }

    async fn wakeups(&self) -> Result<Box<dyn RowSource>, Error> {
        let columns = ["level", "context", "waker_lwp", "waker_thread", "lwp", "thread", "cpu"];
        let mut selection = self.selection(
            &WAKEUPS,
            (ident("ts_tick"), ident("latency_tick")),
            &columns,
            self.actors.lwps.len() + self.actors.threads.len(),
        )?;
        if let Some(level) = self.filter.level {
            selection.conditions.push(ident("level").eq(lit(level.name())));
        }
        Ok(Box::new(ByBegin::open(self.trace, selection, WakeupReader { window: *self.window }).await?))
    }

    async fn counters(&self) -> Result<Box<dyn RowSource>, Error> {
        let no_length = lit(0i64);
        let columns = ["kind", "cpu", "pid", "value"];
        let tracks = self.actors.cpus.len() + self.actors.processes.len();
        let mut selection = self.selection(&COUNTERS, (ident("ts_tick"), no_length), &columns, tracks)?;
        // The replay leaves out counters of CPUs and processes that are not actors.
        selection.conditions.clear();
        match self.filter.level {
            Some(Level::Kern) => selection.conditions.push(ident("kind").eq(lit("run-queue"))),
            Some(Level::User) => selection.conditions.push(ident("kind").eq(lit("ready-queue"))),
            None => {}
        }
        Ok(Box::new(ByBegin::open(self.trace, selection, CounterReader).await?))
    }

    /// Selects rows by the filter's LWPs, user threads and CPUs, if the table has columns for them.
    fn selection(
        &self,
        table: &'static Table,
        interval: (Expr, Expr),
        columns: &[&str],
        tracks: usize,
    ) -> Result<Selection<'_>, Error> {
        let in_any = |names: &[&str], numbers: Vec<i64>| {
            let present = names.iter().filter(|name| has_column(table, name));
            present.map(|name| number_in(name, numbers.iter().copied())).reduce(Expr::or)
        };
        let mut conditions = Vec::new();
        if !self.filter.lwps.is_empty() {
            let lwps = self.filter.lwps.iter().map(|lwp| lwp.0.into()).collect();
            conditions.extend(in_any(&["lwp", "waker_lwp"], lwps));
        }
        if let Some(threads) = self.filter.thread_numbers(self.trace)? {
            let threads = threads.iter().map(|thread| thread.0 as i64).collect();
            conditions.extend(in_any(&["thread", "waker_thread"], threads));
        }
        if !self.filter.cpus.is_empty() {
            let cpus = self.filter.cpus.iter().map(|cpu| cpu.0.into()).collect();
            conditions.extend(in_any(&["cpu"], cpus));
        }
        let columns = columns.iter().map(|name| ident(*name)).collect();
        Ok(Selection { table, conditions, interval, columns, window: self.window, tracks })
    }
}

/// A system call, an interrupt, a span or a function.
#[derive(Clone, Debug)]
pub(super) struct SliceRow {
    pub(super) from: i64,
    pub(super) to: i64,
    depth: i64,
    pub(super) kind: SliceKind,
    pub(super) track: SliceTrack,
    pub(super) name: Arc<str>,
    /// Whether its end was recorded.
    pub(super) is_complete: bool,
}

/// The track of a slice, by the number of the CPU, LWP or user thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SliceTrack {
    Cpu(i64),
    Actor(ActorNumber),
}

impl PartialEq for SliceRow {
    fn eq(&self, other: &SliceRow) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SliceRow {}

impl PartialOrd for SliceRow {
    fn partial_cmp(&self, other: &SliceRow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Sorts by begin; enclosing slices first.
impl Ord for SliceRow {
    fn cmp(&self, other: &SliceRow) -> Ordering {
        let key = |row: &SliceRow| (row.from, Reverse(row.to), row.depth, row.track);
        key(self).cmp(&key(other))
    }
}

impl Row for SliceRow {
    fn begin(&self) -> i64 {
        self.from
    }

    fn replay(self, replayer: &mut Replayer<'_>) -> Result<(), Error> {
        replayer.slice(&self)
    }
}

/// Reads slices. Equal names share their memory.
struct SliceReader {
    table: &'static str,
    window: Window,
    names: HashMap<Arc<str>, (), foldhash::fast::RandomState>,
    name: String,
}

impl SliceReader {
    fn shared(&mut self) -> Arc<str> {
        if let Some((name, ())) = self.names.get_key_value(self.name.as_str()) {
            return Arc::clone(name);
        }
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        let name: Arc<str> = self.name.as_str().into();
        self.names.insert(Arc::clone(&name), ());
        name
    }
}

impl RowReader for SliceReader {
    type Row = SliceRow;

    fn read(&mut self, batch: &RecordBatch, is_wanted: &dyn Fn(usize) -> bool, rows: &mut Vec<SliceRow>) {
        for row in (0..batch.num_rows()).filter(|row| is_wanted(*row)) {
            let Some(begin) = number(batch, 0, row) else { continue };
            let Some((from, to)) = cut(&self.window, begin, number(batch, 1, row)) else { continue };
            let (name, end_reason) = (text(batch, 3, row), text(batch, 5, row));
            let is_complete = matches!(end_reason, Some("returned" | "exit"));
            let number_of = number(batch, 4, row);
            self.name.clear();
            let (track, kind, depth) = match self.table {
                "syscalls" => {
                    push_name(&mut self.name, name, number_of);
                    let Some(lwp) = number(batch, 2, row) else { continue };
                    (SliceTrack::Actor(ActorNumber::Lwp(lwp)), SliceKind::Syscall, 0)
                }
                "interrupts" => {
                    let Some(cpu) = number(batch, 2, row) else { continue };
                    let kind = text(batch, 6, row).unwrap_or_default();
                    push_interrupt(&mut self.name, kind, name, number_of);
                    let slice_kind = if kind == "softirq" { SliceKind::Softirq } else { SliceKind::Irq };
                    (SliceTrack::Cpu(cpu), slice_kind, number(batch, 7, row).unwrap_or(0))
                }
                _ => {
                    push_name(&mut self.name, name, None);
                    let actor = ActorNumber::most_specific(number(batch, 2, row), number_of);
                    let Some(actor) = actor else { continue };
                    let is_span = text(batch, 6, row) == Some("span");
                    let kind = if is_span { SliceKind::Span } else { SliceKind::Function };
                    (SliceTrack::Actor(actor), kind, number(batch, 7, row).unwrap_or(0))
                }
            };
            let name = self.shared();
            rows.push(SliceRow { from, to, depth, kind, track, name, is_complete });
        }
    }
}

/// Appends the name, or the number if there is no name.
fn push_name(out: &mut String, name: Option<&str>, number: Option<i64>) {
    match (name, number) {
        (Some(name), _) => out.push_str(name),
        (None, Some(number)) => drop(write!(out, "{number}")),
        (None, None) => out.push('?'),
    }
}

/// Appends `irq 24 eth0`, `TIMER`, `local_timer`, `nmi`.
fn push_interrupt(out: &mut String, kind: &str, name: Option<&str>, number: Option<i64>) {
    match (kind, name, number) {
        ("irq", name, Some(number)) => {
            let _ = write!(out, "irq {number}");
            if let Some(name) = name {
                let _ = write!(out, " {name}");
            }
        }
        ("softirq", ..) => push_name(out, name, number),
        (kind, name, _) => out.push_str(name.unwrap_or(kind)),
    }
}

/// A lock that is held, from its acquisition to its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HoldRow {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) owner: ActorNumber,
    pub(super) object: i64,
    /// The number of its [`WaitKind`].
    pub(super) kind: u8,
    pub(super) is_complete: bool,
}

impl Row for HoldRow {
    fn begin(&self) -> i64 {
        self.from
    }

    fn replay(self, replayer: &mut Replayer<'_>) -> Result<(), Error> {
        replayer.hold(&self)
    }
}

struct HoldReader {
    window: Window,
}

impl RowReader for HoldReader {
    type Row = HoldRow;

    fn read(&mut self, batch: &RecordBatch, is_wanted: &dyn Fn(usize) -> bool, rows: &mut Vec<HoldRow>) {
        for row in (0..batch.num_rows()).filter(|row| is_wanted(*row)) {
            let Some(begin) = number(batch, 0, row) else { continue };
            let Some((from, to)) = cut(&self.window, begin, number(batch, 1, row)) else { continue };
            let owner = ActorNumber::most_specific(number(batch, 2, row), number(batch, 3, row));
            let kind = text(batch, 5, row).and_then(WaitKind::from_name);
            let (Some(owner), Some(object), Some(kind)) = (owner, number(batch, 4, row), kind) else {
                continue;
            };
            let is_complete = text(batch, 6, row) == Some(EndReason::Released.name());
            rows.push(HoldRow { from, to, owner, object, kind: kind.number(), is_complete });
        }
    }
}

/// A wakeup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WakeupRow {
    pub(super) at: i64,
    pub(super) woken: ActorNumber,
    /// Whether the waking CPU was in an interrupt, or idle.
    pub(super) in_interrupt: bool,
    pub(super) waker_lwp: Option<i64>,
    pub(super) waker_thread: Option<i64>,
    pub(super) cpu: Option<i64>,
}

impl Row for WakeupRow {
    fn begin(&self) -> i64 {
        self.at
    }

    fn replay(self, replayer: &mut Replayer<'_>) -> Result<(), Error> {
        replayer.wakeup(&self)
    }
}

struct WakeupReader {
    window: Window,
}

impl RowReader for WakeupReader {
    type Row = WakeupRow;

    fn read(&mut self, batch: &RecordBatch, is_wanted: &dyn Fn(usize) -> bool, rows: &mut Vec<WakeupRow>) {
        let first = self.window.from.unwrap_or(i64::MIN);
        for row in (0..batch.num_rows()).filter(|row| is_wanted(*row)) {
            let Some(at) = number(batch, 0, row).filter(|at| *at >= first) else { continue };
            let is_unpark = text(batch, 2, row) == Some(Level::User.name());
            let woken = match is_unpark {
                true => number(batch, 7, row).map(ActorNumber::Thread),
                false => number(batch, 6, row).map(ActorNumber::Lwp),
            };
            let Some(woken) = woken else { continue };
            let context = text(batch, 3, row);
            let is_task = context.is_none_or(|context| context == Context::Task.name());
            rows.push(WakeupRow {
                at,
                woken,
                in_interrupt: !is_task,
                waker_lwp: number(batch, 4, row),
                waker_thread: number(batch, 5, row),
                cpu: number(batch, 8, row),
            });
        }
    }
}

/// A new value of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CounterRow {
    pub(super) at: i64,
    pub(super) queue: QueueNumber,
    pub(super) value: i64,
}

/// A queue, by the number of its CPU or process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueNumber {
    Run(i64),
    Ready(Option<i64>),
}

impl Row for CounterRow {
    fn begin(&self) -> i64 {
        self.at
    }

    fn replay(self, replayer: &mut Replayer<'_>) -> Result<(), Error> {
        replayer.counter(&self)
    }
}

struct CounterReader;

impl CounterReader {
    fn row(batch: &RecordBatch, row: usize) -> Option<CounterRow> {
        let queue = match text(batch, 2, row)? {
            "run-queue" => QueueNumber::Run(number(batch, 3, row)?),
            "ready-queue" => QueueNumber::Ready(number(batch, 4, row)),
            _ => return None,
        };
        Some(CounterRow { at: number(batch, 0, row)?, queue, value: number(batch, 5, row)? })
    }
}

impl RowReader for CounterReader {
    type Row = CounterRow;

    fn read(&mut self, batch: &RecordBatch, is_wanted: &dyn Fn(usize) -> bool, rows: &mut Vec<CounterRow>) {
        let wanted = (0..batch.num_rows()).filter(|row| is_wanted(*row));
        rows.extend(wanted.filter_map(|row| CounterReader::row(batch, row)));
    }
}

/// A value of a column of texts or dictionary words.
fn text(batch: &RecordBatch, column: usize, row: usize) -> Option<&str> {
    let column = batch.column(column);
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Dictionary(..) => {
            let words = column.as_dictionary::<Int32Type>();
            Some(words.values().as_string::<i32>().value(words.key(row)?))
        }
        _ => Some(column.as_string::<i32>().value(row)),
    }
}

/// The last values of all counters before a window.
pub(super) async fn counters_before(
    trace: &SuperTrace,
    filter: &Filter,
    window: &Window,
) -> Result<BTreeMap<QueueNumber, i64>, Error> {
    let mut values = BTreeMap::new();
    let (Some(first), Some(from)) = (trace.first_tick(), window.from) else { return Ok(values) };
    if from <= first.0 as i64 {
        return Ok(values);
    }
    let wrong = |e| Error::from(trace.error(COUNTERS.name, e));
    let columns = ["ts_tick", "dur_tick", "kind", "cpu", "pid", "value"];
    let columns = columns.map(|name| if name == "dur_tick" { lit(0i64).alias(name) } else { ident(name) });
    let rows = trace.raw(&COUNTERS).await?.filter(ident("ts_tick").lt(lit(from))).map_err(wrong)?;
    let rows = rows.select(columns.to_vec()).map_err(wrong)?;
    let mut batches = trace.in_file_order(rows).execute_stream().await.map_err(wrong)?;
    while let Some(batch) = batches.next().await.transpose().map_err(wrong)? {
        let rows = (0..batch.num_rows()).filter_map(|row| CounterReader::row(&batch, row));
        values.extend(rows.map(|row| (row.queue, row.value)));
    }
    values.retain(|queue, _| match queue {
        QueueNumber::Run(_) => filter.level != Some(Level::User),
        QueueNumber::Ready(_) => filter.level != Some(Level::Kern),
    });
    Ok(values)
}
