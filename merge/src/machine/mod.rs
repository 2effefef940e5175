//! The state of the machine, kept up to date by the switch events: CPU → LWP → user thread.
//!
//! Everything follows from two facts: which LWP is on which CPU (from the kernel's switches), and which user thread is
//! mounted on which LWP (from the runtime's switches). An interval is the time between two changes of one of these
//! facts.
//!
//! Evidence that contradicts the state (for example an LWP that runs while it should be off-CPU) means that events are
//! missing. Then the state follows the newer evidence, and the contradiction is counted. Rows are written when an
//! interval ends. So an interval that is contradicted is cut at the last event that confirmed it, and the state after
//! that is unknown ([`place`]).
//!
//! A CPU is followed from its first switch on. Before that, an event shows the place of its LWP only at that instant.
//! The same applies after the source that recorded the CPU has ended ([`recording`]). If streams report that events are
//! missing, everything that depends on these events becomes unknown: the rules are at the head of [`gaps`].

mod carried;
mod contradictions;
#[cfg(test)]
mod cost;
mod cpu;
mod gaps;
#[cfg(test)]
mod hostile;
mod intervals;
mod lwp;
mod pairs;
mod place;
mod processes;
mod recording;
mod roster;
mod thread;
mod waking;
mod witness;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{
    Context, Cpu, Effect, EndReason, Event, Hertz, Level, Loss, Lwp, LwpState, Pid, Reported, Thread, Ticks,
};

use self::{
    contradictions::{Contradiction, Contradictions},
    cpu::Cpus,
    gaps::Gaps,
    lwp::{LwpEntry, Mounted, Written},
    processes::Processes,
    roster::Roster,
    thread::ThreadEntry,
};
pub(crate) use self::{
    cpu::CpuEntry,
    intervals::Intervals,
    recording::{Begin, End},
    witness::Witnesses,
};
use crate::{error::Error, source::Recorded};

/// The place that an event was assigned to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) cpu: Option<Cpu>,
    pub(crate) lwp: Option<Lwp>,
    pub(crate) thread: Option<Thread>,
    pub(crate) context: Option<Context>,
    pub(crate) target_lwp: Option<Lwp>,
    pub(crate) target_thread: Option<Thread>,
}

/// The results. Available when the trace has ended.
pub(crate) struct Finished {
    pub(crate) intervals: Intervals,
    /// In the order of their numbers.
    pub(crate) cpus: Vec<(Cpu, CpuEntry)>,
    /// What was unknown, and what was contradictory.
    pub(crate) losses: Vec<Loss>,
    pub(crate) witnesses: Witnesses,
}

/// An LWP that has events in user traces.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    /// The process of the LWP; `None` if several processes have events of an LWP with this number.
    pid: Option<Pid>,
    /// Whether several LWPs may have had this number.
    several: bool,
    /// Of the last events of each process with this LWP number, the earliest.
    first_end: Ticks,
}

type Carriers = HashMap<Lwp, Carrier, RandomState>;

/// The LWP that recorded an event, if the event names it.
#[inline]
fn recorder(event: &Event) -> Option<Lwp> {
    match event.effect {
        Effect::KernelSwitch { prev, .. } => event.lwp.or(prev),
        _ => event.lwp,
    }
}

