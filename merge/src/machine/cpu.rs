//! One CPU: who is on it, and the interrupts it is in.

use sigmund_model::{Lwp, Ticks};

/// A CPU of which something is known.
#[derive(Debug)]
pub(crate) struct CpuEntry {
    /// Who is on it; `None` if that is not known.
    pub(super) current: Option<Lwp>,
    since: Ticks,
    /// Interrupts it is in, innermost last; only for sources whose events do not say so themselves.
    pub(super) interrupts: Vec<i64>,
    pub(crate) events: u64,
    pub(crate) busy: u64,
    pub(crate) idle: u64,
}

impl CpuEntry {
    pub(super) fn new(tick: Ticks) -> CpuEntry {
        CpuEntry { current: None, since: tick, interrupts: Vec::new(), events: 0, busy: 0, idle: 0 }
    }

    /// Somebody else is on it from now on.
    pub(super) fn set_current(&mut self, lwp: Option<Lwp>, tick: Ticks) {
        self.settle(tick);
        self.current = lwp;
    }

    /// Since when the one that is on it is there.
    pub(super) fn since(&self) -> Ticks {
        self.since
    }

    /// Counts the time until now.
    pub(super) fn settle(&mut self, tick: Ticks) {
        let passed = tick.0 - self.since.0;
        match self.current {
            Some(Lwp::IDLE) => self.idle += passed,
            Some(_) => self.busy += passed,
            None => {}
        }
        self.since = tick;
    }

    /// Leaves an interrupt, and those inside of it whose exits were lost.
    pub(super) fn leave_interrupt(&mut self, number: i64) {
        match self.interrupts.iter().rposition(|n| *n == number) {
            Some(place) => self.interrupts.truncate(place),
            None => drop(self.interrupts.pop()),
        }
    }
}
