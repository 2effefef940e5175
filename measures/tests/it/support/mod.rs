//! Random machines whose state is known at every tick: truth for the measures, and the history that a merge would find.

pub(crate) mod calls;
pub(crate) mod damage;
pub(crate) mod drawing;
pub(crate) mod drawn;
pub(crate) mod ends;
pub(crate) mod lives;
pub(crate) mod locks;
pub(crate) mod marks;
pub(crate) mod random;
pub(crate) mod sketch;
pub(crate) mod slices;
pub(crate) mod slow_walk;
pub(crate) mod world;

use sigmund_measures::{
    Context, History, HistoryBuilder, Interrupt, Interval, Life, LwpStay, Span, Syscall, ThreadStay, Wakeup,
};
use sigmund_model::{EndReason, LwpState, ThreadState, WaitKind};

use random::Random;

pub(crate) const CPUS: usize = 2;
pub(crate) const LWPS: usize = 4;
pub(crate) const THREADS: usize = 5;
/// The ticks of a machine are 0 to this.
pub(crate) const TICKS: i64 = 400;

/// The tid of the LWP at a place; 0 is the idle task.
pub(crate) fn tid(place: usize) -> u32 {
    100 + place as u32
}

/// The number of the user thread at a place.
pub(crate) fn number(place: usize) -> u64 {
    1 + place as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LwpNow {
    pub(crate) state: LwpState,
    /// Where it runs, or the run queue that it is in, or where it left.
    pub(crate) cpu: usize,
    pub(crate) carries: Option<usize>,
    /// The place of the system call it is in.
    pub(crate) call: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadNow {
    pub(crate) state: ThreadState,
    pub(crate) lwp: Option<usize>,
    pub(crate) waits_for: Option<WaitKind>,
    pub(crate) object: i64,
}

/// Everything at one tick.
#[derive(Clone, Debug)]
pub(crate) struct Now {
    /// The LWP on each CPU; `None` is the idle task.
    pub(crate) cpus: [Option<usize>; CPUS],
    pub(crate) lwps: [LwpNow; LWPS],
    pub(crate) threads: [ThreadNow; THREADS],
    /// The interrupts that are open on each CPU, outermost first: places in `Machine::interrupts`.
    pub(crate) interrupts: [Vec<usize>; CPUS],
    /// The spans that are open of each thread, outermost first: places in `Machine::spans`.
    pub(crate) spans: [Vec<usize>; THREADS],
}

/// A machine's life.
pub(crate) struct Machine {
    /// At each tick from 0 on.
    pub(crate) ticks: Vec<Now>,
    pub(crate) interrupts: Vec<Interrupt>,
    pub(crate) syscalls: Vec<Syscall>,
    pub(crate) spans: Vec<Span>,
    pub(crate) wakeups: Vec<Wakeup>,
    /// Whether the CPU of an LWP is unknown, too, where its state is. A merge has it so.
    pub(crate) hides_cpus: bool,
    builder: HistoryBuilder,
    random: Random,
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Machine {
        // Each CPU has an LWP from the beginning: who has one before its first switch is not in a trace.
        let state = |place| if place < CPUS { LwpState::Running } else { LwpState::Runnable };
        let lwp = |place| LwpNow { state: state(place), cpu: place % CPUS, carries: None, call: None };
        let ready = ThreadNow { state: ThreadState::Ready, lwp: None, waits_for: None, object: 0 };
        let now = Now {
            cpus: std::array::from_fn(Some),
            lwps: std::array::from_fn(lwp),
            threads: [ready; THREADS],
            interrupts: Default::default(),
            spans: Default::default(),
        };
        let mut machine = Machine {
            ticks: vec![now],
            interrupts: Vec::new(),
            syscalls: Vec::new(),
            spans: Vec::new(),
            wakeups: Vec::new(),
            hides_cpus: false,
            builder: HistoryBuilder::default(),
            random: Random::new(seed),
        };
        for tick in 1..=TICKS {
            let mut now = machine.ticks[tick as usize - 1].clone();
            machine.step(tick, &mut now);
            show_threads(&mut now);
            machine.ticks.push(now);
        }
        machine.latencies();
        machine
    }

    fn step(&mut self, tick: i64, now: &mut Now) {
        for cpu in 0..CPUS {
            self.interrupt(tick, now, cpu);
            if now.interrupts[cpu].is_empty() && self.random.one_in(6) {
                self.switch_lwp(tick, now, cpu);
            } else if let (Some(lwp), true) = (now.cpus[cpu], self.random.one_in(4)) {
                self.run(tick, now, cpu, lwp);
            }
        }
        for lwp in 0..LWPS {
            if now.lwps[lwp].state == LwpState::Sleeping && self.random.one_in(12) {
                self.wake(tick, now, lwp);
            }
        }
    }

    fn interrupt(&mut self, tick: i64, now: &mut Now, cpu: usize) {
        let open = &mut now.interrupts[cpu];
        if !open.is_empty() && self.random.one_in(3) {
            if let Some(place) = open.pop() {
                self.interrupts[place].interval.to = tick;
            }
        } else if open.len() < 2 && self.random.one_in(20) {
            let words = &mut self.builder.history().words;
            let (kind, name) = (words.intern("irq"), words.intern(["disk", "net"][self.random.below(2)]));
            let lwp = now.cpus[cpu];
            let interrupt = Interrupt {
                interval: Interval { from: tick, to: TICKS },
                cpu: cpu as u32,
                kind,
                number: Some(7),
                name: Some(name),
                lwp: Some(lwp.map_or(0, tid)),
                thread: lwp.and_then(|lwp| now.lwps[lwp].carries).map(number),
                depth: open.len() as u32,
                end: EndReason::Returned,
            };
            open.push(self.interrupts.len());
            self.interrupts.push(interrupt);
        }
    }

    fn switch_lwp(&mut self, tick: i64, now: &mut Now, cpu: usize) {
        if let Some(lwp) = now.cpus[cpu] {
            let sleeps = self.random.one_in(2);
            now.lwps[lwp].state = if sleeps { LwpState::Sleeping } else { LwpState::Runnable };
            if sleeps {
                let name = self.builder.history().words.intern(["read", "poll"][self.random.below(2)]);
                now.lwps[lwp].call = Some(self.syscalls.len());
                self.syscalls.push(Syscall {
                    interval: Interval { from: tick, to: TICKS },
                    lwp: tid(lwp),
                    thread: now.lwps[lwp].carries.map(number),
                    name,
                    ret: Some(0),
                    off_cpu: None,
                    end: EndReason::Returned,
                });
            }
        }
        let waiting = |lwp: &usize| now.lwps[*lwp].state == LwpState::Runnable && now.lwps[*lwp].cpu == cpu;
        let queue: Vec<usize> = (0..LWPS).filter(waiting).collect();
        now.cpus[cpu] = if queue.is_empty() { None } else { Some(queue[self.random.below(queue.len())]) };
        if let Some(lwp) = now.cpus[cpu] {
            now.lwps[lwp].state = LwpState::Running;
            if let Some(call) = now.lwps[lwp].call.take() {
                self.syscalls[call].interval.to = tick;
            }
        }
    }

    /// What the program does on a CPU.
    fn run(&mut self, tick: i64, now: &mut Now, cpu: usize, lwp: usize) {
        let Some(thread) = now.lwps[lwp].carries else {
            // The runtime's own, as a poller does.
            if self.random.one_in(3) {
                self.unpark(tick, now, cpu, lwp);
                return;
            }
            let ready: Vec<usize> =
                (0..THREADS).filter(|thread| now.threads[*thread].state == ThreadState::Ready).collect();
            if !ready.is_empty() {
                let thread = ready[self.random.below(ready.len())];
                now.lwps[lwp].carries = Some(thread);
                now.threads[thread] =
                    ThreadNow { state: ThreadState::Active, lwp: Some(lwp), waits_for: None, object: 0 };
            }
            return;
        };
        match self.random.below(6) {
            0 => {
                now.lwps[lwp].carries = None;
                now.threads[thread] =
                    ThreadNow { state: ThreadState::Ready, lwp: None, waits_for: None, object: 0 };
            }
            1 => {
                now.lwps[lwp].carries = None;
                let kind =
                    [WaitKind::Mutex, WaitKind::Condvar, WaitKind::Sleep, WaitKind::Io][self.random.below(4)];
                let object = match kind {
                    // When it is to end, maybe.
                    WaitKind::Sleep => tick + self.random.below(12) as i64,
                    _ => 0x10 + self.random.below(2) as i64,
                };
                now.threads[thread] =
                    ThreadNow { state: ThreadState::Blocked, lwp: None, waits_for: Some(kind), object };
            }
            2 | 3 => self.unpark(tick, now, cpu, lwp),
            4 if now.spans[thread].len() < 3 => {
                let words = &mut self.builder.history().words;
                let name = words.intern(["request", "parse"][self.random.below(2)]);
                let depth = now.spans[thread].len() as u32;
                now.spans[thread].push(self.spans.len());
                self.spans.push(Span {
                    interval: Interval { from: tick, to: TICKS },
                    thread: Some(number(thread)),
                    lwp: Some(tid(lwp)),
                    is_function: false,
                    name: Some(name),
                    depth,
                    active: None,
                    source: None,
                    end: EndReason::TraceEnd,
                });
            }
            _ => {
                if let Some(place) = now.spans[thread].pop() {
                    self.spans[place].interval.to = tick;
                    self.spans[place].end = EndReason::Returned;
                }
            }
        }
    }

    fn unpark(&mut self, tick: i64, now: &mut Now, cpu: usize, lwp: usize) {
        let blocked = |thread: &usize| now.threads[*thread].state == ThreadState::Blocked;
        let Some(woken) = (0..THREADS).find(blocked) else { return };
        now.threads[woken] = ThreadNow { state: ThreadState::Ready, lwp: None, waits_for: None, object: 0 };
        self.wakeups.push(Wakeup {
            tick,
            is_unpark: true,
            context: Context::Task,
            waker_lwp: Some(tid(lwp)),
            waker_thread: now.lwps[lwp].carries.map(number),
            lwp: None,
            thread: Some(number(woken)),
            cpu: Some(cpu as u32),
            target_cpu: None,
            latency: None,
        });
    }

    fn wake(&mut self, tick: i64, now: &mut Now, lwp: usize) {
        let (from, to) = (self.random.below(CPUS), self.random.below(CPUS));
        now.lwps[lwp].state = LwpState::Runnable;
        now.lwps[lwp].cpu = to;
        let waker = now.cpus[from];
        let context = match (now.interrupts[from].is_empty(), waker) {
            (false, _) => Context::Irq,
            (true, Some(_)) => Context::Task,
            (true, None) => Context::Idle,
        };
        let is_task = context == Context::Task;
        self.wakeups.push(Wakeup {
            tick,
            is_unpark: false,
            context,
            waker_lwp: Some(waker.map_or(0, tid)),
            waker_thread: waker.filter(|_| is_task).and_then(|waker| now.lwps[waker].carries).map(number),
            lwp: Some(tid(lwp)),
            thread: now.lwps[lwp].carries.map(number),
            cpu: Some(from as u32),
            target_cpu: Some(to as u32),
            latency: None,
        });
    }

    /// Until when those woken waited.
    fn latencies(&mut self) {
        for wakeup in &mut self.wakeups {
            let runs = |now: &Now| match (wakeup.is_unpark, wakeup.lwp, wakeup.thread) {
                (true, _, Some(thread)) => now.threads[thread as usize - 1].lwp.is_some(),
                (_, Some(lwp), _) => now.lwps[lwp as usize - 100].state == LwpState::Running,
                _ => false,
            };
            let later = self.ticks[wakeup.tick as usize..].iter().position(runs);
            wakeup.latency = later.map(|ticks| ticks as i64);
        }
    }

    /// What a merge would make of it.
    pub(crate) fn history(mut self) -> (Vec<Now>, History) {
        let extent = Interval { from: 0, to: TICKS };
        let ticks = std::mem::take(&mut self.ticks);
        let at = |tick: i64| &ticks[tick as usize];
        for lwp in 0..LWPS {
            let stay = |tick| {
                let now = at(tick).lwps[lwp];
                let is_hidden = self.hides_cpus && now.state == LwpState::Unknown;
                let cpu = (!is_hidden).then_some(now.cpu as u32);
                LwpStay { state: now.state, cpu, end: Some(EndReason::TraceEnd) }
            };
            runs(stay, |interval, mut stay| {
                stay.end = Some(ends::lwp_end(&ticks, lwp, interval.to));
                self.builder.lwp_state(tid(lwp), interval, stay);
            });
        }
        for thread in 0..THREADS {
            let stay = |tick| {
                let ThreadNow { state, lwp, waits_for, object } = at(tick).threads[thread];
                ThreadStay { state, lwp: lwp.map(tid), waits_for, object, end: Some(EndReason::TraceEnd) }
            };
            runs(stay, |interval, mut stay| {
                stay.end = Some(ends::thread_end(&ticks, thread, interval.to));
                // An unpark is seen also where the state before is not known.
                let is_unpark = |wakeup: &Wakeup| {
                    (wakeup.is_unpark, wakeup.thread, wakeup.tick)
                        == (true, Some(number(thread)), interval.to)
                };
                let is_ready =
                    interval.to < TICKS && at(interval.to).threads[thread].state == ThreadState::Ready;
                if stay.state == ThreadState::Unknown && is_ready && self.wakeups.iter().any(is_unpark) {
                    stay.end = Some(EndReason::Woken);
                }
                self.builder.thread_state(number(thread), interval, stay);
            });
        }
        let Machine { interrupts, syscalls, spans, wakeups, mut builder, .. } = self;
        let history = builder.history();
        history.extent = Some(extent);
        history.interrupts = interrupts;
        history.syscalls = syscalls;
        history.spans = spans;
        history.wakeups = wakeups;
        let unnamed = Life { name: None, pid: Some(70), interval: extent, created_by: None };
        for place in 0..THREADS {
            let name = format!("work/{place}");
            history.names.threads.insert(number(place), Life { name: Some(&name), ..unnamed });
        }
        for place in 0..LWPS {
            let name = format!("lwp/{place}");
            history.names.lwps.insert(tid(place), Life { name: Some(&name), ..unnamed });
        }
        (ticks, builder.build())
    }
}

/// The states of mounted threads follow from their LWPs.
fn show_threads(now: &mut Now) {
    for lwp in now.lwps {
        if let Some(thread) = lwp.carries {
            now.threads[thread].state = match lwp.state {
                LwpState::Running => ThreadState::Active,
                LwpState::Runnable => ThreadState::Stalled,
                _ => ThreadState::InKernel,
            };
        }
    }
}

/// Calls `each` with each longest stretch in which something stays as it is.
fn runs<T: Copy + PartialEq>(at: impl Fn(i64) -> T, mut each: impl FnMut(Interval, T)) {
    let mut from = 0;
    for tick in 1..=TICKS {
        if tick == TICKS || at(tick) != at(from) {
            each(Interval { from, to: tick }, at(from));
            from = tick;
        }
    }
}
