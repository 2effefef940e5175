//! Simulates a machine with two schedulers. At every step, one CPU does something that a trace would contain, and the
//! simulator, which knows all states, records which LWP and user thread did it.
//!
//! At the start every CPU is idle, every LWP is off-CPU, and no user thread is mounted.

use std::collections::BTreeMap;

use crate::truth::{answer::Answer, chance::Chance};

/// The size of a schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) cpus: u32,
    /// LWPs of the program.
    pub(crate) carriers: u32,
    /// LWPs of other processes.
    pub(crate) others: u32,
    pub(crate) threads: u64,
    pub(crate) events: usize,
}

/// The information in the trace in addition to the next LWP or thread of each switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detail {
    /// Kernel states and wakeups: switches give the state of the LWP that leaves, and wakeups are events.
    pub(crate) kernel_states: bool,
    /// User switches give the reason, and threads that are made ready are events.
    pub(crate) reasons: bool,
    /// Interrupts last until their exit. Otherwise no exit is listed at all, and each interrupt is a point.
    pub(crate) exits: bool,
}

/// One event, and the truth about it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) tick: u64,
    pub(crate) cpu: u32,
    pub(crate) lwp: u32,
    pub(crate) thread: Option<u64>,
    pub(crate) context: &'static str,
    pub(crate) act: Act,
}

/// What happens at a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// `next` comes (0 is the idle task), with the user thread that it `carries`; the one before leaves as `left`.
    KernelSwitch {
        next: u32,
        carries: Option<u64>,
        left: Off,
    },
    /// An LWP that slept becomes runnable.
    Wakeup {
        lwp: u32,
        carries: Option<u64>,
    },
    Irq(i64),
    IrqExit(i64),
    /// A kernel event that changes nothing.
    Kernel(&'static str),
    UserSwitch {
        next: Option<u64>,
        reason: Reason,
        waits: Waits,
    },
    ThreadReady(u64),
    /// A user event that changes nothing.
    User(&'static str),
}

/// How an LWP is off its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Off {
    Runnable,
    Sleeping,
    DiskSleep,
}

/// Why a user thread leaves its LWP; the numbers are those of a user trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Unknown = 0,
    Yield = 1,
    Quantum = 2,
    Block = 3,
    Exit = 4,
}

/// What a user thread waits for that blocks: the address of the thing, and the number of its kind in a user trace; 0 is
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) on: u64,
    pub(crate) kind: u64,
}

pub(crate) struct Cpu {
    /// The LWP on the CPU; 0 is the idle task.
    pub(crate) lwp: u32,
    /// The interrupts it is in, innermost last.
    pub(crate) interrupts: Vec<i64>,
    /// Whether it has recorded an event yet: before that, the trace does not contain the CPU.
    pub(crate) seen: bool,
}

pub(crate) struct Lwp {
    pub(crate) cpu: Option<u32>,
    pub(crate) off: Off,
    pub(crate) thread: Option<u64>,
    pub(crate) carrier: bool,
}

pub(crate) struct Thread {
    pub(crate) lwp: Option<u32>,
    pub(crate) last_lwp: Option<u32>,
    /// Why it left its LWP; `None` before it was on one.
    pub(crate) left: Option<Reason>,
    pub(crate) waits: Waits,
}

/// The machine, as it is now.
pub(crate) struct Machine {
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) lwps: BTreeMap<u32, Lwp>,
    pub(crate) threads: BTreeMap<u64, Thread>,
    pub(crate) detail: Detail,
}

/// Runs a machine for the number of events in `size`.
pub(crate) fn run(seed: u64, size: Size, detail: Detail) -> (Vec<Step>, Answer) {
    let mut chance = Chance::new(seed);
    let mut machine = Machine::new(size, detail);
    let mut answer = Answer::default();
    let mut tick = 1000;
    let mut steps: Vec<Step> = Vec::with_capacity(size.events);
    while steps.len() < size.events {
        let until = tick + pause(&mut chance);
        if !steps.is_empty() {
            answer.time_passes(&machine, tick, until);
        }
        tick = until;
        let cpu = chance.below(size.cpus.into()) as u32;
        let act = machine.choose(&mut chance, cpu);
        steps.push(machine.witness(tick, cpu, act));
        machine.perform(tick, cpu, act, &mut answer);
    }
    // Without any exit, a listing would say that interrupts are points.
    let exit = |step: &Step| matches!(step.act, Act::IrqExit(_));
    let in_interrupt = (0..).zip(&machine.cpus).find_map(|(n, cpu)| Some((n, *cpu.interrupts.last()?)));
    if let Some((cpu, innermost)) = in_interrupt.filter(|_| !steps.iter().any(exit)) {
        steps.push(machine.witness(tick, cpu, Act::IrqExit(innermost)));
        machine.perform(tick, cpu, Act::IrqExit(innermost), &mut answer);
    }
    answer.end = tick;
    (steps, answer)
}

