//! A machine with several processes, simulated, and the history of who was where.
//!
//! LWPs are born, die (some are killed in the middle of a user thread), and their numbers are used again, by other
//! processes too; so are those of user threads. Interrupts nest: nmi in irq in softirq.

mod choose;
mod history;
mod perform;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use self::history::{Event, History, Interval, LwpIs, ThreadId, ThreadIs, Waits, What};
use super::Sides;
use crate::chance::Chance;

/// How large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) cpus: u32,
    /// LWPs at one time.
    pub(crate) lwps: usize,
    pub(crate) processes: usize,
    /// User threads at one time, of each process.
    pub(crate) threads: usize,
    pub(crate) events: usize,
}

/// The process with this place.
pub(super) fn pid(process: usize) -> u32 {
    100 + process as u32
}

struct Lwp {
    process: usize,
    life: usize,
    is: LwpIs,
    last_cpu: u32,
    carrier: bool,
    attached: bool,
    exiting: bool,
    thread: Option<u64>,
    call: Option<Call>,
}

/// The system call that an LWP is in.
#[derive(Clone, Copy)]
struct Call {
    number: i64,
    /// Its place in the history, if it began after the recording.
    place: Option<usize>,
}

#[derive(Default)]
struct Process {
    /// Threads to be mounted, those that nobody has woken yet, and numbers that are free again.
    ready: Vec<u64>,
    blocked: Vec<u64>,
    free: Vec<u64>,
    mounted: Vec<u64>,
    unparked: BTreeSet<u64>,
    /// Open spans of each thread: what they have in common with their end, and their places in the history.
    spans: BTreeMap<u64, Vec<(u64, usize)>>,
    next: u64,
}

#[derive(Default)]
struct Cpu {
    lwp: u32,
    /// Interrupts it is in: 1 softirq, 2 irq, 3 nmi; each in a lower one.
    interrupts: Vec<usize>,
    /// Their places in the history.
    places: Vec<usize>,
}

struct World<'c> {
    chance: &'c mut Chance,
    size: Size,
    sides: Sides,
    /// Whether parts will be lost: then a number is not used twice in one process, which the format cannot tell apart.
    losing: bool,
    tick: u64,
    /// CPUs with an event at this tick.
    busy_now: BTreeSet<u32>,
    cpus: Vec<Cpu>,
    lwps: BTreeMap<u32, Lwp>,
    runnable: Vec<u32>,
    asleep: Vec<u32>,
    free: Vec<u32>,
    next_lwp: u32,
    processes: Vec<Process>,
    history: History,
}

/// Runs a world for as many events as `size` says.
pub(super) fn run(chance: &mut Chance, size: Size, losing: bool, sides: Sides) -> History {
    let mut world = World {
        chance,
        size,
        sides,
        losing,
        tick: 1000,
        busy_now: BTreeSet::new(),
        cpus: (0..size.cpus).map(|_| Cpu::default()).collect(),
        lwps: BTreeMap::new(),
        runnable: Vec::new(),
        asleep: Vec::new(),
        free: Vec::new(),
        next_lwp: 7000,
        processes: (0..size.processes).map(|_| Process { next: 1, ..Process::default() }).collect(),
        history: History::default(),
    };
    // Half of the LWPs are there before the recording begins, some of them on CPUs.
    for _ in 0..size.lwps.div_ceil(2) {
        let lwp = world.birth();
        world.set(lwp, LwpIs::Runnable);
        if world.chance.one_in(3) {
            // Its entry is not recorded.
            let call = Some(Call { number: world.chance.below(3) as i64, place: None });
            world.lwps.entry(lwp).and_modify(|lwp| lwp.call = call);
        }
    }
    for cpu in 0..size.cpus {
        if world.chance.one_in(2)
            && let Some(next) = world.take_runnable()
        {
            world.cpus[cpu as usize].lwp = next;
            world.set(next, LwpIs::On(cpu));
        }
    }
    while world.history.events.len() < size.events {
        let cpu = world.chance.below(size.cpus.into()) as u32;
        world.pass_time();
        world.step(cpu);
    }
    world.history
}

impl World<'_> {
    fn pass_time(&mut self) {
        self.tick += match self.chance.below(8) {
            0..=5 => 1 + self.chance.below(50),
            6 => 1,
            _ => 1 + self.chance.below(20_000),
        };
        self.busy_now.clear();
    }

    fn step(&mut self, cpu: u32) {
        let what = self.choose(cpu);
        self.emit(cpu, what);
        self.perform(cpu, what);
        // Sometimes another CPU does something at the same tick, that concerns nobody else.
        if self.chance.one_in(5) {
            let other = self.chance.below(self.size.cpus.into()) as u32;
            if !self.busy_now.contains(&other) {
                self.emit(other, What::Quiet);
            }
        }
    }

    /// Writes down what is about to happen, by whom.
    fn emit(&mut self, number: u32, what: What) {
        self.busy_now.insert(number);
        let cpu = &self.cpus[number as usize];
        let entering = what == What::IrqEntry;
        let rank = cpu.interrupts.last().copied().unwrap_or(0);
        let rank = if entering { rank + 1 } else { rank };
        let context = match cpu.lwp {
            _ if rank > 0 => ["task", "softirq", "irq", "nmi"][rank],
            0 => "idle",
            _ => "task",
        };
        let me = self.lwps.get(&cpu.lwp);
        let carried = |lwp: &Lwp| lwp.thread.map(|thread| (lwp.process, thread));
        let user = matches!(
            what,
            What::Attach
                | What::Detach
                | What::UserSwitch { .. }
                | What::ThreadNew(_)
                | What::ThreadReady(_)
                | What::SpanBegin(_)
                | What::SpanEnd(_)
                | What::Message
        );
        let target = match what {
            What::Switch { next: 0, .. } => None,
            What::Switch { next: lwp, .. } | What::Wakeup { lwp, .. } => {
                Some((lwp, self.lwps.get(&lwp).and_then(carried)))
            }
            What::Fork(lwp) => Some((lwp, None)),
            _ => None,
        };
        self.history.events.push(Event {
            tick: self.tick,
            cpu: number,
            lwp: cpu.lwp,
            life: me.map_or(0, |lwp| lwp.life),
            thread: me.and_then(carried).filter(|_| context == "task"),
            context,
            what,
            target,
            process: me.map(|lwp| lwp.process).filter(|_| user),
        });
    }
}
