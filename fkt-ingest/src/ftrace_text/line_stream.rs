//! The events of one CPU, line by line.

use std::io;
use std::sync::Arc;

use sigmund_model::vocabulary::InterruptKind;
use sigmund_model::{Context, Cpu, Effect, Event, EventStream, Loss, LossKind, Reported, Severity, Ticks};

use super::TextData;
use super::line::{Line, Lost, PrintedTime};
use super::pairs::{Pair, pairs};
use crate::losses::{dropped, kernel_loss};

/// Gaps beyond this number become one row.
const MAX_GAPS: usize = 1000;

/// Reads the lines of one CPU.
#[derive(Debug)]
pub(super) struct LineStream {
    shared: Arc<TextData>,
    /// Index in the text's CPUs.
    index: usize,
    cpu: Cpu,
    /// The position of the next run in the index, and the end of the previous one in the text.
    next_run: usize,
    run_end: usize,
    /// The next line.
    at: usize,
    last: Option<u64>,
    interrupts: OpenInterrupts,
    corrected: u64,
    losses: Vec<Loss>,
    /// The losses from this index on are open: their end is not known yet.
    open_losses: usize,
}

/// The interrupts that a CPU is in, for texts without flags.
#[derive(Debug, Default)]
struct OpenInterrupts {
    interrupts: u32,
    softirq: bool,
}

impl LineStream {
    pub(super) fn new(shared: Arc<TextData>, index: usize, cpu: Cpu) -> LineStream {
        LineStream {
            shared,
            index,
            cpu,
            next_run: 0,
            run_end: 0,
            at: 0,
            last: None,
            interrupts: OpenInterrupts::default(),
            corrected: 0,
            losses: Vec::new(),
            open_losses: 0,
        }
    }

    /// Time does not decrease: an event earlier than the previous one gets its time.
    fn forward(&mut self, time: u64) -> Ticks {
        let last = self.last.unwrap_or(time);
        if time < last {
            self.corrected += 1;
        }
        let time = time.max(last);
        self.last = Some(time);
        for loss in self.losses.iter_mut().skip(self.open_losses) {
            loss.end_at(Some(Ticks(time)));
        }
        self.open_losses = self.losses.len();
        Ticks(time)
    }

    /// Records a mark of lost events as a gap; marks without an event between them are one gap.
    #[cold]
    fn note_loss(&mut self, lost: Lost) {
        let is_open = self.open_losses < self.losses.len();
        match self.losses.last_mut().filter(|last| last.kind == LossKind::Dropped) {
            Some(last) if is_open || self.open_losses >= MAX_GAPS => {
                let count = last.count.zip(lost.count).map(|(before, count)| before.saturating_add(count));
                *last = dropped(self.cpu, last.from, None, count);
                self.open_losses = self.losses.len() - 1;
            }
            _ => self.losses.push(dropped(self.cpu, self.last.map(Ticks), None, lost.count)),
        }
    }

    #[cold]
    fn note_corrected(&mut self) {
        let count = std::mem::take(&mut self.corrected);
        if count > 0 {
            let name = self.shared.input.name();
            let detail = format!(
                "{name}: cpu {}: {count} lines were earlier than the previous line; they got its time",
                self.cpu
            );
            let loss = kernel_loss(LossKind::Contradiction, Severity::Note, Some(self.cpu), detail);
            self.losses.push(Loss { count: Some(count), ..loss });
            self.open_losses = self.losses.len();
        }
    }

    fn fill<'a>(&mut self, line: &Line<'a>, found: &mut Vec<Pair<'a>>, event: &mut Event) {
        let types = &self.shared.types;
        pairs(line.name, line.text, found);
        event.kind = types.kind(line.name);
        event.cpu = Some(self.cpu);
        event.lwp = Some(line.lwp);
        event.thread = Reported::Nothing;
        types.fill(event.kind, found, &mut event.params);
        event.effect = types.effect(event.kind, &event.params);
        event.context = line.context();
        match self.shared.has_flags {
            // The flags have the same information.
            true if matches!(event.effect, Effect::InterruptEnter(_) | Effect::InterruptExit(_)) => {
                event.effect = Effect::None;
            }
            true => {}
            false => {
                event.context = self.interrupts.step(types.interrupt(event.kind), event.effect, event.context)
            }
        }
        let (PrintedTime::Nanos(time) | PrintedTime::Ticks(time)) = line.time;
        event.tick = self.forward(time);
    }
}

impl OpenInterrupts {
    /// The context of this event. A switch is not in an interrupt: an exit before it may be missing.
    fn step(&mut self, interrupt: Option<InterruptKind>, effect: Effect, task: Context) -> Context {
        let is_softirq = interrupt == Some(InterruptKind::Softirq);
        match effect {
            Effect::KernelSwitch { .. } => *self = OpenInterrupts::default(),
            Effect::InterruptEnter(_) if is_softirq => self.softirq = true,
            Effect::InterruptEnter(_) => self.interrupts += 1,
            _ => {}
        }
        let context = match (self.interrupts, self.softirq) {
            (0, false) => task,
            (0, true) => Context::Softirq,
            _ => Context::Irq,
        };
        match effect {
            Effect::InterruptExit(_) if is_softirq => {
                self.softirq = false;
                if context == Context::Irq { context } else { Context::Softirq }
            }
            Effect::InterruptExit(_) => {
                let interrupts = if self.interrupts > 0 { context } else { Context::Irq };
                self.interrupts = self.interrupts.saturating_sub(1);
                interrupts
            }
            _ => context,
        }
    }
}

impl EventStream for LineStream {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let shared = Arc::clone(&self.shared);
        let text = shared.input.bytes();
        loop {
            if self.at >= self.run_end {
                let Some(run) = shared.runs[self.index].1.next(&mut self.next_run, &mut self.run_end) else {
                    self.note_corrected();
                    return Ok(false);
                };
                self.at = run.start;
            }
            let rest = &text[self.at..self.run_end];
            let len = memchr::memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
            self.at += len;
            let line = rest[..len].trim_ascii_end();
            if let Some(line) = Line::parse(line) {
                let mut found = Vec::with_capacity(8);
                self.fill(&line, &mut found, event);
                return Ok(true);
            }
            if let Some(lost) = Lost::parse(line) {
                self.note_loss(lost);
            }
        }
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        self.open_losses = 0;
        std::mem::take(&mut self.losses)
    }
}
