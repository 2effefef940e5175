//! When the kernel was recorded. Sources begin and end; other inputs may continue before, between and after them.
//!
//! A source of kernel events covers its CPUs from its first switch to its end. It states its end, or else its last
//! event is its end. A source that misses no switch (a listing of the kernel) covers its CPUs from its first event on.
//! Outside these times, the LWPs on the CPUs are unknown. The end of the last source that covers a CPU opens a gap of
//! this CPU (see the rules of [`gaps`]), which the next source closes. The next source follows each CPU from its own
//! first switch on, like the first one.
//!
//! [`gaps`]: super::gaps

use sigmund_model::{Cpu, Ticks};

use super::Machine;
use crate::error::Error;

/// A source begins to record the kernel's switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// The tick of the first of these switches.
    pub(crate) tick: Ticks,
    /// The CPUs of the source. `None` means all CPUs: no other source records at this time.
    pub(crate) cpus: Option<Vec<Cpu>>,
    /// Whether the source misses no switch after its first event.
    pub(crate) misses_no_switch: bool,
}

/// A source of the kernel's switches ends, and other inputs continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The last instant that the source covers.
    pub(crate) tick: Ticks,
    /// The name of the source.
    pub(crate) source: String,
    /// The CPUs of the source; `None` if it does not state them.
    pub(crate) cpus: Option<Vec<Cpu>>,
    /// The CPUs that another source continues.
    pub(crate) covered: Vec<Cpu>,
    /// Whether one of the sources that continue misses no switch.
    pub(crate) misses_no_switch: bool,
}

impl Machine {
    /// A recording begins. Call this before the first event that the recording covers.
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

    /// A recording ends. Call this before the first event that is later than the end.
    pub(crate) fn recording_ends(&mut self, end: &End) -> Result<(), Error> {
        self.open_gaps_before(end.tick)?;
        self.now = self.now.max(end.tick);
        let (now, misses_no_switch) = (self.now, self.misses_no_switch);
        let is_of_it = |cpu: Cpu| end.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu));
        // If no switch ever showed a CPU, nothing was known about it, unless probes were sufficient.
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
