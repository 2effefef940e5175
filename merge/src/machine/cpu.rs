//! The CPUs: the LWP on each, and its open interrupts.

use std::collections::BTreeMap;

use sigmund_model::{Context, Cpu, Effect, Event, Level, Loss, LossKind, Lwp, Severity, Ticks};

/// CPUs with numbers below this are in a table; the largest kernels are built for that many (`NR_CPUS`). A higher
/// number is most likely damage. It costs a search, but no memory for the table.
const IN_TABLE: usize = 8192;
/// Maximum number of nested interrupts that are kept for one CPU. Deeper nesting occurs only if all exits are missing.
const DEEPEST: usize = 64;

/// A CPU about which something is known.
#[derive(Debug)]
pub(crate) struct CpuEntry {
    /// The LWP on the CPU; `None` if that is unknown.
    pub(super) current: Option<Lwp>,
    /// The LWP that was on the CPU until an event showed the current one there, although no switch had taken the former
    /// off.
    pub(super) displaced: Option<Lwp>,
    since: Ticks,
    /// The last instant at which an event showed that the current LWP is on the CPU.
    confirmed: Ticks,
    /// The first switch of the CPU. From then on its LWP is known.
    pub(super) first_switch: Option<Ticks>,
    /// The first event that showed an LWP on the CPU before that.
    first_shown: Option<Ticks>,
    /// If no source records the switches of the CPU any more: since when, and which source was the last.
    unrecorded: Option<(Ticks, Box<str>)>,
    /// What was unknown about the CPU in recordings that have ended, and between them.
    losses: Vec<Loss>,
    /// The interrupts that the CPU is in, innermost last. Only for sources whose events do not contain this.
    pub(super) interrupts: Vec<i64>,
    /// The open gap of the CPU: the first instant after it.
    pub(super) gap: Option<Ticks>,
    /// Whether the CPU may be in an interrupt whose entry is missing.
    pub(super) interrupts_unknown: bool,
    pub(crate) events: u64,
    pub(crate) busy: u64,
    pub(crate) idle: u64,
}

impl CpuEntry {
    fn new(tick: Ticks) -> CpuEntry {
        CpuEntry {
            current: None,
            displaced: None,
            since: tick,
            confirmed: Ticks(0),
            first_switch: None,
            first_shown: None,
            unrecorded: None,
            losses: Vec::new(),
            interrupts: Vec::new(),
            gap: None,
            interrupts_unknown: false,
            events: 0,
            busy: 0,
            idle: 0,
        }
    }

    /// A different LWP is on the CPU from now on.
    pub(super) fn set_current(&mut self, lwp: Option<Lwp>, tick: Ticks) {
        self.settle(tick);
        self.current = lwp;
        self.confirmed = tick;
        self.displaced = None;
    }

    /// If this LWP was on the CPU, the LWP on the CPU is unknown from now on.
    pub(super) fn left_by(&mut self, lwp: Lwp, tick: Ticks) {
        if self.current == Some(lwp) {
            self.set_current(None, tick);
        }
    }

    /// The LWP that is on the CPU has recorded an event there.
    #[inline]
    pub(super) fn confirm(&mut self, tick: Ticks) {
        self.confirmed = tick;
    }

    /// The last instant at which the LWP on the CPU was certain; tick 0 if it never was.
    pub(super) fn confirmed(&self) -> Ticks {
        self.confirmed
    }

    /// Adds the time until now to the sums.
    pub(super) fn settle(&mut self, tick: Ticks) {
        let passed = tick.0 - self.since.0;
        match self.current {
            Some(Lwp::IDLE) => self.idle += passed,
            Some(_) => self.busy += passed,
            None => {}
        }
        self.since = tick;
    }

    /// An event shows an LWP on the CPU, before its first switch. While no source records the CPU, its switches are not
    /// missing.
    pub(super) fn shown(&mut self, tick: Ticks) {
        if self.unrecorded.is_none() {
            self.first_shown.get_or_insert(tick);
        }
    }

    /// No source records the switches of the CPU from here on. `source` was the last one that did.
    pub(super) fn end_recording(&mut self, cpu: Cpu, source: &str, tick: Ticks) {
        self.losses.extend(self.unfollowed(cpu, tick));
        (self.first_switch, self.first_shown) = (None, None);
        self.unrecorded.get_or_insert_with(|| (tick, source.into()));
    }

    /// A source records the CPU again.
    pub(super) fn begin_recording(&mut self, cpu: Cpu, tick: Ticks) {
        let Some((from, source)) = self.unrecorded.take() else { return };
        self.gap = self.gap.map(|to| to.min(tick));
        self.losses.push(unrecorded(cpu, &source, from, Some(tick)));
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.unrecorded.is_none()
    }

    /// What was unknown about the CPU, in time order. Called when the trace has ended.
    pub(super) fn losses(&self, cpu: Cpu, end: Ticks) -> Vec<Loss> {
        let still = self.unrecorded.as_ref().map(|(from, source)| unrecorded(cpu, source, *from, None));
        self.losses.iter().cloned().chain(self.unfollowed(cpu, end)).chain(still).collect()
    }

