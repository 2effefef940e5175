//! Reads rows of `syscalls`, `interrupts`, `spans`, `locks`, `wakeups` and `counters`.

use std::{collections::HashMap, fmt::Write, sync::Arc};

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{DataType, Int32Type},
};
use sigmund_model::{Context, EndReason, Level, WaitKind};
use sigmund_query::Window;

use super::{
    by_begin::{Row, RowReader, cut, number},
    replayer::Replayer,
    rows::{ActorNumber, CounterRow, HoldRow, QueueNumber, SliceRow, SliceTrack, WakeupRow},
};
use crate::{Error, timeline::SliceKind};

/// Maximum number of names in the cache of a [`SliceReader`].
const MAX_NAMES: usize = 1 << 16;

impl Row for SliceRow {
    fn begin(&self) -> i64 {
        self.from
    }

    fn replay(self, replayer: &mut Replayer<'_>) -> Result<(), Error> {
        replayer.slice(&self)
    }
}

/// Reads slices. Equal names share their memory.
pub(super) struct SliceReader {
    table: &'static str,
    window: Window,
    names: HashMap<Arc<str>, (), foldhash::fast::RandomState>,
    name: String,
}

impl SliceReader {
    pub(super) fn new(table: &'static str, window: Window) -> SliceReader {
        SliceReader { table, window, names: HashMap::default(), name: String::new() }
    }

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

impl Row for HoldRow {
    fn begin(&self) -> i64 {
        self.from
    }

    fn replay(self, replayer: &mut Replayer<'_>) -> Result<(), Error> {
        replayer.hold(&self)
    }
}

pub(super) struct HoldReader {
    pub(super) window: Window,
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

impl Row for WakeupRow {
    fn begin(&self) -> i64 {
        self.at
    }

    fn replay(self, replayer: &mut Replayer<'_>) -> Result<(), Error> {
        replayer.wakeup(&self)
    }
}

pub(super) struct WakeupReader {
    pub(super) window: Window,
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

impl Row for CounterRow {
    fn begin(&self) -> i64 {
        self.at
    }

    fn replay(self, replayer: &mut Replayer<'_>) -> Result<(), Error> {
        replayer.counter(&self)
    }
}

pub(super) struct CounterReader;

impl CounterReader {
    pub(super) fn row(batch: &RecordBatch, row: usize) -> Option<CounterRow> {
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
