//! Splits an interval of a thread's life into interrupts, waits, and the rest.

use crate::map::Map;

use sigmund_model::{LwpState, ThreadState};

use crate::{History, Interval, Request, Word, carried::Carried, groups::Owner};

/// A part that is not pure time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Part {
    Timer,
    Irq,
    Softirq,
    Ipi,
    Vector,
    Nmi,
    OtherInterrupt,
    OffCpu,
    Waits,
    Unknown,
}

impl Part {
    pub(super) const ALL: &[Part] = &[
        Part::Timer,
        Part::Irq,
        Part::Softirq,
        Part::Ipi,
        Part::Vector,
        Part::Nmi,
        Part::OtherInterrupt,
        Part::OffCpu,
        Part::Waits,
        Part::Unknown,
    ];
    const INTERRUPTS: [Part; 6] =
        [Part::Irq, Part::Softirq, Part::Ipi, Part::Vector, Part::Nmi, Part::OtherInterrupt];

    pub(super) fn name(self) -> &'static str {
        match self {
            Part::Timer => "timer",
            Part::Irq => "irq",
            Part::Softirq => "softirq",
            Part::Ipi => "ipi",
            Part::Vector => "vector",
            Part::Nmi => "nmi",
            Part::OtherInterrupt => "other-interrupt",
            Part::OffCpu => "off-cpu",
            Part::Waits => "waits",
            Part::Unknown => "unknown",
        }
    }

    fn of_interrupt(kind: &str, name: Option<&str>) -> Part {
        match (kind, name) {
            ("timer", _) | ("irq", Some("timer")) | ("softirq", Some("TIMER" | "HRTIMER")) => Part::Timer,
            ("irq", _) => Part::Irq,
            ("softirq", _) => Part::Softirq,
            ("ipi", _) => Part::Ipi,
            ("vector", _) => Part::Vector,
            ("nmi", _) => Part::Nmi,
            _ => Part::OtherInterrupt,
        }
    }
}

/// An interval, split: the parts and the pure time sum to the wall time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    pub(super) wall: i64,
    parts: [i64; Part::ALL.len()],
}

impl Parts {
    pub(super) fn of(&self, part: Part) -> i64 {
        self.parts[part as usize]
    }

    pub(super) fn other_interrupts(&self) -> i64 {
        Part::INTERRUPTS.iter().map(|part| self.of(*part)).sum()
    }

    pub(super) fn pure(&self) -> i64 {
        self.wall - self.parts.iter().sum::<i64>()
    }

    /// Whether it was seen on a CPU, or all its time is known.
    pub(super) fn is_seen(&self) -> bool {
        let on_cpu = self.wall
            - [Part::OffCpu, Part::Waits, Part::Unknown].map(|part| self.of(part)).iter().sum::<i64>();
        on_cpu > 0 || self.of(Part::Unknown) == 0
    }

    fn add(&mut self, part: Part, ticks: i64) {
        self.parts[part as usize] += ticks;
    }

    /// Adds time of which nothing is known.
    pub(super) fn add_unknown(&mut self, ticks: i64) {
        self.wall += ticks;
        self.add(Part::Unknown, ticks);
    }

    /// Adds the parts of another interval.
    pub(super) fn merge(&mut self, other: &Parts) {
        self.wall += other.wall;
        self.parts.iter_mut().zip(other.parts).for_each(|(sum, ticks)| *sum += ticks);
    }
}

/// The part of an interval in which a thread lived.
pub(super) fn life(history: &History, owner: Owner, interval: Interval) -> Interval {
    let life = match owner {
        Owner::Thread(thread) => history.names.threads.get(thread),
        Owner::Lwp(lwp) => history.names.lwps.get(lwp),
    };
    life.map_or(interval, |life| interval.clipped(life.interval).unwrap_or(EMPTY))
}

/// Splits intervals.
pub(super) struct Splitter<'h> {
    history: &'h History,
    carried: &'h Carried,
    /// The part for each kind and name of interrupt. There are few, and they are looked up often.
    known: Vec<((Word, Option<Word>), Part)>,
    hints: Hints,
}

/// Where the last searches ended. The stretches of a thread come in time order.
#[derive(Default)]
struct Hints {
    threads: Map<u64, usize>,
    lwps: Map<u32, usize>,
    cpus: Map<u32, usize>,
}

/// What a state of either level counts as.
enum Is {
    OnCpu,
    Part(Part),
    Over,
}

