//! The events of a file, in tick order.
//!
//! Cost, one thread of an AMD EPYC at 2.6 GHz, by CPU time, opening included: 3 M records of three arguments at
//! 15 to 19 M/s; `fxt_print` 1.6 to 2.2 M/s (`cargo run --release -p fkt-ingest --example fxt_speed FILE`).

use std::io;
use std::sync::Arc;

use sigmund_model::{
    Context, Cpu, Effect, Event, EventStream, Level, Loss, LossKind, Lwp, Params, Reported, Severity, Thread,
    Ticks,
};

use super::codes::KernelEntry;
use super::lwp_tracker::{LwpTracker, NewLwp, numbered};
use super::records::{Args, FileItem, FxtRecord, Records};
use super::reorder_window::ReorderWindow;
use super::types::{Action, ArgumentReader};
use super::{FxtData, words};
use crate::error::ParseError;

/// Losses that get a row each; the others are counted.
const MAX_ROWS: u64 = 100;

/// Reads the events of a file.
#[derive(Debug)]
pub(super) struct FxtStream {
    shared: Arc<FxtData>,
    records: Records,
    window: ReorderWindow,
    lwps: LwpTracker,
    losses: Vec<Loss>,
    skipped: u64,
    ended: bool,
    /// The newest tick returned.
    last: Option<Ticks>,
}

impl FxtStream {
    pub(super) fn new(shared: Arc<FxtData>) -> FxtStream {
        let records = shared.records();
        FxtStream {
            shared,
            records,
            window: ReorderWindow::default(),
            lwps: LwpTracker::default(),
            losses: Vec::new(),
            skipped: 0,
            ended: false,
            last: None,
        }
    }

    fn next_record(&mut self) -> Option<FxtRecord> {
        while !self.ended && !self.window.is_full() {
            match self.records.next(self.shared.input.bytes()) {
                FileItem::Record(record) => self.window.push(record),
                FileItem::Skipped(parse_error, cut_off) => self.note_skipped(&parse_error, cut_off),
                FileItem::End => self.end(),
            }
        }
        self.window.pop(self.ended)
    }

    #[cold]
    fn note_skipped(&mut self, parse_error: &ParseError, cut_off: bool) {
        self.skipped += 1;
        if self.skipped > MAX_ROWS {
            return;
        }
        let kind = if cut_off { LossKind::Truncated } else { LossKind::Damaged };
        let loss = self.loss(kind, Severity::Gap, parse_error.to_string());
        self.losses.push(Loss { from: self.last, ..loss });
    }

    #[cold]
    fn end(&mut self) {
        self.ended = true;
        let others = self.skipped.saturating_sub(MAX_ROWS);
        if others > 0 {
            let loss = self.loss(LossKind::Damaged, Severity::Gap, format!("{others} more damaged places"));
            self.losses.push(Loss { count: Some(others), ..loss });
        }
    }

    /// Records with impossible ticks, which are reported when all records have been read.
    #[cold]
    fn note_ticks(&mut self) {
        let late = std::mem::take(&mut self.window.late);
        if late > 0 {
            let detail = format!(
                "{late} records were much later in the file than their tick; they got the previous tick"
            );
            let loss = self.loss(LossKind::Contradiction, Severity::Note, detail);
            self.losses.push(Loss { count: Some(late), ..loss });
        }
        let misplaced = std::mem::take(&mut self.window.misplaced);
        if misplaced > 0 {
            let detail =
                format!("{misplaced} records with ticks far after the end of the trace were left out");
            let loss = self.loss(LossKind::Contradiction, Severity::Gap, detail);
            self.losses.push(Loss { count: Some(misplaced), ..loss });
        }
    }

    fn loss(&self, kind: LossKind, severity: Severity, detail: String) -> Loss {
        let detail = format!("{}: {detail}", self.shared.input.name());
        Loss { severity, ..Loss::new(kind, self.shared.level(), detail) }
    }

    #[inline]
    fn fill(&mut self, record: &FxtRecord, event: &mut Event) {
        let (kind, decoder) = self.shared.types.of(record);
        let (action, lwp) = (decoder.action, decoder.lwp);
        event.kind = kind;
        event.tick = Ticks(record.tick);
        event.cpu = record.cpu.map(|cpu| Cpu(u32::from(cpu)));
        (event.lwp, event.thread) = match record.kernel {
            true => (record.cpu.map(|_| Lwp(record.id as u32)), Reported::Nothing),
            false => self.lwps.of_thread(record.id),
        };
        event.context = if event.lwp == Some(Lwp::IDLE) { Context::Idle } else { Context::Task };
        event.effect = match action {
            Action::None => Effect::None,
            action => self.run_action(action, record, event).unwrap_or(Effect::None),
        };
        if let Some(lwp) = lwp.and_then(|index| self.arg(record, usize::from(index))) {
            event.lwp = u32::try_from(lwp).ok().map(Lwp);
        }
        event.params.clear();
        for plan in self.shared.types.plans(kind) {
            self.push(*plan, record, &mut event.params);
        }
    }

