//! LWPs come to CPUs and leave them. This happens by switches; where a switch is missing, other events show it.
//!
//! These events confirm the place that an LWP is assumed to have, so that it is known up to there if it is contradicted
//! later:
//!
//! 1. On a CPU: each event that names this LWP as its recorder.
//! 2. Runnable in the run queue of a CPU: if an event on that CPU contradicts it, each earlier event that shows another
//!    LWP, or the idle task, on that CPU; also its move from one run queue to another. A wakeup does not confirm it,
//!    because an LWP that is about to sleep is woken while it is still on its CPU.
//! 3. Off-CPU for other reasons: only the event with which it began.

use sigmund_model::{Cpu, EndReason, Lwp, LwpState, Pid, PrevState, Ticks};

use super::{
    Carriers, Machine,
    contradictions::Contradiction,
    cpu::CpuEntry,
    lwp::{By, LwpEntry, Place},
    waking,
};
use crate::error::Error;

/// The evidence that an LWP has come to a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// A switch put it there.
    Switched,
    /// Another event shows it. That contradicts the state; the contradiction may already be counted.
    Shown(Option<Contradiction>),
}

impl Machine {
    pub(super) fn cpu(&mut self, cpu: Cpu, tick: Ticks) -> &mut CpuEntry {
        self.cpus.entry(cpu, tick)
    }

    pub(super) fn lwp(&mut self, lwp: Lwp, tick: Ticks) -> &mut LwpEntry {
        let Machine { lwps, carriers, .. } = self;
        lwps.entry(lwp, || new_lwp(carriers, lwp, tick))
    }

    /// The CPU that an LWP is on.
    pub(super) fn cpu_of(&self, lwp: Lwp) -> Option<Cpu> {
        self.lwps.get(lwp)?.place.cpu()
    }

    /// Whether the LWP on a CPU is known. That is so from the CPU's first switch on, in each recording. A recorder
    /// switches on one tracepoint after the other, and one CPU after the other. So a switch may be missing after the
    /// first event of a CPU.
    pub(super) fn is_followed(&self, cpu: Cpu) -> bool {
        self.misses_no_switch || self.cpus.get(cpu).is_some_and(|entry| entry.first_switch.is_some())
    }

    /// A kernel event on a CPU names this LWP, or the idle task, as its recorder.
    pub(super) fn recorded_on(
        &mut self,
        lwp: Lwp,
        cpu: Cpu,
        is_switch: bool,
        tick: Ticks,
    ) -> Result<(), Error> {
        let entry = self.cpu(cpu, tick);
        if is_switch {
            entry.first_switch.get_or_insert(tick);
        }
        if entry.current == Some(lwp) {
            entry.confirm(tick);
            return Ok(());
        }
        if self.is_followed(cpu) && self.close_cpu_gap(cpu, tick) {
            self.shown(lwp, cpu, By::Kernel, None, tick)
        } else {
            self.shown_for_an_instant(lwp, cpu, tick)
        }
    }

    /// An event shows that an LWP is on a CPU where no switch has put it (some kernels do not trace all switches). Its
    /// assumed place is certain up to the last instant at which something showed it there, and unknown from then until
    /// this event. `counted` is the contradiction, if the caller has already counted it.
    pub(super) fn shown(
        &mut self,
        lwp: Lwp,
        cpu: Cpu,
        by: By,
        counted: Option<Contradiction>,
        tick: Ticks,
    ) -> Result<(), Error> {
        self.take_cpu(lwp, cpu, by, How::Shown(counted), tick)
    }

    /// A switch puts an LWP on a CPU. If another LWP was assumed to be there, it is not.
    pub(super) fn arrive(&mut self, lwp: Lwp, cpu: Cpu, tick: Ticks) -> Result<(), Error> {
        self.cpu(cpu, tick).first_switch.get_or_insert(tick);
        if !self.close_cpu_gap(cpu, tick) {
            return Ok(());
        }
        self.take_cpu(lwp, cpu, By::Kernel, How::Switched, tick)
    }