/// The state of the machine: which LWP is on each CPU, and which user thread on each LWP.
pub(crate) struct Machine {
    /// The newest tick so far.
    now: Ticks,
    /// Ticks per second, if that is known.
    pub(crate) tick_hz: Option<Hertz>,
    cpus: Cpus,
    lwps: Roster<Lwp, LwpEntry>,
    threads: Roster<Thread, ThreadEntry>,
    gaps: Gaps,
    processes: Processes,
    carriers: Carriers,
    /// The last user event of each LWP of a process.
    ends: HashMap<(Lwp, Pid), Ticks, RandomState>,
    /// Whether interrupts are counted. This is necessary if a source does not state with every event what the CPU was
    /// doing.
    counts_interrupts: bool,
    /// Whether the CPU that a probe has recorded is taken as the place of its LWP, if nothing else is known. This
    /// requires switches of the kernel: without them, nothing would ever take the LWP off the CPU again.
    probes_place: bool,
    /// Whether the kernel trace leaves out switches between LWPs that were not requested. Then it is no contradiction
    /// if a CPU has an LWP other than the one according to the switches.
    others_unseen: bool,
    /// Whether the LWP on a CPU is known even before its first switch, because a source that records now misses no
    /// switch.
    misses_no_switch: bool,
    /// Whether wakings have been followed by wakeups. Then the wakeups determine when an LWP was runnable.
    wakeups_follow: bool,
    intervals: Intervals,
    contradictions: Contradictions,
    witnesses: Witnesses,
}

impl Machine {
    /// A machine with an unknown state.
    pub(crate) fn new(intervals: Intervals, probes_place: bool) -> Machine {
        Machine {
            now: Ticks(0),
            tick_hz: None,
            cpus: Cpus::default(),
            lwps: Roster::new(),
            threads: Roster::new(),
            gaps: Gaps::default(),
            processes: Processes::default(),
            carriers: HashMap::default(),
            ends: HashMap::default(),
            counts_interrupts: false,
            probes_place,
            others_unseen: false,
            misses_no_switch: false,
            wakeups_follow: false,
            intervals,
            contradictions: Contradictions::default(),
            witnesses: Witnesses::default(),
        }
    }

    /// Switches between LWPs other than the program's were left out on purpose.
    pub(crate) fn others_are_unseen(&mut self) {
        self.others_unseen = true;
    }

    /// No switch is missing after the first event of a CPU. This also applies to sources without kernel events.
    pub(crate) fn follow_from_start(&mut self) {
        self.misses_no_switch = true;
    }

    /// An LWP has this command name from now on.
    pub(crate) fn name_lwp(&mut self, lwp: Lwp, name: &str) {
        self.intervals.name_lwp(lwp, name);
    }

    /// There are user events of this LWP, or it has lost all of them.
    pub(crate) fn expect(&mut self, recorded: &Recorded) {
        let Recorded { lwp, pid, last, several } = *recorded;
        self.ends.entry((lwp, pid)).and_modify(|known| *known = last.max(*known)).or_insert(last);
        let new = Carrier { pid: Some(pid), several, first_end: last };
        let carrier = self.carriers.entry(lwp).or_insert(new);
        carrier.pid = carrier.pid.filter(|known| *known == pid);
        carrier.several |= several || carrier.pid.is_none();
        carrier.first_end = carrier.first_end.min(last);
    }

    /// An LWP lost this number of events.
    pub(crate) fn lost(&mut self, lwp: Lwp, events: u64) {
        let lost = self.intervals.lost.entry(lwp).or_default();
        *lost = lost.saturating_add(events);
    }

    /// A thread has this name.
    pub(crate) fn name_thread(&mut self, thread: Thread, name: &str) {
        self.intervals.thread_names.insert(thread, name.into());
    }

    /// Determines where an event happened, and changes the state accordingly. `pid` is the process of a user event, if
    /// its source states it. `declared` is the thread that one of its declared fields names. The result is written to
    /// `placed`: as a return value it would be copied twice right after it was written, and the CPU would wait for
    /// that.
    pub(crate) fn take(
        &mut self,
        level: Level,
        pid: Option<Pid>,
        event: &Event,
        declared: Option<Thread>,
        placed: &mut Placed,
    ) -> Result<(), Error> {
        self.go_to(event.tick)?;
        if level == Level::Kern && self.take_quiet(event, declared, placed) == Some(()) {
            return Ok(());
        }
        let (cpu, lwp) = match level {
            Level::Kern => self.kernel_place(event)?,
            Level::User => self.user_place(event)?,
        };
        if let (Level::User, Some(lwp), Some(pid)) = (level, lwp, pid) {
            self.belongs_to(lwp, pid)?;
        }
        let context = self.context(level, event, cpu, lwp);
        let thread = self.thread_of(level, event, lwp, context)?;
        let (target_lwp, target_thread) = self.targets(event, declared);
        *placed = Placed { cpu, lwp, thread, context, target_lwp, target_thread };
        self.count(level, cpu, lwp, event);
        self.apply(event, placed)?;
        if level == Level::User
            && let Some(lwp) = lwp
        {
            self.watch_end(lwp)?;
        }
        Ok(())
    }

