//! When the kernel was recorded: sources begin and end, and other inputs may go on before, between and after them.
//!
//! A source of kernel events covers its CPUs from its first switch to its end, which it states or which is its last event.
//! One that misses no switch (a listing of the kernel) covers them from its first event on. Outside of that nobody is
//! known to be on a CPU: the end of the last source that covers a CPU opens a gap of it (the rules of [`gaps`]), which the
//! next source closes. That one follows each CPU from its own first switch on, as the first did.
//!
//! [`gaps`]: super::gaps

use sigmund_model::{Cpu, Ticks};

use super::Machine;
use crate::error::Error;

/// A source begins to record the kernel's switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// The first of them.
    pub(crate) tick: Ticks,
    /// The CPUs that it has; `None` for all: no other source records at this time.
    pub(crate) cpus: Option<Vec<Cpu>>,
    /// Whether it misses no switch after its first event.
    pub(crate) misses_no_switch: bool,
}

/// A source of the kernel's switches ends, and other inputs go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The last instant that it covers.
    pub(crate) tick: Ticks,
    /// Its name.
    pub(crate) source: String,
    /// Its CPUs; `None` if it does not state them.
    pub(crate) cpus: Option<Vec<Cpu>>,
    /// The CPUs that another source continues.
    pub(crate) covered: Vec<Cpu>,
    /// Whether one of these misses no switch.
    pub(crate) misses_no_switch: bool,
}

impl Machine {
    /// To be told before the first event that it covers.
    pub(crate) fn recording_begins(&mut self, begin: &Begin) -> Result<(), Error> {
        self.open_gaps_before(begin.tick)?;
        self.now = self.now.max(begin.tick);
        self.misses_no_switch |= begin.misses_no_switch;
        for (cpu, entry) in self.cpus.iter_mut() {
            if begin.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu)) {
                entry.begin_recording(cpu, begin.tick);
            }
        }
        self.hide_lwps_in_open_gaps();
        Ok(())
    }

    /// To be told before the first event that is later than the end.
    pub(crate) fn recording_ends(&mut self, end: &End) -> Result<(), Error> {
        self.open_gaps_before(end.tick)?;
        self.now = self.now.max(end.tick);
        let (now, misses_no_switch) = (self.now, self.misses_no_switch);
        let is_of_it = |cpu: Cpu| end.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu));
        // Of a CPU that a switch never showed, nothing was known; unless probes were enough to know.
        let was_known = |cpu: &super::CpuEntry| {
            misses_no_switch || cpu.first_switch.is_some() || cpu.current.is_some() || end.cpus.is_some()
        };
        let ended: Vec<Cpu> = self
            .cpus
            .iter_mut()
            .filter(|(cpu, entry)| is_of_it(*cpu) && was_known(entry) && entry.is_recorded())
            .map(|(cpu, _)| cpu)
            .filter(|cpu| !end.covered.contains(cpu))
            .collect();
        self.misses_no_switch &= end.misses_no_switch;
        for cpu in ended {
            self.open_cpu_gap(cpu, Ticks(u64::MAX))?;
            self.cpu(cpu, now).end_recording(cpu, &end.source, now);
        }
        Ok(())
    }
}