    /// An LWP is on a CPU from now on.
    fn take_cpu(&mut self, lwp: Lwp, cpu: Cpu, by: By, how: How, tick: Ticks) -> Result<(), Error> {
        let before = self.cpu(cpu, tick).current;
        if before == Some(lwp) {
            return self.confirm(lwp, cpu, by, tick);
        }
        // This uses the state before the change.
        let certain = self.certain_until(lwp, Some(cpu));
        let mut what = if let How::Shown(counted) = how { counted } else { None };
        if let Some(other) = before {
            what = self.note_displaced(other, lwp, cpu, tick).or(what);
            self.gone_unseen(other, cpu, what, tick)?;
        }
        if let Some(elsewhere) = self.cpu_of(lwp) {
            if !self.is_placed_by_probe(lwp) && !self.others_unseen {
                let detail = format!("LWP {lwp}: on CPU {elsewhere}, then on CPU {cpu}");
                self.contradictions.add(Contradiction::TwoCpus, tick, detail);
                what = Some(Contradiction::TwoCpus);
            }
            self.cpu(elsewhere, tick).left_by(lwp, certain);
            self.doubt(lwp, what, certain, tick)?;
        } else if matches!(how, How::Shown(_)) {
            self.doubt(lwp, what, certain, tick)?;
        }
        let entry = self.cpu(cpu, tick);
        entry.set_current(Some(lwp), tick);
        entry.displaced = before;
        self.place(lwp, Place::On(cpu, by), tick, EndReason::Dispatched)
    }

    /// An event shows an LWP on a CPU of which it is unknown which LWP is on it before and after. So the event shows
    /// only that the LWP is not in its assumed place.
    pub(super) fn shown_for_an_instant(&mut self, lwp: Lwp, cpu: Cpu, tick: Ticks) -> Result<(), Error> {
        if lwp == Lwp::IDLE {
            return Ok(());
        }
        if !self.is_followed(cpu) {
            self.cpu(cpu, tick).shown(tick);
        }
        let certain = self.certain_until(lwp, Some(cpu));
        let what = match self.lwps.get(lwp).map(|entry| entry.place) {
            Some(Place::On(elsewhere, _)) if elsewhere != cpu => {
                self.cpu(elsewhere, tick).left_by(lwp, certain);
                let what = Contradiction::TwoCpus;
                self.contradictions.add(what, tick, format!("LWP {lwp} on CPU {cpu}"));
                return self.lose_place(lwp, Some(what), certain, tick);
            }
            Some(Place::Off(_)) => Contradiction::RanOffCpu,
            _ => return Ok(()),
        };
        self.contradictions.add(what, tick, format!("LWP {lwp} on CPU {cpu}"));
        self.doubt(lwp, Some(what), certain, tick)
    }

    /// An LWP recorded an event, but not on which CPU.
    pub(super) fn shown_somewhere(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        if !matches!(self.lwps.get(lwp).map(|entry| entry.place), Some(Place::Off(_))) {
            return Ok(());
        }
        let what = Contradiction::RanOffCpu;
        self.contradictions.add(what, tick, format!("LWP {lwp}, on a CPU that its probe did not see"));
        self.doubt(lwp, Some(what), self.certain_until(lwp, None), tick)
    }

    /// The last instant at which something showed an LWP in its assumed place. An event on `cpu` that shows the LWP
    /// there now does not count.
    fn certain_until(&self, lwp: Lwp, cpu: Option<Cpu>) -> Ticks {
        let Some(entry) = self.lwps.get(lwp) else { return Ticks(0) };
        // An event that showed the mounted thread was recorded in this place, too.
        let since = entry.place_since.max(entry.mounted_seen);
        match entry.place {
            Place::On(..) => since.max(entry.last_seen),
            // While other LWPs were on the CPU whose run queue the LWP was in, it was on no CPU.
            Place::Off(LwpState::Runnable) => match cpu.filter(|cpu| entry.waits_for(*cpu)) {
                Some(cpu) => since.max(entry.moved).max(self.somebody_on(cpu)),
                None => since.max(entry.moved),
            },
            Place::Off(_) => since.max(entry.moved),
            Place::Unknown | Place::Lost => since,
        }
    }

    /// The last instant at which something confirmed the LWP that is on a CPU according to the switches.
    fn somebody_on(&self, cpu: Cpu) -> Ticks {
        let Some(entry) = self.cpus.get(cpu) else { return Ticks(0) };
        let last_seen = entry.current.and_then(|lwp| self.lwps.get(lwp)).map(|lwp| lwp.last_seen);
        entry.confirmed().max(last_seen.unwrap_or_default())
    }

    /// The assumed place of an LWP is certain up to `certain`, and unknown after that, because of a contradiction found
    /// at `tick`.
    fn doubt(
        &mut self,
        lwp: Lwp,
        what: Option<Contradiction>,
        certain: Ticks,
        tick: Ticks,
    ) -> Result<(), Error> {
        let is_known =
            self.lwps.get(lwp).is_some_and(|entry| matches!(entry.place, Place::On(..) | Place::Off(_)));
        if !is_known || certain >= tick { Ok(()) } else { self.lose_place(lwp, what, certain, tick) }
    }

