//! A timeline of CPUs and LWPs only, as a kernel could produce it: each CPU runs at most one LWP at a time; an LWP that
//! waits is woken by another LWP or by an interrupt before it runs again, and continues on any CPU.

use std::io;

use sigmund_export::timeline::{Actors, Change, CpuId, LwpActor, LwpId, Sink, Track};
use sigmund_model::{Cpu, Lwp, LwpState, Ticks};

use crate::known_timelines::{self, Dice};

/// The timeline and its actors.
pub(crate) struct Machine {
    pub(crate) actors: Actors,
    seed: u64,
    steps: u64,
}

struct Now<'a> {
    dice: Dice,
    at: Ticks,
    sink: &'a mut dyn Sink,
    states: Vec<LwpState>,
    on: Vec<Option<usize>>,
}

impl Machine {
    pub(crate) fn new(seed: u64, steps: u64, cpus: u32, lwps: u32) -> Machine {
        let mut actors = known_timelines::actors(1000 + steps * 100);
        actors.cpus = (0..cpus).map(Cpu).collect();
        let like = actors.lwps[0].clone();
        actors.lwps = (0..lwps)
            .map(|n| LwpActor { lwp: Lwp(500 + n), name: Some(format!("lwp/{n}")), ..like.clone() })
            .collect();
        Machine { actors, seed, steps }
    }

    pub(crate) fn emit(&self, sink: &mut dyn Sink) -> io::Result<()> {
        let states = vec![LwpState::Sleeping; self.actors.lwps.len()];
        let on = vec![None; self.actors.cpus.len()];
        let mut now = Now { dice: Dice(self.seed), at: self.actors.clock.first, sink, states, on };
        for lwp in 0..now.states.len() {
            let states = [LwpState::Sleeping, LwpState::Runnable, LwpState::DiskSleep, LwpState::Stopped];
            now.states[lwp] = states[now.dice.below(4) as usize];
            now.state(lwp, None)?;
        }
        for _ in 0..self.steps {
            // No two steps in one nanosecond.
            now.at = Ticks(now.at.0 + 5 + now.dice.below(90));
            match now.dice.below(2) {
                0 => now.switch()?,
                _ => now.wake()?,
            }
        }
        now.end(self.actors.clock.last)
    }
}

impl Now<'_> {
    fn emit(&mut self, change: Change<'_>) -> io::Result<()> {
        self.sink.change(self.at, &change)
    }

    fn state(&mut self, lwp: usize, cpu: Option<usize>) -> io::Result<()> {
        let cpu = cpu.map(|cpu| CpuId(cpu as u32));
        self.emit(Change::Lwp { lwp: LwpId(lwp as u32), state: Some(self.states[lwp]), cpu })
    }

    /// A CPU switches to another runnable LWP, or to none. The changes are in any order.
    fn switch(&mut self) -> io::Result<()> {
        let cpu = self.dice.below(self.on.len() as u64) as usize;
        let runnable: Vec<usize> =
            (0..self.states.len()).filter(|lwp| self.states[*lwp] == LwpState::Runnable).collect();
        let next = match runnable.len() as u64 {
            0 => None,
            n => Some(runnable[self.dice.below(n) as usize]),
        };
        let prev = std::mem::replace(&mut self.on[cpu], next);
        let cpu_first = self.dice.below(2) == 0;
        let switch = Change::CpuLwp(CpuId(cpu as u32), next.map(|lwp| LwpId(lwp as u32)));
        if cpu_first {
            self.emit(switch)?;
        }
        if let Some(prev) = prev {
            let states = [LwpState::Sleeping, LwpState::Runnable, LwpState::DiskSleep, LwpState::Stopped];
            self.states[prev] = states[self.dice.below(4) as usize];
            self.state(prev, Some(cpu))?;
        }
        if let Some(next) = next {
            self.states[next] = LwpState::Running;
            self.state(next, Some(cpu))?;
        }
        if cpu_first { Ok(()) } else { self.emit(switch) }
    }

    /// Wakes an LWP that waits.
    fn wake(&mut self) -> io::Result<()> {
        let of = self.dice.below(self.states.len() as u64) as usize;
        if matches!(self.states[of], LwpState::Running | LwpState::Runnable) {
            return Ok(());
        }
        let cpu = self.dice.below(self.on.len() as u64) as usize;
        let by = match (self.dice.below(4), self.on[cpu]) {
            (0, _) => None,
            (1, _) | (_, None) => Some(Track::Cpu(CpuId(cpu as u32))),
            (_, Some(lwp)) => Some(Track::Lwp(LwpId(lwp as u32))),
        };
        self.emit(Change::Wakeup { by, of: Track::Lwp(LwpId(of as u32)) })?;
        self.states[of] = LwpState::Runnable;
        self.state(of, Some(cpu))
    }

    fn end(mut self, last: Ticks) -> io::Result<()> {
        self.at = last;
        for cpu in 0..self.on.len() {
            if self.on[cpu].is_some() {
                self.emit(Change::CpuLwp(CpuId(cpu as u32), None))?;
            }
        }
        for lwp in 0..self.states.len() {
            self.emit(Change::Lwp { lwp: LwpId(lwp as u32), state: None, cpu: None })?;
        }
        self.sink.finish()
    }
}