/// Often nothing: events of several CPUs have the same tick.
fn pause(chance: &mut Chance) -> u64 {
    match chance.below(8) {
        0 | 1 => 0,
        2 => 1,
        3..=6 => 1 + chance.below(50),
        _ => 1 + chance.below(20_000),
    }
}

impl Machine {
    fn new(size: Size, detail: Detail) -> Machine {
        let cpu = |_| Cpu { lwp: 0, interrupts: Vec::new(), seen: false };
        let lwp = |carrier| Lwp { cpu: None, off: Off::Runnable, thread: None, carrier };
        let carriers = (0..size.carriers).map(|i| (7000 + i, lwp(true)));
        let others = (0..size.others).map(|i| (300 + 11 * i, lwp(false)));
        let thread = |_| Thread { lwp: None, last_lwp: None, left: None, waits: Waits::default() };
        Machine {
            cpus: (0..size.cpus).map(cpu).collect(),
            lwps: carriers.chain(others).collect(),
            threads: (1..=size.threads).map(|i| (i, thread(i))).collect(),
            detail,
        }
    }

    /// What this CPU does next.
    fn choose(&self, chance: &mut Chance, number: u32) -> Act {
        let cpu = &self.cpus[number as usize];
        if let Some(innermost) = cpu.interrupts.last() {
            return match chance.below(10) {
                0 | 1 => self.irq(chance, cpu).unwrap_or(Act::Kernel("softirq_raise")),
                2..=6 => Act::IrqExit(*innermost),
                7 => self.wakeup(chance).unwrap_or(Act::Kernel("softirq_raise")),
                _ => Act::Kernel("softirq_raise"),
            };
        }
        let (quiet, percent) = match self.lwps.get(&cpu.lwp) {
            None => ("cpu_idle", [60, 20, 5, 0, 0, 0]),
            Some(lwp) if !lwp.carrier => ("SYSTEM_CALL", [40, 15, 5, 0, 0, 0]),
            Some(_) => ("SYSTEM_CALL", [15, 10, 5, 35, 22, 5]),
        };
        let mut roll = chance.below(100);
        let mut kind = 0;
        while kind < percent.len() && roll >= percent[kind] {
            roll -= percent[kind];
            kind += 1;
        }
        let act = match kind {
            0 => self.kernel_switch(chance, cpu),
            1 => self.irq(chance, cpu),
            2 => self.wakeup(chance),
            3 => Some(self.user_switch(chance, cpu.lwp)),
            4 => chance.pick(&["malloc", "received_msg", "function_enter"]).map(Act::User),
            5 => self.thread_ready(chance),
            _ => None,
        };
        act.unwrap_or(Act::Kernel(quiet))
    }

    fn kernel_switch(&self, chance: &mut Chance, cpu: &Cpu) -> Option<Act> {
        let can_run = |lwp: &Lwp| lwp.cpu.is_none() && lwp.off == Off::Runnable;
        let mut next: Vec<u32> = self.lwps.iter().filter(|(_, l)| can_run(l)).map(|(n, _)| *n).collect();
        if cpu.lwp != 0 {
            next.push(0);
        }
        let next = chance.pick(&next)?;
        let sleeps = self.detail.kernel_states && chance.one_in(2);
        let asleep = if chance.one_in(3) { Off::DiskSleep } else { Off::Sleeping };
        let left = if sleeps { asleep } else { Off::Runnable };
        Some(Act::KernelSwitch { next, carries: self.carried(next), left })
    }

    fn wakeup(&self, chance: &mut Chance) -> Option<Act> {
        let asleep = |lwp: &Lwp| lwp.cpu.is_none() && lwp.off != Off::Runnable;
        let asleep: Vec<u32> = self.lwps.iter().filter(|(_, l)| asleep(l)).map(|(n, _)| *n).collect();
        chance.pick(&asleep).map(|lwp| Act::Wakeup { lwp, carries: self.carried(lwp) })
    }

    fn irq(&self, chance: &mut Chance, cpu: &Cpu) -> Option<Act> {
        let numbers: Vec<i64> = [0, 1, 24, 130].into_iter().filter(|n| !cpu.interrupts.contains(n)).collect();
        chance.pick(&numbers).map(Act::Irq)
    }