    /// The next event is at this tick. Opens the gaps before it.
    #[inline]
    fn go_to(&mut self, tick: Ticks) -> Result<(), Error> {
        if self.gaps.next.is_some_and(|next| next < tick) {
            self.open_gaps_before(tick)?;
        }
        self.now = tick;
        Ok(())
    }

    /// A fast path. Most kernel events change nothing, and are recorded by the LWP that is known to be on their CPU.
    /// For such an event, the CPU and the LWP are looked up only once each. The result is the same as that of the rest
    /// of [`take`](Self::take). `None` for any other event.
    #[inline]
    fn take_quiet(&mut self, event: &Event, declared: Option<Thread>, placed: &mut Placed) -> Option<()> {
        if !matches!((event.effect, event.thread), (Effect::None, Reported::Nothing)) {
            return None;
        }
        let cpu = self.cpus.get_mut(event.cpu?)?;
        let lwp = cpu.current.filter(|current| event.lwp.is_none_or(|lwp| lwp == *current))?;
        let entry = if lwp == Lwp::IDLE { None } else { Some(self.lwps.get_mut(lwp)?) };
        let context = cpu.context(Level::Kern, event, Some(lwp), self.counts_interrupts);
        cpu.events += 1;
        if event.lwp.is_some() {
            cpu.confirm(event.tick);
        }
        let carried = entry.and_then(|entry| {
            entry.count(event.lwp.is_some(), event.tick);
            entry.mounted.thread()
        });
        placed.cpu = event.cpu;
        placed.lwp = Some(lwp);
        placed.thread = carried.filter(|_| context.is_some_and(Context::is_task));
        placed.context = context;
        placed.target_lwp = None;
        placed.target_thread = declared;
        Some(())
    }

    /// The place of a kernel event: its CPU, and the LWP on that CPU.
    fn kernel_place(&mut self, event: &Event) -> Result<(Option<Cpu>, Option<Lwp>), Error> {
        let said = recorder(event);
        let cpu = event.cpu.or_else(|| said.and_then(|lwp| self.cpu_of(lwp)));
        if let (Some(cpu), Some(lwp)) = (cpu, said)
            && event.effect != Effect::LwpArrive
        {
            self.may_have_executed(lwp, cpu, event.tick)?;
            let is_switch = matches!(event.effect, Effect::KernelSwitch { .. } | Effect::LwpLeave { .. });
            self.recorded_on(lwp, cpu, is_switch, event.tick)?;
        }
        let lwp = said.or_else(|| cpu.and_then(|cpu| self.cpus.get(cpu)?.current));
        Ok((cpu, lwp))
    }

    /// What the CPU was doing. Kernel events of most sources state it; for the others, interrupts are counted.
    fn context(
        &mut self,
        level: Level,
        event: &Event,
        cpu: Option<Cpu>,
        lwp: Option<Lwp>,
    ) -> Option<Context> {
        self.counts_interrupts |=
            matches!(event.effect, Effect::InterruptEnter(_) | Effect::InterruptExit(_));
        let counts = self.counts_interrupts;
        match cpu {
            Some(cpu) => self.cpu(cpu, event.tick).context(level, event, lwp, counts),
            None => Some(event.context),
        }
    }