    /// The time before the CPU's first switch, if an event showed an LWP on it then.
    fn unfollowed(&self, cpu: Cpu, end: Ticks) -> Option<Loss> {
        let from = self.first_shown?;
        let to = self.first_switch.unwrap_or(end);
        let detail = format!("CPU {cpu}: who is on it before its first switch is known at its events only");
        let loss = Loss::new(LossKind::BeforeFirstSwitch, Level::Kern, detail);
        let unknown = to.0.checked_sub(from.0).filter(|length| *length > 0)?;
        Some(Loss {
            severity: Severity::Note,
            cpu: Some(cpu),
            from: Some(from),
            to: Some(to),
            unknown: Some(unknown),
            ..loss
        })
    }

    /// What the CPU was doing at one of its events. The event may also change the interrupts that the CPU is in.
    /// `counts` is true if some source does not state with every event whether the CPU is in an interrupt.
    #[inline]
    pub(super) fn context(
        &mut self,
        level: Level,
        event: &Event,
        lwp: Option<Lwp>,
        counts: bool,
    ) -> Option<Context> {
        if level == Level::User || matches!(event.effect, Effect::KernelSwitch { .. }) {
            // Neither of these happens in an interrupt. So if one is open, its exit was not traced.
            self.no_interrupts();
        }
        if let Effect::InterruptEnter(number) = event.effect {
            self.enter_interrupt(number);
        }
        let context = if self.interrupts.is_empty() { event.context } else { Context::Irq };
        if let Effect::InterruptExit(number) = event.effect {
            self.leave_interrupt(number);
            return Some(if event.context.is_task() { Context::Irq } else { event.context });
        }
        if context.is_task() && counts && self.interrupts_unknown {
            return None;
        }
        Some(if context.is_task() && lwp == Some(Lwp::IDLE) { Context::Idle } else { context })
    }

    /// Forgets the interrupts of the CPU, including unknown ones. Called when they are all over, because the CPU runs
    /// an LWP.
    fn no_interrupts(&mut self) {
        self.interrupts.clear();
        self.interrupts_unknown = false;
    }

    fn enter_interrupt(&mut self, number: i64) {
        if self.interrupts.len() == DEEPEST {
            self.interrupts.remove(0);
        }
        self.interrupts.push(number);
    }

    /// Leaves an interrupt, and the interrupts inside it whose exits were lost.
    fn leave_interrupt(&mut self, number: i64) {
        match self.interrupts.iter().rposition(|n| *n == number) {
            Some(place) => self.interrupts.truncate(place),
            None => drop(self.interrupts.pop()),
        }
    }
}

/// The time after one recording, up to the next one if there is one.
fn unrecorded(cpu: Cpu, source: &str, from: Ticks, to: Option<Ticks>) -> Loss {
    let until = if to.is_some() { "the next recording" } else { "the end of the trace" };
    let detail = format!("{source}: the kernel side ends here, and no other has CPU {cpu} before {until}");
    let advice = "record the kernel for as long as the program";
    let loss = Loss { advice, ..Loss::new(LossKind::NotRecorded, Level::Kern, detail) };
    // Every recording ends at some time, so that is a note. But between two recordings, the trace has a gap.
    let severity = if to.is_some() { Severity::Gap } else { Severity::Note };
    Loss { severity, cpu: Some(cpu), from: Some(from), to, ..loss }
}

/// All CPUs, by number.
#[derive(Debug, Default)]
pub(super) struct Cpus {
    table: Vec<Option<CpuEntry>>,
    beyond: BTreeMap<Cpu, CpuEntry>,
}

impl Cpus {
    #[inline]
    pub(super) fn get(&self, cpu: Cpu) -> Option<&CpuEntry> {
        match cpu.0 as usize {
            place if place < IN_TABLE => self.table.get(place)?.as_ref(),
            _ => self.beyond.get(&cpu),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, cpu: Cpu) -> Option<&mut CpuEntry> {
        match cpu.0 as usize {
            place if place < IN_TABLE => self.table.get_mut(place)?.as_mut(),
            _ => self.beyond.get_mut(&cpu),
        }
    }

    /// The CPU of this number. If it was not known yet, what is known about it begins at `tick`.
    #[inline]
    pub(super) fn entry(&mut self, cpu: Cpu, tick: Ticks) -> &mut CpuEntry {
        let place = cpu.0 as usize;
        if place >= IN_TABLE {
            return self.beyond.entry(cpu).or_insert_with(|| CpuEntry::new(tick));
        }
        if place >= self.table.len() {
            self.table.resize_with(place + 1, || None);
        }
        self.table[place].get_or_insert_with(|| CpuEntry::new(tick))
    }

    /// All CPUs in the order of their numbers.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Cpu, &mut CpuEntry)> {
        let of_table =
            (0..).map(Cpu).zip(&mut self.table).filter_map(|(cpu, entry)| Some((cpu, entry.as_mut()?)));
        of_table.chain(self.beyond.iter_mut().map(|(cpu, entry)| (*cpu, entry)))
    }

    /// All CPUs in the order of their numbers. Their times are counted until `tick`.
    pub(super) fn finish(self, tick: Ticks) -> Vec<(Cpu, CpuEntry)> {
        let of_table = (0..).map(Cpu).zip(self.table).filter_map(|(cpu, entry)| Some((cpu, entry?)));
        let settled = |(cpu, mut entry): (Cpu, CpuEntry)| {
            entry.settle(tick);
            (cpu, entry)
        };
        of_table.chain(self.beyond).map(settled).collect()
    }
}
