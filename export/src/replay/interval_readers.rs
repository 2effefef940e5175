//! Reads rows of `syscalls`, `interrupts`, `spans`, `locks`, `wakeups` and `counters`.

use std::{collections::HashMap, fmt::Write, sync::Arc};

use arrow::array::RecordBatch;
use sigmund_model::{Context, EndReason, Level, WaitKind};
use sigmund_query::Window;
use sigmund_sql::columns::{Small, Wide, Words};

use super::{
    by_begin::{Row, RowReader, cut},
    columns::{Numbers, Texts},
    replayer::Replayer,
    rows::{ActorNumber, CounterRow, HoldRow, QueueNumber, SliceRow, SliceTrack, WakeupRow},
};
use crate::timeline::SliceKind;

/// Maximum number of names in the cache of a [`SliceReader`].
const MAX_NAMES: usize = 1 << 16;

impl Row for SliceRow {
    fn begin(&self) -> i64 {
        self.from
    }

    fn replay(self, replayer: &mut Replayer<'_>) {
        replayer.slice(&self);
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
        let (begins, lengths) = (Wide::of(batch, 0), Wide::of(batch, 1));
        let (owners, names, numbers) = (Numbers::of(batch, 2), Texts::of(batch, 3), Numbers::of(batch, 4));
        let are_complete = Words::of(batch, 5, |word| matches!(word, "returned" | "exit"));
        let nesting = (self.table != "syscalls").then(|| (Texts::of(batch, 6), Small::of(batch, 7)));
        for row in (0..batch.num_rows()).filter(|row| is_wanted(*row)) {
            let Some(begin) = begins.get(row) else { continue };
            let Some((from, to)) = cut(&self.window, begin, lengths.get(row)) else { continue };
            let (owner, name, number_of) = (owners.get(row), names.get(row), numbers.get(row));
            let is_complete = are_complete.get(row).unwrap_or(false);
            self.name.clear();
            let (kind_word, depth) = match &nesting {
                Some((kinds, depths)) => (kinds.get(row).unwrap_or_default(), depths.or_zero(row).into()),
                None => ("", 0),
            };
            let (track, kind) = match self.table {
                "syscalls" => {
                    push_name(&mut self.name, name, number_of);
                    let Some(lwp) = owner else { continue };
                    (SliceTrack::Actor(ActorNumber::Lwp(lwp)), SliceKind::Syscall)
                }
                "interrupts" => {
                    let Some(cpu) = owner else { continue };
                    push_interrupt(&mut self.name, kind_word, name, number_of);
                    let is_softirq = kind_word == "softirq";
                    (SliceTrack::Cpu(cpu), if is_softirq { SliceKind::Softirq } else { SliceKind::Irq })
                }
                _ => {
                    push_name(&mut self.name, name, None);
                    let Some(actor) = ActorNumber::most_specific(owner, number_of) else { continue };
                    let is_span = kind_word == "span";
                    (SliceTrack::Actor(actor), if is_span { SliceKind::Span } else { SliceKind::Function })
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

    fn replay(self, replayer: &mut Replayer<'_>) {
        replayer.hold(&self);
    }
}

pub(super) struct HoldReader {
    pub(super) window: Window,
}

impl RowReader for HoldReader {
    type Row = HoldRow;

    fn read(&mut self, batch: &RecordBatch, is_wanted: &dyn Fn(usize) -> bool, rows: &mut Vec<HoldRow>) {
        let (begins, lengths) = (Wide::of(batch, 0), Wide::of(batch, 1));
        let (threads, lwps, objects) = (Wide::of(batch, 2), Small::of(batch, 3), Wide::of(batch, 4));
        let kinds = Words::of(batch, 5, |word| WaitKind::from_name(word).map(WaitKind::number));
        let are_complete = Words::of(batch, 6, |word| word == EndReason::Released.name());
        for row in (0..batch.num_rows()).filter(|row| is_wanted(*row)) {
            let Some(begin) = begins.get(row) else { continue };
            let Some((from, to)) = cut(&self.window, begin, lengths.get(row)) else { continue };
            let owner = ActorNumber::most_specific(threads.get(row), lwps.get(row).map(i64::from));
            let (Some(owner), Some(object), Some(Some(kind))) = (owner, objects.get(row), kinds.get(row))
            else {
                continue;
            };
            let is_complete = are_complete.get(row).unwrap_or(false);
            rows.push(HoldRow { from, to, owner, object, kind, is_complete });
        }
    }
}

impl Row for WakeupRow {
    fn begin(&self) -> i64 {
        self.at
    }

    fn replay(self, replayer: &mut Replayer<'_>) {
        replayer.wakeup(&self);
    }
}

pub(super) struct WakeupReader {
    pub(super) window: Window,
}

impl RowReader for WakeupReader {
    type Row = WakeupRow;

    fn read(&mut self, batch: &RecordBatch, is_wanted: &dyn Fn(usize) -> bool, rows: &mut Vec<WakeupRow>) {
        let first = self.window.from.unwrap_or(i64::MIN);
        let (instants, lwps, threads) = (Wide::of(batch, 0), Small::of(batch, 6), Wide::of(batch, 7));
        let are_unparks = Words::of(batch, 2, |word| word == Level::User.name());
        let are_tasks = Words::of(batch, 3, |word| word == Context::Task.name());
        let (waker_lwps, waker_threads) = (Small::of(batch, 4), Wide::of(batch, 5));
        let cpus = Small::of(batch, 8);
        for row in (0..batch.num_rows()).filter(|row| is_wanted(*row)) {
            let Some(at) = instants.get(row).filter(|at| *at >= first) else { continue };
            let woken = match are_unparks.get(row).unwrap_or(false) {
                true => threads.get(row).map(ActorNumber::Thread),
                false => lwps.get(row).map(|lwp| ActorNumber::Lwp(lwp.into())),
            };
            let Some(woken) = woken else { continue };
            rows.push(WakeupRow {
                at,
                woken,
                in_interrupt: !are_tasks.get(row).unwrap_or(true),
                waker_lwp: waker_lwps.get(row).map(i64::from),
                waker_thread: waker_threads.get(row),
                cpu: cpus.get(row).map(i64::from),
            });
        }
    }
}

impl Row for CounterRow {
    fn begin(&self) -> i64 {
        self.at
    }

    fn replay(self, replayer: &mut Replayer<'_>) {
        replayer.counter(&self);
    }
}

pub(super) struct CounterReader;

impl CounterReader {
    /// All rows of a batch; `None` for rows of other counters.
    pub(super) fn rows(batch: &RecordBatch) -> impl Fn(usize) -> Option<CounterRow> {
        let (instants, kinds) = (Wide::of(batch, 0), Texts::of(batch, 2));
        let (cpus, pids, values) = (Small::of(batch, 3), Small::of(batch, 4), Wide::of(batch, 5));
        move |row| {
            let queue = match kinds.get(row)? {
                "run-queue" => QueueNumber::Run(cpus.get(row)?.into()),
                "ready-queue" => QueueNumber::Ready(pids.get(row).map(i64::from)),
                _ => return None,
            };
            Some(CounterRow { at: instants.get(row)?, queue, value: values.get(row)? })
        }
    }
}

impl RowReader for CounterReader {
    type Row = CounterRow;

    fn read(&mut self, batch: &RecordBatch, is_wanted: &dyn Fn(usize) -> bool, rows: &mut Vec<CounterRow>) {
        let wanted = (0..batch.num_rows()).filter(|row| is_wanted(*row));
        rows.extend(wanted.filter_map(CounterReader::rows(batch)));
    }
}
