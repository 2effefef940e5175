//! Wakeups of LWPs, and unparks of user threads.

use sigmund_model::{Cpu, Level, Lwp, LwpState, Thread, ThreadState, Ticks};

use crate::{
    error::Error,
    machine::{Machine, Placed, lwp::Place},
    pairing::{Owner, Wakeup},
};

impl Machine {
    /// An LWP is about to be woken.
    pub(in crate::machine) fn pair_waking(
        &mut self,
        lwp: Lwp,
        placed: &Placed,
        tick: Ticks,
    ) -> Result<(), Error> {
        if lwp == Lwp::IDLE {
            return Ok(());
        }
        self.end_early_waking(lwp)?;
        self.lwp(lwp, tick).is_waking = true;
        self.wakes(lwp, None, placed, tick)
    }

    /// An LWP is made runnable.
    pub(in crate::machine) fn pair_wakeup(
        &mut self,
        lwp: Lwp,
        cpu: Option<Cpu>,
        placed: &Placed,
        tick: Ticks,
    ) -> Result<(), Error> {
        if lwp == Lwp::IDLE {
            return Ok(());
        }
        let entry = self.lwp(lwp, tick);
        if !std::mem::take(&mut entry.is_waking) {
            return self.wakes(lwp, cpu, placed, tick);
        }
        let opened = self.gaps.cpu_opened;
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        if let Some(early) = entry.early_waking.take() {
            let is_asleep = matches!(entry.place, Place::Off(state) if !matches!(state, LwpState::Runnable | LwpState::Exited));
            if !is_asleep || entry.wakeup.is_some() {
                return self.intervals.pairing.wakeups.write(&early, None);
            }
            // The LWP left its CPU between the waking and the wakeup. So the sleep that the wakeup ends began after the
            // waking.
            let in_gap = early.in_gap || opened.is_some_and(|opened| opened >= early.at);
            let thread = entry.mounted.thread();
            entry.wakeup = Some(Wakeup { at: tick, thread, target_cpu: cpu, in_gap, ..early });
            return Ok(());
        }
        if let Some(wakeup) = &mut entry.wakeup {
            // The events lost since then may include the rest of that wakeup, and the waking of this one.
            wakeup.in_gap |= opened.is_some_and(|opened| opened >= wakeup.at);
            // An LWP that already waits for its dispatch may be woken again. It may have been migrated meanwhile.
            wakeup.target_cpu = wakeup.target_cpu.or(cpu).filter(|_| !wakeup.in_gap);
        }
        Ok(())
    }

    fn wakes(
        &mut self,
        lwp: Lwp,
        target_cpu: Option<Cpu>,
        placed: &Placed,
        tick: Ticks,
    ) -> Result<(), Error> {
        let in_gap = self.gaps.hide_lwps(tick);
        let entry = self.lwp(lwp, tick);
        let is_awake = matches!(entry.place, Place::On(..) | Place::Off(LwpState::Runnable));
        let wakeup = Wakeup {
            at: tick,
            level: Level::Kern,
            context: placed.context,
            waker_lwp: placed.lwp,
            waker_thread: placed.thread,
            lwp: Some(lwp),
            thread: entry.mounted.thread(),
            cpu: placed.cpu,
            // An LWP that is awake is not put into a run queue.
            target_cpu: target_cpu.filter(|_| !is_awake),
            in_gap,
        };
        if is_awake && entry.is_waking {
            entry.early_waking = Some(wakeup);
            return Ok(());
        }
        if is_awake {
            return self.intervals.pairing.wakeups.write(&wakeup, None);
        }
        match entry.wakeup.replace(wakeup) {
            Some(before) => self.intervals.pairing.wakeups.write(&before, None),
            None => Ok(()),
        }
    }

    /// No wakeup follows the waking of an LWP that was awake.
    pub(in crate::machine) fn end_early_waking(&mut self, lwp: Lwp) -> Result<(), Error> {
        match self.lwps.get_mut(lwp).and_then(|entry| entry.early_waking.take()) {
            Some(early) => self.intervals.pairing.wakeups.write(&early, None),
            None => Ok(()),
        }
    }

    /// A user thread was made ready.
    pub(in crate::machine) fn pair_unpark(
        &mut self,
        thread: Thread,
        placed: &Placed,
        tick: Ticks,
    ) -> Result<(), Error> {
        let Some(entry) = self.threads.get_mut(thread) else { return Ok(()) };
        let pairing = &mut self.intervals.pairing;
        let wakeup = Wakeup {
            at: tick,
            level: Level::User,
            context: placed.context,
            waker_lwp: placed.lwp,
            waker_thread: placed.thread,
            lwp: None,
            thread: Some(thread),
            cpu: placed.cpu,
            target_cpu: None,
            in_gap: entry.lwp.is_none() && entry.state == ThreadState::Unknown,
        };
        if entry.lwp.is_none() {
            pairing.locks.wakes(Owner::Thread(thread), tick)?;
        }
        match entry.wakeup {
            // The thread was already unparked, and has not been dispatched yet.
            Some(_) => pairing.wakeups.write(&wakeup, None),
            None => {
                entry.wakeup = Some(wakeup);
                Ok(())
            }
        }
    }
}
