//! What the events of some streams show: when LWPs were on a CPU, and when they certainly were not.
//!
//! ```text
//!   user events of an LWP      ·  ·   ·          ··  ·      instants on a CPU
//!   switches of the kernel  ───┐in     out┌──────┐in        stretches on a CPU, and off all of them
//!                        fork ┘           └ off ─┘
//! ```
//!
//! A stretch off the CPU counts only if the switch that ends it is the next one that was seen of its LWP, and no stream
//! lost anything in between. So a switch that was not traced cannot create false evidence.

use std::{collections::BTreeMap, io, ops::ControlFlow};

use sigmund_model::{Cpu, Effect, Event, Level, Lwp};

use super::super::side_by_side::{Step, Witness, side_by_side};

/// Maximum number of instants that are kept for an LWP. If there are more, every second, fourth, … is kept.
const INSTANTS: usize = 1 << 12;
/// Maximum number of stretches that are kept in all. After that, no more events are read, so memory does not grow with
/// the trace.
const STRETCHES: usize = 1 << 21;

/// What is known about one LWP.
#[derive(Debug, Default)]
pub(super) struct OfLwp {
    /// Instants at which the program itself recorded an event on the LWP.
    pub(super) recorded: Vec<u64>,
    stride: usize,
    skipped: usize,
    last_recorded: Option<u64>,
    /// Stretches on one CPU.
    pub(super) on: Vec<(u64, u64)>,
    /// Stretches off all CPUs.
    pub(super) off: Vec<(u64, u64)>,
    /// When it was created: no event of the program is earlier. The next field is when it ended: none is later.
    pub(super) born: Option<u64>,
    pub(super) gone: Option<u64>,
    /// Whether its number was used twice. Then birth and end may be those of either LWP.
    reused: bool,
    last: Last,
}

#[derive(Clone, Copy, Debug, Default)]
enum Last {
    #[default]
    Unknown,
    On(u64, Option<Cpu>, u64),
    Off(u64, u64),
}

/// The evidence of some streams that are on the same clock.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) lwps: BTreeMap<Lwp, OfLwp>,
    /// First and last instant.
    pub(super) span: Option<(u64, u64)>,
    /// Whether there was more evidence than is kept.
    pub(super) cut: bool,
    stretches: usize,
    /// The number of losses, and the first instant after the last gap.
    gaps: u64,
    gap_ends: u64,
}

impl Evidence {
    /// Reads the streams.
    pub(super) fn of(witnesses: Vec<Witness>) -> io::Result<Evidence> {
        let mut evidence = Evidence::default();
        side_by_side(witnesses, |step| evidence.take(&step))?;
        for lwp in evidence.lwps.values_mut() {
            lwp.recorded.extend(lwp.last_recorded);
        }
        Ok(evidence)
    }

    fn take(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        match *step {
            Step::Gap { until, .. } => {
                self.gaps += 1;
                self.gap_ends = self.gap_ends.max(until);
            }
            Step::Event { tick, level, event, .. } => {
                let (first, _) = *self.span.get_or_insert((tick, tick));
                self.span = Some((first, tick));
                match (level, event.lwp) {
                    (Level::User, Some(lwp)) => self.lwps.entry(lwp).or_default().record(tick),
                    (Level::User, None) => {}
                    (Level::Kern, _) => self.take_kernel(tick, event),
                }
            }
        }
        self.cut = self.stretches >= STRETCHES;
        if self.cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn take_kernel(&mut self, tick: u64, event: &Event) {
        match event.effect {
            Effect::KernelSwitch { prev, next, .. } => {
                self.leaves(prev.or(event.lwp), tick, event.cpu);
                self.arrives(Some(next), tick, event.cpu);
            }
            Effect::LwpLeave { .. } => self.leaves(event.lwp, tick, event.cpu),
            Effect::LwpArrive => self.arrives(event.lwp, tick, event.cpu),
            Effect::LwpNew(lwp) => {
                let lwp = self.lwps.entry(lwp).or_default();
                lwp.reused |= lwp.born.is_some() || lwp.gone.is_some() || !matches!(lwp.last, Last::Unknown);
                lwp.born = Some(tick).filter(|_| !lwp.reused);
                lwp.gone = lwp.gone.filter(|_| !lwp.reused);
            }
            Effect::LwpExit => {
                if let Some(lwp) = event.lwp.map(|lwp| self.lwps.entry(lwp).or_default()) {
                    lwp.gone = Some(tick).filter(|_| !lwp.reused);
                }
            }
            _ => {}
        }
    }

    fn arrives(&mut self, lwp: Option<Lwp>, tick: u64, cpu: Option<Cpu>) {
        let Some(lwp) = lwp.filter(|lwp| *lwp != Lwp::IDLE) else { return };
        let lwp = self.lwps.entry(lwp).or_default();
        if let Last::Off(since, gaps) = lwp.last
            && gaps == self.gaps
        {
            lwp.off.push((since, tick));
            self.stretches += 1;
        }
        lwp.last = if tick < self.gap_ends { Last::Unknown } else { Last::On(tick, cpu, self.gaps) };
    }

    fn leaves(&mut self, lwp: Option<Lwp>, tick: u64, cpu: Option<Cpu>) {
        let Some(lwp) = lwp.filter(|lwp| *lwp != Lwp::IDLE) else { return };
        let lwp = self.lwps.entry(lwp).or_default();
        if let Last::On(since, on, gaps) = lwp.last
            && (gaps, on) == (self.gaps, cpu)
        {
            lwp.on.push((since, tick));
            self.stretches += 1;
        }
        lwp.last = if tick < self.gap_ends { Last::Unknown } else { Last::Off(tick, self.gaps) };
    }
}

impl OfLwp {
    fn record(&mut self, tick: u64) {
        self.last_recorded = Some(tick);
        self.skipped += 1;
        if self.skipped <= self.stride {
            return;
        }
        self.skipped = 0;
        self.recorded.push(tick);
        if self.recorded.len() >= INSTANTS {
            let every_second = self.recorded.iter().copied().step_by(2).collect();
            self.recorded = every_second;
            self.stride = self.stride * 2 + 1;
        }
    }
}