impl<'h> Splitter<'h> {
    /// For LWPs, only the times at which they count (`carried`) are split.
    pub(super) fn new(history: &'h History, carried: &'h Carried) -> Splitter<'h> {
        Splitter { history, carried, known: Vec::new(), hints: Hints::default() }
    }

    /// The parts of an interval of a life, as far as it was on the selected LWPs and CPUs; and for how many ticks it
    /// had a state. The caller decides about the time without a state: it is unknown in the answer for a span, and left
    /// out in the answer for a life.
    pub(super) fn split(&mut self, owner: Owner, stretch: Interval, places: &Request) -> (Parts, i64) {
        let history = self.history;
        let (mut parts, mut covered) = (Parts::default(), 0);
        let stretch = life(history, owner, stretch);
        match owner {
            Owner::Thread(thread) => {
                let mut hint = self.hints.threads.get(&thread).copied().unwrap_or(0);
                for (interval, stay) in history.threads.of(thread).partition_near(stretch, &mut hint) {
                    let Some(stay) = stay else { continue };
                    covered += interval.ticks();
                    let is = of_thread(stay.state);
                    let needs_cpu = matches!(is, Is::OnCpu) || places.cpus.is_some();
                    let cpu = stay.lwp.filter(|_| needs_cpu);
                    let cpu = cpu.and_then(|lwp| {
                        let hint = self.hints.lwps.entry(lwp).or_default();
                        history.lwps.of(lwp.into()).at_near(interval.from, hint)?.1.cpu
                    });
                    self.add(&mut parts, is, interval, stay.lwp, cpu, places);
                }
                self.hints.threads.insert(thread, hint);
            }
            Owner::Lwp(lwp) => {
                for (interval, stay) in history.lwps.of(lwp.into()).partition(stretch) {
                    let Some(stay) = stay else { continue };
                    covered += interval.ticks();
                    self.carried.each_part(lwp, interval, |part, _| {
                        self.add(&mut parts, of_lwp(stay.state), part, Some(lwp), stay.cpu, places);
                    });
                }
            }
        }
        (parts, covered)
    }

    fn add(
        &mut self,
        parts: &mut Parts,
        is: Is,
        interval: Interval,
        lwp: Option<u32>,
        cpu: Option<u32>,
        places: &Request,
    ) {
        if matches!(is, Is::Over) || !places.has_place(lwp, cpu) {
            return;
        }
        parts.wall += interval.ticks();
        match (is, cpu) {
            (Is::Part(part), _) => parts.add(part, interval.ticks()),
            (_, Some(cpu)) => {
                let hint = self.hints.cpus.entry(cpu).or_default();
                for (piece, place) in self.history.innermost.of(cpu.into()).within_near(interval, hint) {
                    parts.add(self.interrupt(*place), piece.ticks());
                }
            }
            (_, None) => {}
        }
    }

    fn interrupt(&mut self, place: u32) -> Part {
        let Some(interrupt) = self.history.interrupts.get(place as usize) else {
            return Part::OtherInterrupt;
        };
        let key = (interrupt.kind, interrupt.name);
        if let Some((_, part)) = self.known.iter().find(|(known, _)| *known == key) {
            return *part;
        }
        let words = &self.history.words;
        let part = Part::of_interrupt(words.text(key.0), key.1.map(|name| words.text(name)));
        self.known.push((key, part));
        part
    }
}

const EMPTY: Interval = Interval { from: 0, to: 0 };

fn of_thread(state: ThreadState) -> Is {
    match state {
        ThreadState::Active => Is::OnCpu,
        ThreadState::New | ThreadState::Ready | ThreadState::Stalled => Is::Part(Part::OffCpu),
        ThreadState::InKernel | ThreadState::Blocked | ThreadState::Stopped => Is::Part(Part::Waits),
        ThreadState::Exited => Is::Over,
        ThreadState::OffCpu | ThreadState::Mounted | ThreadState::Unmounted | ThreadState::Unknown => {
            Is::Part(Part::Unknown)
        }
    }
}

fn of_lwp(state: LwpState) -> Is {
    match state {
        LwpState::Running => Is::OnCpu,
        LwpState::Runnable => Is::Part(Part::OffCpu),
        LwpState::Sleeping | LwpState::DiskSleep | LwpState::Idle | LwpState::Stopped => {
            Is::Part(Part::Waits)
        }
        LwpState::Exited => Is::Over,
        LwpState::OffCpu | LwpState::Unknown => Is::Part(Part::Unknown),
    }
}