    fn lose_place(
        &mut self,
        lwp: Lwp,
        what: Option<Contradiction>,
        certain: Ticks,
        tick: Ticks,
    ) -> Result<(), Error> {
        self.place(lwp, Place::Lost, certain, EndReason::Resync)?;
        // If only the program's LWPs were recorded, a switch between two other LWPs was left out on purpose.
        let what = what.or_else(|| {
            let detail = format!("LWP {lwp}, before tick {}", tick.0);
            let is_contradiction = !self.others_unseen;
            is_contradiction.then(|| {
                self.contradictions.add(Contradiction::UnseenDeparture, tick, detail);
                Contradiction::UnseenDeparture
            })
        });
        self.lwp(lwp, tick).doubted = what;
        Ok(())
    }

    /// Whether an event of an LWP on a CPU proves that a switch was not traced. That is so if the LWP was runnable in
    /// the run queue of that CPU while, according to the switches, the CPU has another LWP or the idle task.
    pub(super) fn is_unseen_switch(&self, lwp: Lwp, cpu: Cpu) -> bool {
        let waits = self.lwps.get(lwp).is_some_and(|entry| entry.waits_for(cpu));
        waits && self.cpus.get(cpu).is_some_and(|cpu| cpu.current.is_some())
    }

    /// An event shows an LWP on a CPU that has another one according to the switches. Returns what that contradicts.
    fn note_displaced(&mut self, other: Lwp, lwp: Lwp, cpu: Cpu, tick: Ticks) -> Option<Contradiction> {
        // If an LWP was displaced and something has been seen of it since (for example its wakeup), it is known that it
        // had left.
        let is_unheard = self.lwps.get(lwp).is_none_or(|entry| entry.place == Place::Lost);
        let is_back = is_unheard && self.cpus.get(cpu).is_some_and(|entry| entry.displaced == Some(lwp));
        let retracted = if is_back { self.retract(other, lwp, cpu, tick) } else { None };
        let (what, detail) = match other {
            // LWPs that were on the CPU in between are not traced.
            _ if self.others_unseen => return retracted,
            Lwp::IDLE => {
                (Contradiction::UnseenSwitch, format!("CPU {cpu}: LWP {lwp}, at tick {} or before", tick.0))
            }
            _ if self.is_unseen_switch(lwp, cpu) => (
                Contradiction::UnseenTakeover,
                format!("CPU {cpu}: LWP {lwp} in place of LWP {other}, at tick {} or before", tick.0),
            ),
            _ if self.is_placed_by_probe(other) => return retracted,
            _ => (
                Contradiction::OtherLwp,
                format!("CPU {cpu}: LWP {other} by the switches, LWP {lwp} by the event"),
            ),
        };
        self.contradictions.add(what, tick, detail);
        Some(what)
    }

    fn is_placed_by_probe(&self, lwp: Lwp) -> bool {
        self.lwps.get(lwp).is_some_and(|entry| matches!(entry.place, Place::On(_, By::Probe)))
    }

    /// An LWP left its CPU at an unobserved time: it was there when it recorded its last event, and is not there at
    /// `tick`. Its place is unknown after that last event, until an event shows it again.
    fn gone_unseen(
        &mut self,
        lwp: Lwp,
        cpu: Cpu,
        what: Option<Contradiction>,
        tick: Ticks,
    ) -> Result<(), Error> {
        if lwp == Lwp::IDLE || self.lwps.get(lwp).is_none() {
            let entry = self.cpu(cpu, tick);
            entry.set_current(None, entry.confirmed());
            return Ok(());
        }
        let certain = self.certain_until(lwp, None);
        self.cpu(cpu, tick).set_current(None, certain);
        self.lose_place(lwp, what, certain, tick)
    }

    /// The place of the LWP is confirmed, perhaps now also by the kernel.
    fn confirm(&mut self, lwp: Lwp, cpu: Cpu, by: By, tick: Ticks) -> Result<(), Error> {
        if by == By::Kernel && lwp != Lwp::IDLE {
            self.lwp(lwp, tick).place = Place::On(cpu, By::Kernel);
            self.second_witness(lwp, tick);
        }
        Ok(())
    }