    #[inline]
    fn arg(&self, record: &FxtRecord, index: usize) -> Option<u64> {
        record.args.get(self.shared.input.bytes(), self.shared.order, index)
    }

    /// The effect of a record. For a new LWP it also sets the event's LWP.
    fn run_action(&mut self, action: Action, record: &FxtRecord, event: &mut Event) -> Option<Effect> {
        let lwp = |number: u64| u32::try_from(number).ok().map(Lwp);
        let first = self.arg(record, 0);
        Some(match action {
            Action::None => return None,
            Action::KernelEntry => self.lwps.enter(record.cpu, record.id, KernelEntry::of(record.code)?),
            Action::KernelReturn => self.lwps.leave(record.cpu, record.id),
            Action::KernelSwitch => {
                Effect::KernelSwitch { prev: event.lwp, prev_state: None, next: first.and_then(lwp)? }
            }
            Action::KernelFork => Effect::LwpNew(first.and_then(lwp)?),
            Action::ThreadBirth => Effect::ThreadNew(Thread::from_switch(first?)?),
            Action::UserSwitch => self.lwps.switch(record.id, first?),
            Action::NewLwp => match NewLwp::of(record.id, first?, self.arg(record, 1)?) {
                NewLwp::Known(lwp) => {
                    event.lwp = Some(lwp);
                    Effect::None
                }
                NewLwp::Numbered { number, carries } => {
                    event.lwp = numbered(number, self.shared.process());
                    event.thread = Reported::Nothing;
                    self.lwps.new_lwp(event.lwp?, carries)
                }
            },
        })
    }

    #[inline]
    fn push(&self, plan: ArgumentReader, record: &FxtRecord, params: &mut Params) {
        let (file, order) = (self.shared.input.bytes(), self.shared.order);
        match plan {
            ArgumentReader::Number { index, signed } => match self.arg(record, usize::from(index)) {
                Some(number) if signed && record.args.size == 4 => {
                    params.push_number(i64::from(number as i32))
                }
                Some(number) => params.push_number(number as i64),
                None => params.push_unknown(),
            },
            ArgumentReader::Function(index) => match self.arg(record, usize::from(index)) {
                Some(address) => match self.shared.infos.functions.get(&address) {
                    Some(name) => params.push_named(address as i64, name),
                    None => params.push_number(address as i64),
                },
                None => params.push_unknown(),
            },
            ArgumentReader::Text(from) => push_text(record.args, file, usize::from(from), params),
            ArgumentReader::Words(from) => {
                let args = (usize::from(from)..usize::from(record.args.count))
                    .map_while(|i| record.args.get(file, order, i));
                let hex: Vec<String> = args.map(|arg| format!("{arg:x}")).collect();
                params.push_text(&hex.join(" "));
            }
            ArgumentReader::KernelEntry => self.push_entry(record.code, params),
            ArgumentReader::Code => params.push_number(record.code as i64),
        }
    }

    fn push_entry(&self, code: u64, params: &mut Params) {
        let Some(entry) = KernelEntry::of(code) else { return params.push_unknown() };
        let (_, number) = entry.split();
        match entry {
            KernelEntry::Interrupt(irq) => match self.shared.infos.irqs.get(&irq) {
                Some(name) => params.push_named(irq as i64, name),
                None => params.push_number(irq as i64),
            },
            _ => params.push_number(number as i64),
        }
    }
}

/// The bytes of the arguments from `from` on, in memory order.
fn push_text(args: Args, file: &[u8], from: usize, params: &mut Params) {
    match args.bytes(file).get(from * usize::from(args.size)..) {
        Some(bytes) => params.push_text(&words::text_of(bytes)),
        None => params.push_unknown(),
    }
}

impl EventStream for FxtStream {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let Some(record) = self.next_record() else {
            self.note_ticks();
            return Ok(false);
        };
        self.fill(&record, event);
        self.last = Some(event.tick);
        Ok(true)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }
}

impl FxtData {
    /// The level of its records.
    fn level(&self) -> Level {
        if self.blocks.iter().any(|block| block.layout.is_kernel()) { Level::Kern } else { Level::User }
    }

    /// The process that recorded itself.
    fn process(&self) -> Option<u32> {
        self.infos.time.as_ref().map(|time| time.record_pid).filter(|pid| *pid > 0)
    }
}
