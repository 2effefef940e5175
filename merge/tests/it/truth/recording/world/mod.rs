//! A simulated machine with several processes, and the history of its LWPs and user threads.
//!
//! LWPs are born, die (some are killed in the middle of a user thread), and their numbers are used again, by other
//! processes too; so are those of user threads. Interrupts nest: nmi in irq in softirq.

mod choose;
mod exec;
mod history;
mod locks;
mod perform;
mod processes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(super) use self::history::{
    Event, History, Interval, LwpIs, ProcessLife, Request, ThreadId, ThreadIs, Waits, What,
};
pub(super) use self::{choose::FUTEX, locks::FIRST_LOCK, processes::EXIT_GROUP};
use super::Sides;
use crate::truth::chance::Chance;

/// The size of a world.
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

/// The process with this index.
pub(super) fn pid(process: usize) -> u32 {
    100 + process as u32
}

struct Lwp {
    process: usize,
    life: usize,
    is: LwpIs,
    last_cpu: u32,
    /// It is about to be woken.
    waking: bool,
    /// Of one that carries no user threads and whose process the kernel reports: its place in the history.
    kernel_process: Option<usize>,
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
    /// Locks whose holds are recorded, by their addresses.
    locks: BTreeMap<u64, locks::Lock>,
    /// The request of each thread that has not the lock yet, by its place in the history.
    requests: BTreeMap<u64, usize>,
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
    /// Whether wakings are traced beside wakeups.
    has_wakings: bool,
    /// What must come next, on which CPU.
    queued: VecDeque<(u32, What)>,
    next_plain: u32,
    free_plain: Vec<u32>,
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
    let has_wakings = !chance.one_in(3);
    let mut world = World {
        chance,
        size,
        sides,
        losing,
        has_wakings,
        queued: VecDeque::new(),
        next_plain: 20_000,
        free_plain: Vec::new(),
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
        let queue = world.lwps[&lwp].last_cpu;
        world.queue_on(lwp, queue);
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
        world.pass_time();
        world.step();
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

    fn step(&mut self) {
        let (cpu, what) = self.queued.pop_front().unwrap_or_else(|| {
            let cpu = self.chance.below(self.size.cpus.into()) as u32;
            (cpu, self.choose(cpu))
        });
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

    /// Adds the next event to the history, with the LWP that causes it.
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
                | What::LockAcquire(_)
                | What::LockRelease(_)
                | What::Message
        );
        let target = match what {
            What::Switch { next: 0, .. } => None,
            What::Switch { next: lwp, .. }
            | What::Wakeup { lwp, .. }
            | What::Waking(lwp)
            | What::Migrate { lwp, .. } => Some((lwp, self.lwps.get(&lwp).and_then(carried))),
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