    /// An LWP leaves its CPU, in the state `left`.
    pub(super) fn leave(&mut self, lwp: Lwp, cpu: Cpu, left: PrevState, tick: Ticks) -> Result<(), Error> {
        let state = left.state;
        if let Some(other) = self.cpu(cpu, tick).current.filter(|other| *other != lwp) {
            // Damaged: the switch names an LWP other than the one that recorded it.
            self.gone_unseen(other, cpu, None, tick)?;
        }
        self.cpu(cpu, tick).set_current(None, tick);
        if lwp == Lwp::IDLE {
            return Ok(());
        }
        if self.cpu_of(lwp) == Some(cpu) {
            self.second_witness(lwp, tick);
        }
        // An LWP that is exiting may still sleep. Only if the source has no states, leaving the CPU is its end.
        let ends = state == LwpState::Exited || (state == LwpState::OffCpu && self.lwp(lwp, tick).exiting);
        let state = if ends { LwpState::Exited } else { state };
        let reason = match state {
            LwpState::Runnable => self.lwp(lwp, tick).call.reason_to_leave_runnable(),
            LwpState::Exited => EndReason::Exit,
            LwpState::OffCpu => EndReason::KernelSwitch,
            _ => EndReason::Slept,
        };
        let entry = self.lwp(lwp, tick);
        entry.left_in = left.reported;
        entry.call.leaves_cpu(!matches!(state, LwpState::Runnable | LwpState::Exited), tick);
        self.place(lwp, Place::Off(state), tick, reason)?;
        if ends { self.lwp_gone(lwp, tick) } else { Ok(()) }
    }

    /// An LWP becomes runnable.
    pub(super) fn wake(&mut self, lwp: Lwp, cpu: Option<Cpu>, tick: Ticks) -> Result<(), Error> {
        if let Some(cpu) = cpu {
            self.lwp(lwp, tick).queue = Some(cpu);
            self.count_runnable(lwp, tick)?;
        }
        // An LWP that is about to sleep is woken on the CPU on which it still is.
        let may_be_on = cpu.is_some_and(|cpu| self.cpus.get(cpu).is_none_or(|c| c.current.is_none()));
        let entry = self.lwp(lwp, tick);
        let (place, first, is_new) = (entry.place, entry.first, entry.is_new);
        let is_new = is_new && self.gaps.cpu_opened.is_none_or(|opened| opened < first);
        self.wakeups_follow |= self.lwp(lwp, tick).waking.take().is_some();
        match place {
            Place::On(..) => Ok(()),
            // A new LWP has never been on a CPU.
            Place::Unknown if may_be_on && !is_new => {
                self.lwp(lwp, tick).heard_of(tick);
                Ok(())
            }
            // The LWP may still be on a CPU whose switches are not traced yet.
            Place::Lost if cpu.is_some_and(|cpu| !self.is_followed(cpu)) => Ok(()),
            Place::Unknown | Place::Off(_) | Place::Lost => {
                self.place(lwp, Place::Off(LwpState::Runnable), tick, EndReason::Woken)
            }
        }
    }

    /// An LWP is moved to the run queue of this CPU.
    pub(super) fn queue_on(&mut self, lwp: Lwp, cpu: Cpu, tick: Ticks) -> Result<(), Error> {
        let entry = self.lwp(lwp, tick);
        (entry.queue, entry.moved) = (Some(cpu), tick);
        self.count_runnable(lwp, tick)
    }

    /// An LWP is created. An earlier LWP with its number has ended, observed or not.
    pub(super) fn lwp_new(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        let pid = self.processes.of(lwp);
        if self.lwps.get(lwp).is_some() {
            self.end_in_kernel_unseen(lwp)?;
            self.place(lwp, Place::Off(LwpState::Exited), tick, EndReason::Resync)?;
            self.lwp_gone(lwp, tick)?;
        }
        self.number_is_used_again(lwp, pid);
        self.intervals.lwp_names.remove(&lwp);
        // Its state is known, unless it may be put on a CPU unobserved, now or in a gap before it is woken.
        let is_new = !self.gaps.hide_lwps(tick);
        let entry = self.lwp(lwp, tick);
        (entry.is_new, entry.was_created) = (is_new, true);
        Ok(())
    }

