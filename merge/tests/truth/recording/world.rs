//! A machine with several processes, simulated, and the history of who was where.
//!
//! LWPs are born, die (some are killed in the middle of a user thread), and their numbers are used again, by other
//! processes too; so are those of user threads. Interrupts nest: nmi in irq in softirq.

use std::collections::{BTreeMap, BTreeSet};

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

/// A user thread: the place of its process, and its number there.
pub(super) type ThreadId = (usize, u64);

/// One event, and the truth about it.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) tick: u64,
    pub(super) cpu: u32,
    pub(super) lwp: u32,
    /// Which of the LWPs that had this number.
    pub(super) life: usize,
    pub(super) thread: Option<ThreadId>,
    pub(super) context: &'static str,
    pub(super) what: What,
    /// The LWP that it concerns, and whom that one carries.
    pub(super) target: Option<(u32, Option<ThreadId>)>,
    /// Of a user event.
    pub(super) process: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Switch { left: LwpIs, next: u32 },
    Wakeup { lwp: u32, cpu: u32 },
    Fork(u32),
    Exit,
    IrqEntry,
    IrqExit,
    SystemCall,
    Attach,
    Detach,
    UserSwitch { next: u64, reason: u64 },
    ThreadNew(u64),
    ThreadReady(u64),
    Message,
}

