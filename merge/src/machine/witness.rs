//! The two witnesses of a user event's CPU: the probe, which has recorded the CPU, and the kernel's switches, which
//! show where the LWP was.

use sigmund_model::{Cpu, Event, Lwp, Ticks};

use super::{
    Machine,
    contradictions::Contradiction,
    lwp::{By, Place},
};
use crate::{error::Error, source::FIRST_WITHOUT_KERNEL};

/// User events by agreement of the two witnesses of their CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Witnesses {
    /// They agree.
    pub(crate) agree: u64,
    /// They disagree.
    pub(crate) disagree: u64,
    /// One of them is missing.
    pub(crate) single: u64,
}

impl Machine {
    /// The place of a user event. Its LWP is known; the switches show on which CPU that LWP is.
    pub(super) fn user_place(&mut self, event: &Event) -> Result<(Option<Cpu>, Option<Lwp>), Error> {
        let lwp = event.lwp.or_else(|| event.cpu.and_then(|cpu| self.cpus.get(cpu)?.current));
        // The idle task runs no program; an event that names it is damaged.
        let Some(lwp) = lwp.filter(|lwp| *lwp != Lwp::IDLE) else { return Ok((event.cpu, None)) };
        if lwp.0 >= FIRST_WITHOUT_KERNEL {
            // The kernel's events have another number for this LWP: they would seem to contradict it.
            self.witnesses.single += 1;
            self.lwp(lwp, event.tick);
            return Ok((event.cpu, Some(lwp)));
        }
        match event.cpu {
            Some(seen) => self.compare(lwp, seen, event.tick)?,
            None => {
                self.witnesses.single += 1;
                if event.lwp.is_some() {
                    self.shown_somewhere(lwp, event.tick)?;
                }
            }
        }
        Ok((self.cpu_of(lwp).or(event.cpu), Some(lwp)))
    }

    fn compare(&mut self, lwp: Lwp, seen: Cpu, tick: Ticks) -> Result<(), Error> {
        let place = self.lwp(lwp, tick).place;
        match place {
            Place::On(cpu, By::Kernel) if cpu == seen => {
                self.witnesses.agree += 1;
                self.lwp(lwp, tick).witness_agree += 1;
                Ok(())
            }
            Place::On(_, By::Kernel) => {
                self.disagree(lwp, tick);
                Ok(())
            }
            // The LWP was there, for an unknown time. On a CPU without a gap, switches would have shown it.
            Place::Lost if self.gaps.hide_lwps(tick) => {
                self.witnesses.single += 1;
                Ok(())
            }
            _ if self.probes_place && !self.is_followed(seen) => {
                self.witnesses.single += 1;
                self.shown_for_an_instant(lwp, seen, tick)
            }
            Place::On(cpu, By::Probe) if cpu != seen && self.is_shown_alone(cpu, seen) => {
                self.disagree(lwp, tick);
                Ok(())
            }
            Place::Off(_) if !self.is_unseen_switch(lwp, seen) => {
                self.disagree(lwp, tick);
                let detail = format!("LWP {lwp} on CPU {seen}");
                self.contradictions.add(Contradiction::RanOffCpu, tick, detail);
                self.shown(lwp, seen, By::Probe, Some(Contradiction::RanOffCpu), tick)
            }
            Place::Off(_) => {
                self.witnesses.single += 1;
                self.shown(lwp, seen, By::Probe, None, tick)?;
                self.lwp(lwp, tick).unconfirmed += 1;
                Ok(())
            }
            Place::Unknown | Place::Lost | Place::On(_, By::Probe) => {
                self.witnesses.single += 1;
                if self.probes_place && self.cpu(seen, tick).gap.is_none() {
                    self.shown(lwp, seen, By::Probe, None, tick)?;
                    self.lwp(lwp, tick).unconfirmed += 1;
                }
                Ok(())
            }
        }
    }

    /// Whether an LWP cannot have moved to `seen`, after its probes showed it on `cpu` without a switch. It cannot if
    /// no switch has taken it off since, and no events are known to be missing on either CPU.
    fn is_shown_alone(&self, cpu: Cpu, seen: Cpu) -> bool {
        let is_whole = |cpu| self.cpus.get(cpu).is_some_and(|entry| entry.gap.is_none());
        self.cpus.get(cpu).is_some_and(|entry| entry.displaced.is_some()) && is_whole(cpu) && is_whole(seen)
    }

    fn disagree(&mut self, lwp: Lwp, tick: Ticks) {
        self.witnesses.disagree += 1;
        self.lwp(lwp, tick).witness_disagree += 1;
    }

    /// The kernel confirms the CPU that the probes of an LWP recorded. So these events now have a second witness.
    pub(super) fn second_witness(&mut self, lwp: Lwp, tick: Ticks) {
        let confirmed = std::mem::take(&mut self.lwp(lwp, tick).unconfirmed);
        self.lwp(lwp, tick).witness_agree += confirmed;
        self.witnesses.agree += confirmed;
        self.witnesses.single -= confirmed;
    }

    /// The kernel shows `lwp` on a CPU where a probe of `other` had put `other` in its place. Nothing but probes has
    /// shown `other` there, and their clock or their CPU may be wrong. So these events, which had a single witness, now
    /// disagree with the kernel. Returns what that contradicts, if there are such events.
    pub(super) fn retract(&mut self, other: Lwp, lwp: Lwp, cpu: Cpu, tick: Ticks) -> Option<Contradiction> {
        let entry = self.lwps.get_mut(other).filter(|entry| entry.unconfirmed > 0)?;
        let unconfirmed = std::mem::take(&mut entry.unconfirmed);
        entry.witness_disagree += unconfirmed;
        self.witnesses.disagree += unconfirmed;
        self.witnesses.single -= unconfirmed;
        let detail = format!("LWP {other} on CPU {cpu}, where LWP {lwp} was before and is still");
        self.contradictions.add(Contradiction::RanOffCpu, tick, detail);
        Some(Contradiction::RanOffCpu)
    }
}