    /// The user thread that executed. It is compared with the thread that the event names.
    fn thread_of(
        &mut self,
        level: Level,
        event: &Event,
        lwp: Option<Lwp>,
        context: Option<Context>,
    ) -> Result<Option<Thread>, Error> {
        let Some(lwp) = lwp.filter(|_| context.is_some_and(Context::is_task)) else {
            return Ok(if let Reported::Some(thread) = event.thread { Some(thread) } else { None });
        };
        let mounted = self.lwps.get(lwp).map_or(Mounted::Unknown, |entry| entry.mounted);
        match event.thread {
            Reported::Some(thread) => {
                self.believe(lwp, mounted, Some(thread), event)?;
                Ok(Some(thread))
            }
            Reported::None if level == Level::User => {
                self.believe(lwp, mounted, None, event)?;
                Ok(None)
            }
            Reported::None => Ok(None),
            Reported::Nothing => Ok(mounted.thread()),
        }
    }

    /// The source names the mounted thread.
    fn believe(
        &mut self,
        lwp: Lwp,
        known: Mounted,
        said: Option<Thread>,
        event: &Event,
    ) -> Result<(), Error> {
        let tick = event.tick;
        if known == Mounted::from(said) {
            self.lwp(lwp, tick).mounted_seen = tick;
            return Ok(());
        }
        // An LWP that begins to record carries no thread, even if one was mounted before its process executed a new
        // program.
        if known != Mounted::Unknown && !matches!(event.effect, Effect::LwpAttach { .. }) {
            let detail = format!("LWP {lwp}: {:?} by the switches, {said:?} by its packet", known.thread());
            self.contradictions.add(Contradiction::OtherThread, tick, detail);
            self.doubt_mounted(lwp, Contradiction::OtherThread, tick)?;
        }
        self.mount(lwp, said, thread::Left::resync(), tick)
    }

    fn targets(&self, event: &Event, declared: Option<Thread>) -> (Option<Lwp>, Option<Thread>) {
        let on = |lwp: Lwp| self.lwps.get(lwp).and_then(|entry| entry.mounted.thread());
        match event.effect {
            Effect::KernelSwitch { next: Lwp::IDLE, .. } => (None, None),
            Effect::KernelSwitch { next: lwp, .. }
            | Effect::LwpWaking(lwp)
            | Effect::LwpWakeup { lwp, .. }
            | Effect::LwpMigrate { lwp, .. } => (Some(lwp), on(lwp)),
            Effect::LwpNew(lwp) => (Some(lwp), None),
            Effect::UserSwitch { next, .. } => (None, next),
            Effect::ThreadNew(thread) | Effect::ThreadReady(thread) => (None, Some(thread)),
            _ => (None, declared),
        }
    }

    fn count(&mut self, level: Level, cpu: Option<Cpu>, lwp: Option<Lwp>, event: &Event) {
        let tick = event.tick;
        if let (Level::Kern, Some(cpu)) = (level, cpu) {
            self.cpu(cpu, tick).events += 1;
        }
        if let Some(lwp) = lwp.filter(|lwp| *lwp != Lwp::IDLE) {
            let entry = self.lwp(lwp, tick);
            entry.count(recorder(event).is_some(), tick);
            if level == Level::User {
                entry.carries_threads = true;
                entry.recorded_since.add(Written { events: 1, words: event.params.words() });
            }
        }
    }

