//! The expected answer, recorded while the simulated machine runs: whenever time passes, the state of each CPU, LWP and
//! user thread is added.

use std::collections::BTreeMap;

use sigmund_model::WaitKind;

use crate::truth::schedule::{Machine, Off, Reason, Thread};

/// A user thread executes on an LWP on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) lwp: u32,
    pub(crate) cpu: u32,
}

/// The expected values of one user thread, from its first dispatch on.
#[derive(Debug)]
pub(crate) struct ThreadAnswer {
    pub(crate) first: u64,
    pub(crate) end: Option<u64>,
    pub(crate) active: Vec<Interval>,
    /// The time in each state; of a blocked thread, in each with each object and kind that it waits for.
    pub(crate) states: BTreeMap<String, u64>,
    pub(crate) dispatches: u64,
    pub(crate) migrations: u64,
    /// `None`: its LWP left a CPU runnable, and no system calls are traced.
    pub(crate) stalls: Option<u64>,
}

impl ThreadAnswer {
    pub(crate) fn active_time(&self) -> u64 {
        self.active.iter().map(|i| i.end - i.start).sum()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) end: u64,
    pub(crate) threads: BTreeMap<u64, ThreadAnswer>,
    /// Of each LWP: its time on CPUs, and that part of it with a user thread mounted.
    pub(crate) lwps: BTreeMap<u32, (u64, u64)>,
    /// Of each CPU, from its first event on: its time with an LWP, and with the idle task.
    pub(crate) cpus: BTreeMap<u32, (u64, u64)>,
}

impl Answer {
    /// The answer about a thread, which is known from `tick` on if it was not before.
    pub(crate) fn thread(&mut self, thread: u64, tick: u64) -> &mut ThreadAnswer {
        self.threads.entry(thread).or_insert_with(|| ThreadAnswer {
            first: tick,
            end: None,
            active: Vec::new(),
            states: BTreeMap::new(),
            dispatches: 0,
            migrations: 0,
            stalls: Some(0),
        })
    }

    /// No state changes between these two ticks.
    pub(crate) fn time_passes(&mut self, machine: &Machine, from: u64, to: u64) {
        if from == to {
            return;
        }
        for (number, cpu) in (0..).zip(&machine.cpus).filter(|(_, cpu)| cpu.seen) {
            let (busy, idle) = self.cpus.entry(number).or_default();
            *if cpu.lwp == 0 { idle } else { busy } += to - from;
        }
        for (number, lwp) in machine.lwps.iter().filter(|(_, lwp)| lwp.cpu.is_some()) {
            let (on_cpu, active) = self.lwps.entry(*number).or_default();
            *on_cpu += to - from;
            *active += if lwp.thread.is_some() { to - from } else { 0 };
        }
        for (number, answer) in &mut self.threads {
            let thread = &machine.threads[number];
            *answer.states.entry(state_and_wait(machine, thread)).or_default() += to - from;
            let on = thread.lwp.and_then(|lwp| Some((lwp, machine.lwps[&lwp].cpu?)));
            if let Some((lwp, cpu)) = on {
                join(&mut answer.active, Interval { start: from, end: to, lwp, cpu });
            }
        }
    }
}

/// The state of a thread, what it waits for, and of what kind that is, as the cells of a row.
fn state_and_wait(machine: &Machine, thread: &Thread) -> String {
    let state = state(machine, thread);
    let waits = Some(thread.waits).filter(|_| state == "blocked").unwrap_or_default();
    let on = if waits.on == 0 { "?".into() } else { waits.on.to_string() };
    let kind = WaitKind::from_number(waits.kind).map_or("?", WaitKind::name);
    format!("{state} {on} {kind}")
}

/// The current state of a thread, as in the table `thread_states`.
fn state(machine: &Machine, thread: &Thread) -> &'static str {
    let Some(lwp) = thread.lwp.map(|lwp| &machine.lwps[&lwp]) else {
        return match thread.left {
            None | Some(Reason::Unknown) => "unmounted",
            Some(Reason::Yield | Reason::Quantum) => "ready",
            Some(Reason::Block) => "blocked",
            Some(Reason::Exit) => "exited",
        };
    };
    match lwp.off {
        _ if lwp.cpu.is_some() => "active",
        _ if !machine.detail.kernel_states => "off-cpu",
        Off::Runnable => "stalled",
        Off::Sleeping | Off::DiskSleep => "in-kernel",
    }
}

/// Adds an interval. One that continues the last one extends it; an empty one is ignored.
pub(crate) fn join(intervals: &mut Vec<Interval>, next: Interval) {
    if next.start == next.end {
        return;
    }
    match intervals.last_mut() {
        Some(last) if (last.end, last.lwp, last.cpu) == (next.start, next.lwp, next.cpu) => {
            last.end = next.end;
        }
        _ => intervals.push(next),
    }
}