impl Event {
    pub(super) fn is_user(&self) -> bool {
        self.process.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LwpIs {
    On(u32),
    Runnable,
    Sleeping,
    DiskSleep,
    /// Created, and not woken yet.
    Fresh,
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadIs {
    New,
    Ready,
    Blocked,
    On(u32),
    Exited,
    /// Its LWP was killed under it.
    Gone,
}

/// What really happened.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) events: Vec<Event>,
    pub(super) lwps: BTreeMap<u32, Vec<(u64, LwpIs)>>,
    pub(super) threads: BTreeMap<ThreadId, Vec<(u64, ThreadIs)>>,
    /// The processes that LWPs of a number belonged to.
    pub(super) owners: BTreeMap<u32, BTreeSet<usize>>,
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
}

#[derive(Default)]
struct Process {
    /// Threads to be mounted, those that nobody has woken yet, and numbers that are free again.
    ready: Vec<u64>,
    blocked: Vec<u64>,
    free: Vec<u64>,
    mounted: Vec<u64>,
    unparked: BTreeSet<u64>,
    next: u64,
}

#[derive(Default)]
struct Cpu {
    lwp: u32,
    /// Interrupts it is in: 1 softirq, 2 irq, 3 nmi; each in a lower one.
    interrupts: Vec<usize>,
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
                self.emit(other, What::SystemCall);
            }
        }
    }

    fn choose(&mut self, cpu: u32) -> What {
        let Cpu { lwp, interrupts } = &self.cpus[cpu as usize];
        let (lwp, depth) = (*lwp, interrupts.len());
        let roll = self.chance.below(100);
        if depth > 0 {
            return match roll {
                0..=39 => What::IrqExit,
                40..=54 => self.irq(cpu),
                55..=69 => self.wakeup(),
                _ => What::SystemCall,
            };
        }
        let Some(me) = self.lwps.get(&lwp) else {
            return match roll {
                0..=54 => self.switch(cpu),
                55..=69 => self.irq(cpu),
                70..=79 => self.wakeup(),
                _ => What::SystemCall,
            };
        };
        let (carrier, attached, exiting, mounted) =
            (me.carrier, me.attached, me.exiting, me.thread.is_some());
        if self.size.threads > 1000 && carrier && attached && !exiting && !self.chance.one_in(8) {
            // A crowd wants to be born.
            return self.thread_new(lwp);
        }
        match roll {
            0..=13 => self.switch(cpu),
            14..=19 => self.irq(cpu),
            20..=25 => self.wakeup(),
            26..=28 => self.fork(),
            29 if !exiting && (!attached || self.sides != Sides::User) => What::Exit,
            30..=36 => What::SystemCall,
            _ if exiting || !carrier => self.switch(cpu),
            _ if !attached => What::Attach,
            37..=38 if !mounted => What::Detach,
            37..=62 => self.user_switch(lwp),
            63..=68 => self.thread_new(lwp),
            69..=74 => self.thread_ready(lwp),
            _ => What::Message,
        }
    }

    fn irq(&mut self, cpu: u32) -> What {
        match self.cpus[cpu as usize].interrupts.last() {
            Some(3) => What::SystemCall,
            _ => What::IrqEntry,
        }
    }

    fn take_runnable(&mut self) -> Option<u32> {
        let place = self.chance.below(self.runnable.len().max(1) as u64) as usize;
        (!self.runnable.is_empty()).then(|| self.runnable.swap_remove(place))
    }

    fn switch(&mut self, cpu: u32) -> What {
        let before = self.cpus[cpu as usize].lwp;
        let next = if self.chance.one_in(6) { None } else { self.take_runnable() };
        let exiting = self.lwps.get(&before).is_some_and(|lwp| lwp.exiting);
        let left = match self.chance.below(6) {
            _ if exiting => LwpIs::Dead,
            _ if before == 0 => LwpIs::Runnable,
            0..=2 => LwpIs::Runnable,
            3 | 4 => LwpIs::Sleeping,
            _ => LwpIs::DiskSleep,
        };
        match next {
            None if before == 0 => What::SystemCall,
            next => What::Switch { left, next: next.unwrap_or(0) },
        }
    }

    /// Wakes one that sleeps; or one that runs, which is on its way to sleep.
    fn wakeup(&mut self) -> What {
        if self.chance.one_in(6) {
            let cpu = self.chance.below(self.size.cpus.into()) as u32;
            let lwp = self.cpus[cpu as usize].lwp;
            return if lwp == 0 { What::SystemCall } else { What::Wakeup { lwp, cpu } };
        }
        match self.chance.pick(&self.asleep) {
            None => What::SystemCall,
            Some(lwp) => What::Wakeup { lwp, cpu: self.lwps[&lwp].last_cpu },
        }
    }

    fn fork(&mut self) -> What {
        if self.lwps.len() >= self.size.lwps { What::SystemCall } else { What::Fork(self.birth()) }
    }

    fn birth(&mut self) -> u32 {
        let mut process = self.chance.below(self.size.processes as u64) as usize;
        let again = if self.chance.one_in(2) { self.free.pop() } else { None };
        let number = match again {
            Some(number) if self.losing => {
                let owners = &self.history.owners[&number];
                let other = (0..self.size.processes).find(|process| !owners.contains(process));
                other.map(|other| {
                    process = other;
                    number
                })
            }
            again => again,
        };
        let number = number.unwrap_or_else(|| {
            self.next_lwp += 1;
            self.next_lwp
        });
        let owners = self.history.owners.entry(number).or_default();
        owners.insert(process);
        let life = self
            .history
            .lwps
            .get(&number)
            .map_or(0, |log| log.iter().filter(|(_, is)| *is == LwpIs::Dead).count());
        let carrier = !self.chance.one_in(4);
        let lwp = Lwp {
            process,
            life,
            is: LwpIs::Fresh,
            last_cpu: self.chance.below(self.size.cpus.into()) as u32,
            carrier,
            attached: false,
            exiting: false,
            thread: None,
        };
        self.lwps.insert(number, lwp);
        number
    }

    fn user_switch(&mut self, lwp: u32) -> What {
        let process = self.lwps[&lwp].process;
        let before = self.lwps[&lwp].thread;
        let ready = &mut self.processes[process].ready;
        let next = match self.chance.below(12) {
            0 | 1 => None,
            2 => return What::UserSwitch { next: before.unwrap_or(0), reason: u64::from(before.is_some()) },
            _ if ready.is_empty() => None,
            _ => Some(ready.swap_remove(self.chance.below(ready.len() as u64) as usize)),
        };
        let reason = match self.chance.below(10) {
            _ if before.is_none() => 0,
            0..=3 => 1,
            4 => 2,
            5..=8 => 3,
            _ => 4,
        };
        What::UserSwitch { next: next.unwrap_or(0), reason }
    }

    fn thread_new(&mut self, lwp: u32) -> What {
        let process = &mut self.processes[self.lwps[&lwp].process];
        if process.ready.len() + process.blocked.len() >= self.size.threads {
            return What::Message;
        }
        let again = if self.chance.one_in(2) { process.free.pop() } else { None };
        What::ThreadNew(again.unwrap_or_else(|| {
            process.next += 1;
            process.next - 1
        }))
    }

    fn thread_ready(&mut self, lwp: u32) -> What {
        let process = &mut self.processes[self.lwps[&lwp].process];
        if self.chance.one_in(4) {
            return self.chance.pick(&process.mounted).map_or(What::Message, What::ThreadReady);
        }
        let place = self.chance.below(process.blocked.len().max(1) as u64) as usize;
        match process.blocked.get(place) {
            None => What::Message,
            Some(_) => What::ThreadReady(process.blocked.swap_remove(place)),
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

    fn perform(&mut self, number: u32, what: What) {
        let me = self.cpus[number as usize].lwp;
        match what {
            What::Switch { left, next } => {
                if me != 0 {
                    self.set(me, left);
                }
                self.cpus[number as usize].lwp = next;
                if next != 0 {
                    self.set(next, LwpIs::On(number));
                }
            }
            What::Wakeup { lwp, .. } => {
                if !matches!(self.lwps[&lwp].is, LwpIs::On(_)) {
                    self.set(lwp, LwpIs::Runnable);
                }
            }
            What::Fork(lwp) => self.set(lwp, LwpIs::Fresh),
            What::IrqEntry => {
                let interrupts = &mut self.cpus[number as usize].interrupts;
                interrupts.push(interrupts.last().copied().unwrap_or(0) + 1);
            }
            What::IrqExit => drop(self.cpus[number as usize].interrupts.pop()),
            What::Exit => self.with(me, |lwp| lwp.exiting = true),
            What::Attach => self.with(me, |lwp| lwp.attached = true),
            What::Detach => self.with(me, |lwp| (lwp.attached, lwp.carrier) = (false, false)),
            What::UserSwitch { next, reason } => self.switch_threads(me, (next != 0).then_some(next), reason),
            What::ThreadNew(thread) => {
                let process = self.lwps[&me].process;
                self.processes[process].ready.push(thread);
                self.log_thread((process, thread), ThreadIs::New);
            }
            What::ThreadReady(thread) => self.make_ready(me, thread),
            What::SystemCall | What::Message => {}
        }
    }

    fn with(&mut self, lwp: u32, change: impl FnOnce(&mut Lwp)) {
        if let Some(lwp) = self.lwps.get_mut(&lwp) {
            change(lwp);
        }
    }

    /// Puts an LWP into a state, and into the list of those in it.
    fn set(&mut self, number: u32, is: LwpIs) {
        self.history.lwps.entry(number).or_default().push((self.tick, is));
        self.runnable.retain(|lwp| *lwp != number);
        self.asleep.retain(|lwp| *lwp != number);
        match is {
            LwpIs::Runnable => self.runnable.push(number),
            LwpIs::Sleeping | LwpIs::DiskSleep | LwpIs::Fresh => self.asleep.push(number),
            LwpIs::On(cpu) => self.with(number, |lwp| lwp.last_cpu = cpu),
            LwpIs::Dead => {
                if let Some(lwp) = self.lwps.remove(&number)
                    && let Some(thread) = lwp.thread
                {
                    self.processes[lwp.process].mounted.retain(|other| *other != thread);
                    self.log_thread((lwp.process, thread), ThreadIs::Gone);
                }
                self.free.push(number);
            }
        }
        self.with(number, |lwp| lwp.is = is);
    }

    fn switch_threads(&mut self, number: u32, next: Option<u64>, reason: u64) {
        let lwp = self.lwps.get_mut(&number).expect("it runs");
        let process = lwp.process;
        let before = std::mem::replace(&mut lwp.thread, next);
        if before == next {
            return;
        }
        let of = &mut self.processes[process];
        if let Some(before) = before {
            of.mounted.retain(|thread| *thread != before);
            let unparked = of.unparked.remove(&before);
            let is = match reason {
                3 if !unparked => ThreadIs::Blocked,
                4 => ThreadIs::Exited,
                _ => ThreadIs::Ready,
            };
            match is {
                ThreadIs::Blocked => of.blocked.push(before),
                ThreadIs::Exited => of.free.push(before),
                _ => of.ready.push(before),
            }
            self.log_thread((process, before), is);
        }
        if let Some(next) = next {
            self.processes[process].mounted.push(next);
            self.log_thread((process, next), ThreadIs::On(number));
        }
    }

    fn make_ready(&mut self, me: u32, thread: u64) {
        let process = self.lwps[&me].process;
        let of = &mut self.processes[process];
        if of.mounted.contains(&thread) {
            of.unparked.insert(thread);
            return;
        }
        of.ready.push(thread);
        self.log_thread((process, thread), ThreadIs::Ready);
    }

    fn log_thread(&mut self, thread: ThreadId, is: ThreadIs) {
        self.history.threads.entry(thread).or_default().push((self.tick, is));
    }
}