    fn apply(&mut self, event: &Event, placed: &Placed) -> Result<(), Error> {
        let tick = event.tick;
        match event.effect {
            Effect::None | Effect::InterruptEnter(_) | Effect::InterruptExit(_) => Ok(()),
            Effect::LwpWaking(lwp) => {
                self.pair_waking(lwp, placed, tick)?;
                self.waking(lwp, tick);
                Ok(())
            }
            Effect::KernelSwitch { prev, prev_state, next } => {
                let Some(cpu) = placed.cpu else { return Ok(()) };
                let left_in = prev_state.unwrap_or(LwpState::OffCpu.into());
                if let Some(prev) = prev.or(placed.lwp) {
                    self.leave(prev, cpu, left_in, tick)?;
                }
                self.arrive(next, cpu, tick)
            }
            Effect::LwpLeave { state } => match (placed.lwp, placed.cpu) {
                (Some(lwp), Some(cpu)) => self.leave(lwp, cpu, state.into(), tick),
                _ => Ok(()),
            },
            Effect::LwpArrive => match (placed.lwp, placed.cpu) {
                (Some(lwp), Some(cpu)) => self.arrive(lwp, cpu, tick),
                _ => Ok(()),
            },
            Effect::LwpWakeup { lwp, cpu } => {
                self.pair_wakeup(lwp, cpu, placed, tick)?;
                self.wake(lwp, cpu, tick)
            }
            Effect::LwpMigrate { lwp, cpu } => self.queue_on(lwp, cpu, tick),
            Effect::LwpNew(lwp) => {
                self.lwp_new(lwp, tick)?;
                self.child_of(placed.lwp, lwp);
                Ok(())
            }
            Effect::LwpExit => {
                if let Some(lwp) = placed.lwp.filter(|lwp| *lwp != Lwp::IDLE) {
                    self.lwp(lwp, tick).exiting = true;
                }
                Ok(())
            }
            // If it is only assumed that this LWP has recorded the event, its CPU times are not compared later.
            Effect::LwpAttach { pid, cpu_time_ns } => {
                if let Some(lwp) = placed.lwp.filter(|_| event.lwp.is_some()) {
                    self.lwp(lwp, tick).attach(pid, cpu_time_ns, tick);
                }
                Ok(())
            }
            Effect::LwpDetach { cpu_time_ns } => {
                if let Some(lwp) = placed.lwp.filter(|_| event.lwp.is_some()) {
                    self.lwp(lwp, tick).detach(cpu_time_ns, tick);
                }
                Ok(())
            }
            Effect::UserSwitch { next, reason, wait } => match placed.lwp {
                Some(lwp) => self.mount(lwp, next, thread::Left::new(reason, wait), tick),
                None => Ok(()),
            },
            Effect::ThreadNew(thread) => self.thread_new(thread, event, placed),
            Effect::ThreadReady(thread) => {
                self.thread_ready(thread, placed.lwp, tick)?;
                self.pair_unpark(thread, placed, tick)
            }
        }
    }

    /// Ends the trace. Open intervals end with it.
    pub(crate) fn finish(mut self, tick: Ticks) -> Result<Finished, Error> {
        self.end_pairs(tick)?;
        let mut lwps: Vec<LwpEntry> = self.lwps.into_values().collect();
        lwps.sort_by_key(|entry| entry.lwp);
        for mut entry in lwps {
            waking::settle(&mut self.intervals, &mut self.threads, &mut entry, !self.wakeups_follow)?;
            self.intervals.close_stretch(&mut entry, &mut self.threads, tick, EndReason::TraceEnd)?;
            self.intervals.close_place(&mut entry, tick, EndReason::TraceEnd)?;
            thread::settle_recorded(&mut entry, &mut self.threads);
            self.contradictions.end_doubt(&mut entry, tick);
            entry.pid = self.processes.ended(&entry, self.gaps.cpu_opened.is_none());
            self.processes.lwp_of(&entry, None, self.intervals.name_of(entry.lwp), &self.gaps);
            self.intervals.lwp(&entry, None)?;
        }
        let mut threads: Vec<ThreadEntry> = self.threads.into_values().collect();
        threads.sort_by_key(|entry| entry.thread);
        for mut entry in threads {
            self.intervals.close_thread_state(&mut entry, tick, EndReason::TraceEnd)?;
            self.intervals.thread(&entry, None)?;
        }
        self.processes.write(&mut self.intervals.processes)?;
        let Machine { intervals, cpus, contradictions, witnesses, .. } = self;
        let cpus = cpus.finish(tick);
        let unfollowed = cpus.iter().flat_map(|(cpu, entry)| entry.losses(*cpu, tick)).collect();
        let losses = [unfollowed, contradictions.into_losses()].concat();
        Ok(Finished { intervals, cpus, losses, witnesses })
    }
}