    fn user_switch(&self, chance: &mut Chance, lwp: u32) -> Act {
        let before = self.carried(lwp);
        let waits = |t: &Thread| matches!(t.left, Some(Reason::Block | Reason::Exit));
        let ready = self.threads.iter().filter(|(_, t)| t.lwp.is_none() && !waits(t));
        let ready: Vec<u64> = ready.map(|(n, _)| *n).collect();
        // Sometimes nobody, sometimes the same again: that changes nothing.
        let next = match chance.below(12) {
            0 | 1 => None,
            2 => before,
            _ => chance.pick(&ready),
        };
        let reason = match chance.below(10) {
            _ if !self.detail.reasons || before.is_none() => Reason::Unknown,
            _ if next == before => Reason::Yield,
            0..=3 => Reason::Yield,
            4 => Reason::Quantum,
            5..=8 => Reason::Block,
            _ => Reason::Exit,
        };
        let waits = match self.detail.reasons {
            true => Waits { on: chance.below(3), kind: chance.below(16) },
            false => Waits::default(),
        };
        Act::UserSwitch { next, reason, waits }
    }

    fn thread_ready(&self, chance: &mut Chance) -> Option<Act> {
        let blocked = |t: &Thread| t.lwp.is_none() && t.left == Some(Reason::Block);
        let blocked: Vec<u64> = self.threads.iter().filter(|(_, t)| blocked(t)).map(|(n, _)| *n).collect();
        chance.pick(&blocked).map(Act::ThreadReady)
    }

    fn carried(&self, lwp: u32) -> Option<u64> {
        self.lwps.get(&lwp)?.thread
    }

    /// The LWP and user thread that do it: those before the step.
    fn witness(&self, tick: u64, number: u32, act: Act) -> Step {
        let cpu = &self.cpus[number as usize];
        let in_interrupt = matches!(act, Act::Irq(_)) || !cpu.interrupts.is_empty();
        let context = match cpu.lwp {
            _ if in_interrupt => "irq",
            0 => "idle",
            _ => "task",
        };
        let thread = self.carried(cpu.lwp).filter(|_| !in_interrupt);
        Step { tick, cpu: number, lwp: cpu.lwp, thread, context, act }
    }

    fn perform(&mut self, tick: u64, number: u32, act: Act, answer: &mut Answer) {
        let cpu = &mut self.cpus[number as usize];
        cpu.seen = true;
        match act {
            Act::KernelSwitch { next, carries: _, left } => {
                if let Some(lwp) = self.lwps.get_mut(&cpu.lwp) {
                    (lwp.cpu, lwp.off) = (None, left);
                    if let Some(thread) = lwp.thread {
                        // No system calls are traced, so that it may have been preempted or not.
                        if !self.detail.kernel_states || left == Off::Runnable {
                            answer.thread(thread, tick).stalls = None;
                        }
                    }
                }
                if let Some(lwp) = self.lwps.get_mut(&next) {
                    lwp.cpu = Some(number);
                }
                cpu.lwp = next;
            }
            Act::Wakeup { lwp, carries: _ } => {
                if let Some(lwp) = self.lwps.get_mut(&lwp) {
                    lwp.off = Off::Runnable;
                }
            }
            Act::Irq(irq) if self.detail.exits => cpu.interrupts.push(irq),
            Act::IrqExit(_) => drop(cpu.interrupts.pop()),
            Act::UserSwitch { next, reason, waits } => {
                let lwp = cpu.lwp;
                self.switch_threads(tick, lwp, next, (reason, waits), answer);
            }
            Act::ThreadReady(thread) => {
                if let Some(thread) = self.threads.get_mut(&thread) {
                    thread.left = Some(Reason::Yield);
                }
            }
            Act::Irq(_) | Act::Kernel(_) | Act::User(_) => {}
        }
    }

    fn switch_threads(
        &mut self,
        tick: u64,
        number: u32,
        next: Option<u64>,
        (reason, waits): (Reason, Waits),
        answer: &mut Answer,
    ) {
        let Some(lwp) = self.lwps.get_mut(&number).filter(|lwp| lwp.thread != next) else { return };
        let before = std::mem::replace(&mut lwp.thread, next);
        if let Some((before, thread)) = before.and_then(|b| Some((b, self.threads.get_mut(&b)?))) {
            (thread.lwp, thread.left, thread.waits) = (None, Some(reason), waits);
            if reason == Reason::Exit {
                answer.thread(before, tick).end = Some(tick);
            }
        }
        if let Some((next, thread)) = next.and_then(|n| Some((n, self.threads.get_mut(&n)?))) {
            let known = answer.thread(next, tick);
            known.dispatches += 1;
            known.migrations += u64::from(thread.last_lwp.is_some_and(|last| last != number));
            (thread.lwp, thread.last_lwp) = (Some(number), Some(number));
        }
    }
}
