//! The events of one CPU of a perf.data.

use std::io;
use std::sync::Arc;

use sigmund_model::{
    ClockFit, Context, Cpu, Effect, Event, EventStream, Loss, LossKind, Lwp, LwpState, Nanos, Said, Severity,
    Ticks,
};

use super::kind;
use super::layout::{
    PERF_RECORD_COMM, PERF_RECORD_EXIT, PERF_RECORD_FORK, PERF_RECORD_LOST, PERF_RECORD_MISC_SWITCH_OUT,
    PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, PERF_RECORD_SWITCH_CPU_WIDE,
};
use super::record::{Record, Records, SampleId, Sampled};
use crate::input::Input;
use crate::losses::{dropped, kernel_loss};

/// Reads the events of one CPU.
#[derive(Debug)]
pub struct PerfStream {
    input: Input,
    cpu: Cpu,
    /// Ranges of the file that hold this CPU's records.
    runs: Arc<Vec<(u64, u64)>>,
    next_run: usize,
    /// What is left of the open range.
    open: (u64, u64),
    sample_id: SampleId,
    fit: Option<ClockFit>,
    last: Ticks,
    events: u64,
    straightened: u64,
    losses: Vec<Loss>,
}

impl PerfStream {
    pub(super) fn new(
        input: Input,
        cpu: Cpu,
        runs: Arc<Vec<(u64, u64)>>,
        sample_id: SampleId,
        fit: Option<ClockFit>,
    ) -> PerfStream {
        PerfStream {
            input,
            cpu,
            runs,
            next_run: 0,
            open: (0, 0),
            sample_id,
            fit,
            last: Ticks(0),
            events: 0,
            straightened: 0,
            losses: Vec::new(),
        }
    }

    /// The CPU whose events these are.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Events read so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    fn tick(&self, time: u64) -> Ticks {
        self.fit.map_or(Ticks(time), |fit| fit.to_tick(Nanos(time)))
    }
}

impl EventStream for PerfStream {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        loop {
            if self.open.0 >= self.open.1 {
                let Some(run) = self.runs.get(self.next_run) else { return Ok(false) };
                self.open = *run;
                self.next_run += 1;
            }
            let mut records = Records::new(self.input.bytes(), self.open.0, self.open.1);
            // The index walked the same bytes; a file changed since then ends the run.
            let Ok(Some(record)) = records.next() else {
                self.open.0 = self.open.1;
                continue;
            };
            let Some(id) = self.sample_id.read(&record) else {
                self.open.0 = records.at();
                continue;
            };
            self.open.0 = records.at();
            let tick = self.tick(id.time);
            if record.ty == PERF_RECORD_LOST {
                // u64 id | u64 number of records lost
                let from = (self.events > 0).then_some(self.last);
                let loss = dropped(self.cpu, from, Some(tick), record.u64_at(8));
                self.losses.push(loss);
                continue;
            }
            fill(&record, &id, event);
            if tick < self.last {
                self.straightened += 1;
            }
            self.last = self.last.max(tick);
            self.events += 1;
            event.tick = self.last;
            event.cpu = Some(self.cpu);
            return Ok(true);
        }
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let count = std::mem::take(&mut self.straightened);
        if count > 0 {
            let detail = format!(
                "{}: cpu {}: {count} records earlier than the one before; they got its time",
                self.input.name(),
                self.cpu
            );
            let loss = kernel_loss(LossKind::Contradiction, Severity::Note, Some(self.cpu), detail);
            self.losses.push(Loss { count: Some(count), ..loss });
        }
        std::mem::take(&mut self.losses)
    }
}

fn fill(record: &Record<'_>, id: &Sampled, event: &mut Event) {
    event.lwp = Some(Lwp(id.tid));
    event.thread = Said::Nothing;
    event.context = if id.tid == 0 { Context::Idle } else { Context::Task };
    event.params.clear();
    let mut push_number = |number: Option<u32>| match number {
        Some(number) => event.params.push_number(i64::from(number)),
        None => event.params.push_unknown(),
    };
    match record.ty {
        // u32 pid | u32 tid | comm\0
        PERF_RECORD_COMM => {
            event.kind = kind::COMM;
            event.effect = Effect::None;
            push_number(record.u32_at(4));
            match record.comm() {
                Some((_, comm)) => event.params.push_text(comm),
                None => event.params.push_unknown(),
            }
        }
        // u32 pid | u32 parent's pid | u32 tid | u32 parent's tid | u64 time
        PERF_RECORD_FORK => {
            event.kind = kind::FORK;
            event.effect = record.u32_at(8).map_or(Effect::None, |tid| Effect::LwpNew(Lwp(tid)));
            push_number(record.u32_at(8));
            push_number(record.u32_at(12));
        }
        // The same. The events of an LWP are taken from it before it leaves its CPU for the last time, so no
        // switch says that: this record is its leave, some microseconds early.
        PERF_RECORD_EXIT => {
            event.kind = kind::EXIT;
            let itself = record.u32_at(8) == Some(id.tid);
            event.effect = if itself { Effect::LwpLeave { state: LwpState::Exited } } else { Effect::None };
            push_number(record.u32_at(8));
        }
        ty if record.misc & PERF_RECORD_MISC_SWITCH_OUT != 0 => {
            let preempted = record.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0;
            let state = if preempted { LwpState::Runnable } else { LwpState::Sleeping };
            event.kind = kind::SWITCH_OUT;
            // Of the whole CPU: u32 next pid | u32 next tid
            let next = record.u32_at(4).filter(|_| ty == PERF_RECORD_SWITCH_CPU_WIDE).map(Lwp);
            event.effect = match next {
                Some(next) => Effect::KernelSwitch { prev: Some(Lwp(id.tid)), prev_state: Some(state), next },
                None => Effect::LwpLeave { state },
            };
            push_number(Some(u32::from(preempted)));
        }
        _ => {
            event.kind = kind::SWITCH_IN;
            event.effect = Effect::LwpArrive;
        }
    }
}
