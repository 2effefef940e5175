//! LWPs come to CPUs and leave them.

use sigmund_model::{Cpu, EndReason, Lwp, LwpState, Pid, Ticks};

use super::{
    Carriers, Machine,
    contradictions::Contradiction,
    cpu::CpuEntry,
    lwp::{By, LwpEntry, Place},
};
use crate::error::Error;

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
        match self.lwps.get(lwp)?.place {
            Place::On(cpu, _) => Some(cpu),
            Place::Unknown | Place::Off(_) | Place::Lost => None,
        }
    }

    /// An event shows that an LWP is on a CPU, where the switches did not put it.
    ///
    /// Some kernels do not trace the switch that leaves the idle task (seen on 6.18 guests, on one CPU of two, and
    /// by perf as well). An idle CPU takes a runnable LWP at once: so it runs since it was runnable, or since the CPU
    /// was idle. No event of it lies in between, so no row was written that would have to change.
    pub(super) fn shown(&mut self, lwp: Lwp, cpu: Cpu, by: By, tick: Ticks) -> Result<(), Error> {
        match self.unseen_dispatch(lwp, cpu) {
            Some(since) => {
                let detail = format!("CPU {cpu}: LWP {lwp}, between ticks {} and {}", since.0, tick.0);
                self.contradictions.add(Contradiction::UnseenSwitch, since, detail);
                let entry = self.cpu(cpu, tick);
                entry.set_current(Some(lwp), since);
                entry.displaced = Some(Lwp::IDLE);
                self.place(lwp, Place::On(cpu, by), since, EndReason::Dispatched)
            }
            None => self.arrive(lwp, cpu, by, tick),
        }
    }

    /// Since when an LWP that was runnable in the run queue of a CPU must run there, because the CPU was idle.
    pub(super) fn unseen_dispatch(&self, lwp: Lwp, cpu: Cpu) -> Option<Ticks> {
        let entry = self.lwps.get(lwp)?;
        let idle = self.cpus.get(cpu).filter(|cpu| cpu.current == Some(Lwp::IDLE))?;
        Some(entry.waits_for(cpu)?.max(idle.since()))
    }

    /// Whether an event of an LWP on a CPU proves that a switch was not traced: it was runnable in the run queue of that
    /// CPU, which by the switches has somebody else, the idle task or an LWP.
    pub(super) fn is_unseen_switch(&self, lwp: Lwp, cpu: Cpu) -> bool {
        let waits = self.lwps.get(lwp).is_some_and(|entry| entry.waits_for(cpu).is_some());
        waits && self.cpus.get(cpu).is_some_and(|cpu| cpu.current.is_some())
    }

    /// An LWP is on a CPU from now on. Whoever was thought to be there is not.
    pub(super) fn arrive(&mut self, lwp: Lwp, cpu: Cpu, by: By, tick: Ticks) -> Result<(), Error> {
        if by == By::Kernel && !self.close_cpu_gap(cpu, tick) {
            return Ok(());
        }
        let before = self.cpu(cpu, tick).current;
        match before {
            Some(other) if other == lwp => return self.confirm(lwp, cpu, by, tick),
            Some(other) => {
                self.note_displaced(other, lwp, cpu, tick);
                self.gone_unseen(other, cpu, tick)?;
            }
            None => {}
        }
        if let Some(before) = self.cpu_of(lwp) {
            if !self.is_placed_by_probe(lwp) && !self.others_unseen {
                let detail = format!("LWP {lwp}: on CPU {before}, then on CPU {cpu}");
                self.contradictions.add(Contradiction::TwoCpus, tick, detail);
            }
            self.cpu(before, tick).set_current(None, tick);
        }
        let entry = self.cpu(cpu, tick);
        entry.set_current(Some(lwp), tick);
        entry.displaced = before;
        self.place(lwp, Place::On(cpu, by), tick, EndReason::Dispatched)
    }

    /// An event shows an LWP on a CPU that by the switches has another.
    fn note_displaced(&mut self, other: Lwp, lwp: Lwp, cpu: Cpu, tick: Ticks) {
        // Of one that was displaced and has been heard of since (it was woken, say), it is known that it had left.
        let is_unheard = self.lwps.get(lwp).is_none_or(|entry| entry.place == Place::Off(LwpState::OffCpu));
        if is_unheard && self.cpus.get(cpu).is_some_and(|entry| entry.displaced == Some(lwp)) {
            self.retract(other, lwp, cpu, tick);
        }
        let (what, detail) = match other {
            // Who came in between was nobody's business.
            _ if self.others_unseen => return,
            Lwp::IDLE => {
                (Contradiction::UnseenSwitch, format!("CPU {cpu}: LWP {lwp}, at tick {} or before", tick.0))
            }
            _ if self.is_unseen_switch(lwp, cpu) => (
                Contradiction::UnseenTakeover,
                format!("CPU {cpu}: LWP {lwp} in place of LWP {other}, at tick {} or before", tick.0),
            ),
            _ if self.is_placed_by_probe(other) => return,
            _ => (
                Contradiction::OtherLwp,
                format!("CPU {cpu}: LWP {other} by the switches, LWP {lwp} by the event"),
            ),
        };
        self.contradictions.add(what, tick, detail);
    }

    fn is_placed_by_probe(&self, lwp: Lwp) -> bool {
        self.lwps.get(lwp).is_some_and(|entry| matches!(entry.place, Place::On(_, By::Probe)))
    }

    /// An LWP left its CPU, and no switch says when: it was there when it recorded its last event, that is certain.
    fn gone_unseen(&mut self, lwp: Lwp, cpu: Cpu, tick: Ticks) -> Result<(), Error> {
        let certain = match self.lwps.get(lwp) {
            Some(entry) => entry.last_seen.max(entry.place_since),
            // The idle task was there when it came; what came behind it was perhaps not recorded.
            None if self.others_unseen => self.cpu(cpu, tick).since(),
            None => tick,
        };
        self.cpu(cpu, tick).set_current(None, certain);
        self.place(lwp, Place::Off(LwpState::OffCpu), certain, EndReason::Resync)
    }

    /// It is where it was thought to be; perhaps now the kernel says so too.
    fn confirm(&mut self, lwp: Lwp, cpu: Cpu, by: By, tick: Ticks) -> Result<(), Error> {
        if by == By::Kernel && lwp != Lwp::IDLE {
            self.lwp(lwp, tick).place = Place::On(cpu, By::Kernel);
            self.second_witness(lwp, tick);
        }
        Ok(())
    }

    /// An LWP leaves its CPU, in a state.
    pub(super) fn leave(&mut self, lwp: Lwp, cpu: Cpu, state: LwpState, tick: Ticks) -> Result<(), Error> {
        self.cpu(cpu, tick).set_current(None, tick);
        if lwp == Lwp::IDLE {
            return Ok(());
        }
        if self.cpu_of(lwp) == Some(cpu) {
            self.second_witness(lwp, tick);
        }
        // An LWP that is exiting may still sleep; only where the source gives no states, leaving is the end.
        let ends = state == LwpState::Exited || (state == LwpState::OffCpu && self.lwp(lwp, tick).exiting);
        let state = if ends { LwpState::Exited } else { state };
        let reason = match state {
            LwpState::Runnable => EndReason::Preempted,
            LwpState::Exited => EndReason::Exit,
            LwpState::OffCpu => EndReason::KernelSwitch,
            _ => EndReason::Slept,
        };
        self.place(lwp, Place::Off(state), tick, reason)?;
        if ends { self.lwp_gone(lwp, tick) } else { Ok(()) }
    }

    /// An LWP becomes runnable.
    pub(super) fn wake(&mut self, lwp: Lwp, cpu: Option<Cpu>, tick: Ticks) -> Result<(), Error> {
        if let Some(cpu) = cpu {
            self.queue_on(lwp, cpu, tick)?;
        }
        // One that is on its way to sleep is woken on the CPU that it is still on.
        let may_be_on = cpu.is_some_and(|cpu| self.cpus.get(cpu).is_none_or(|c| c.current.is_none()));
        match self.lwp(lwp, tick).place {
            Place::On(..) => Ok(()),
            Place::Unknown if may_be_on => Ok(()),
            Place::Unknown | Place::Off(_) | Place::Lost => {
                self.place(lwp, Place::Off(LwpState::Runnable), tick, EndReason::Woken)
            }
        }
    }

    /// An LWP is in the run queue of this CPU from now on.
    pub(super) fn queue_on(&mut self, lwp: Lwp, cpu: Cpu, tick: Ticks) -> Result<(), Error> {
        self.lwp(lwp, tick).queue = Some((cpu, tick));
        Ok(())
    }

    /// An LWP is created. One that had its number before is gone, seen or not.
    pub(super) fn lwp_new(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        if self.lwps.get(lwp).is_some() {
            self.place(lwp, Place::Off(LwpState::Exited), tick, EndReason::Resync)?;
            self.lwp_gone(lwp, tick)?;
        }
        self.intervals.lwp_names.remove(&lwp);
        self.lwp(lwp, tick);
        Ok(())
    }

    fn lwp_gone(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        if let Some(entry) = self.lwps.get(lwp)
            && entry.mounted.thread().is_some()
        {
            self.mount(lwp, None, super::thread::Left::resync(), tick)?;
        }
        let Some(mut entry) = self.lwps.remove(lwp) else { return Ok(()) };
        // Of a number that several LWPs had, the gap may be another's; and of one that has shown no user event, too.
        if entry.carries_threads && self.carriers.get(&lwp).is_some_and(|carrier| !carrier.several) {
            self.gaps.end_lwp(lwp, tick);
        }
        self.intervals.close_place(&mut entry, tick, EndReason::Exit)?;
        self.intervals.lwp(&entry, Some(tick))
    }

    /// Changes where an LWP is; intervals end and begin.
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
        let taken_off = matches!((entry.place, place), (Place::On(..), Place::Off(_)));
        let place = match place {
            Place::Off(state) if state != LwpState::Exited && gaps.hide_lwps(tick) => Place::Lost,
            place => place,
        };
        if entry.place == place {
            return Ok(());
        }
        self.intervals.close_stretch(entry, &mut self.threads, tick, reason)?;
        self.intervals.close_place(entry, tick, reason)?;
        entry.place = place;
        entry.place_since = tick;
        entry.unconfirmed = 0;
        if let Place::On(cpu, _) = place {
            entry.last_cpu = Some(cpu);
            entry.queue = Some((cpu, tick));
        }
        self.intervals.open_stretch(entry, tick);
        if let Some(thread) = entry.mounted.thread().and_then(|t| self.threads.get_mut(t)) {
            let state = place.thread_state();
            thread.stalls += u64::from(taken_off);
            self.intervals.enter_thread_state(thread, state, Some(entry), tick, reason)?;
        }
        match place {
            Place::Off(_) => self.list_off_cpu(lwp),
            Place::Lost => self.lose_mounted_of_ended(lwp)?,
            Place::On(..) | Place::Unknown => {}
        }
        Ok(())
    }

    /// The LWP has a user event of this process. If its number was last that of another process's LWP, that one has ended
    /// unseen, and nobody is known to be mounted.
    #[inline]
    pub(super) fn belongs_to(&mut self, lwp: Lwp, pid: Pid) -> Result<(), Error> {
        let entry = self.lwp(lwp, self.now);
        match entry.pid.replace(pid) {
            Some(before) if before != pid => self.lose_mounted(lwp),
            _ => Ok(()),
        }
    }

    /// The process whose user threads an LWP of this number carries, if only one says that it does.
    pub(super) fn process_of(&self, lwp: Lwp) -> Option<Pid> {
        self.carriers.get(&lwp)?.pid
    }
}

fn new_lwp(carriers: &Carriers, lwp: Lwp, tick: Ticks) -> LwpEntry {
    LwpEntry::new(lwp, carriers.get(&lwp).and_then(|carrier| carrier.pid), tick)
}