    pub(super) fn lwp_gone(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        if let Some(entry) = self.lwps.get(lwp)
            && entry.mounted.thread().is_some()
        {
            self.mount(lwp, None, super::thread::Left::resync(), tick)?;
        }
        self.pair_lwp_end(lwp, tick)?;
        let Some(mut entry) = self.lwps.remove(lwp) else { return Ok(()) };
        super::thread::settle_recorded(&mut entry, &mut self.threads);
        // If several LWPs had this number, the gap may be that of another one. The same holds if this LWP has shown no
        // user event.
        if entry.carries_threads && self.carriers.get(&lwp).is_some_and(|carrier| !carrier.several) {
            self.gaps.end_lwp(lwp, tick);
        }
        self.contradictions.end_doubt(&mut entry, tick);
        self.intervals.close_place(&mut entry, tick, EndReason::Exit)?;
        entry.pid = self.processes.ended(&entry, self.gaps.cpu_opened.is_none());
        self.processes.lwp_of(&entry, Some(tick), self.intervals.name_of(lwp), &self.gaps);
        self.intervals.lwp(&entry, Some(tick))
    }

    /// Changes the place of an LWP. Intervals end and begin.
    pub(super) fn place(
        &mut self,
        lwp: Lwp,
        place: Place,
        tick: Ticks,
        reason: EndReason,
    ) -> Result<(), Error> {
        if lwp == Lwp::IDLE {
            return Ok(());
        }
        let Machine { lwps, carriers, gaps, .. } = self;
        let entry = lwps.entry(lwp, || new_lwp(carriers, lwp, tick));
        let was_on = matches!(entry.place, Place::On(..));
        let is_doubted = (place, reason) == (Place::Lost, EndReason::Resync);
        let place = match place {
            Place::Off(state) if state != LwpState::Exited && gaps.hide_lwps(tick) => Place::Lost,
            place => place,
        };
        if entry.place == place {
            return Ok(());
        }
        let is_dispatch = matches!(place, Place::On(..));
        let counts = entry.waking.is_some_and(|waking| waking <= tick);
        let counts = counts && (is_dispatch || !self.wakeups_follow);
        waking::settle(&mut self.intervals, &mut self.threads, entry, counts)?;
        entry.is_new = false;
        self.intervals.close_stretch(entry, &mut self.threads, tick, reason)?;
        self.intervals.close_place(entry, tick, reason)?;
        self.contradictions.end_doubt(entry, tick);
        if let Place::On(cpu, _) = entry.place
            && !matches!(place, Place::On(same, _) if same == cpu)
            && let Some(cpu) = self.cpus.get_mut(cpu)
        {
            cpu.left_by(lwp, tick);
        }
        let before = std::mem::replace(&mut entry.place, place);
        entry.place_since = tick;
        entry.unconfirmed = 0;
        if let Place::On(cpu, _) = place {
            entry.last_cpu = Some(cpu);
            entry.queue = Some(cpu);
        }
        entry.waits_in = entry.queue;
        self.intervals.open_stretch(entry, tick);
        if let Some(thread) = entry.mounted.thread().and_then(|t| self.threads.get_mut(t)) {
            let state = place.thread_state();
            match reason {
                EndReason::Preempted if was_on => thread.stalls = thread.stalls.map(|stalls| stalls + 1),
                // It is unknown whether it was preempted.
                EndReason::Runnable | EndReason::KernelSwitch if was_on => thread.stalls = None,
                _ => {}
            }
            self.intervals.enter_thread_state(thread, state, Some(entry), tick, reason)?;
        }
        self.pair_place(lwp, (before, place), reason, tick)?;
        match place {
            Place::Off(_) => self.list_off_cpu(lwp),
            Place::Lost if !is_doubted => self.lose_mounted_of_ended(lwp)?,
            Place::On(..) | Place::Unknown | Place::Lost => {}
        }
        Ok(())
    }

    /// The LWP has a user event of this process. If the last LWP with this number was one of another process, that LWP
    /// has ended unobserved, and no thread is known to be mounted.
    #[inline]
    pub(super) fn belongs_to(&mut self, lwp: Lwp, pid: Pid) -> Result<(), Error> {
        let entry = self.lwp(lwp, self.now);
        match entry.pid.replace(pid) {
            Some(before) if before != pid => self.lose_mounted(lwp),
            _ => Ok(()),
        }
    }

    /// The process whose user threads an LWP with this number carries. `None` if several processes have events of such
    /// an LWP.
    pub(super) fn process_of(&self, lwp: Lwp) -> Option<Pid> {
        self.carriers.get(&lwp)?.pid
    }
}

fn new_lwp(carriers: &Carriers, lwp: Lwp, tick: Ticks) -> LwpEntry {
    LwpEntry::new(lwp, carriers.get(&lwp).and_then(|carrier| carrier.pid), tick)
}
