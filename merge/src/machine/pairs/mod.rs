//! Reports from the machine to the [pairings](crate::pairing): which LWP is in which system call, what it was woken by,
//! which user thread blocks on which lock, and which of these facts are lost.

mod interrupts;
mod kernel_locks;
mod locks;
mod spans;
mod syscalls;
mod wakeups;

use sigmund_model::{
    Context, Effect, EndReason, Event, Level, Lwp, LwpState, Thread, Ticks, vocabulary::Meaning,
};

use super::{
    Machine, Placed,
    lwp::{LwpEntry, Place},
};
use crate::{
    error::Error,
    input_event_types::InputEventType,
    pairing::{CallEnd, KernelWaiter, Owner, Queue},
};

impl Machine {
    /// Begins or ends the interval that an event is part of. The machine has already taken the event.
    #[inline]
    pub(crate) fn pair(
        &mut self,
        kind: &InputEventType,
        number: usize,
        event: &Event,
        placed: &Placed,
    ) -> Result<(), Error> {
        let meaning = kind.meaning;
        if kind.level == Level::Kern
            && let (Some(cpu), Some(context)) = (placed.cpu, placed.context)
            && !matches!(meaning, Some(Meaning::InterruptExit(_)))
        {
            let in_task = matches!(context, Context::Task | Context::Idle);
            self.intervals.pairing.interrupts.event(cpu, in_task, event.tick)?;
        }
        match meaning {
            Some(Meaning::SyscallEnter) => self.pair_syscall_enter(kind, number, event, placed),
            Some(Meaning::SyscallExit) => self.pair_syscall_exit(kind, number, event, placed),
            Some(Meaning::InterruptEnter(_) | Meaning::InterruptExit(_) | Meaning::NmiHandled) => {
                self.pair_interrupt(kind, event, placed)
            }
            Some(
                Meaning::SpanBegin | Meaning::SpanEnd | Meaning::FunctionEnter(_) | Meaning::FunctionExit(_),
            ) => self.pair_span(kind, event, placed),
            Some(Meaning::LockAcquire | Meaning::LockRelease) => self.pair_lock(kind, event, placed),
            Some(Meaning::KernelLockWait | Meaning::KernelLockWaitEnd) => {
                self.pair_kernel_lock(kind, event, placed)
            }
            // Sources whose interrupt events have no known name.
            _ if matches!(event.effect, Effect::InterruptEnter(_) | Effect::InterruptExit(_)) => {
                self.pair_interrupt(kind, event, placed)
            }
            _ => Ok(()),
        }
    }

    /// A user thread ends.
    pub(in crate::machine) fn pair_thread_end(&mut self, thread: Thread, tick: Ticks) -> Result<(), Error> {
        let owner = Owner::Thread(thread);
        let activity = self.activity(owner, tick);
        let Some(entry) = self.threads.get_mut(thread) else { return Ok(()) };
        let pairing = &mut self.intervals.pairing;
        if let Some(wakeup) = entry.wakeup.take() {
            pairing.wakeups.write(&wakeup, None)?;
        }
        pairing.counters.moves(entry.queue.take(), None, tick)?;
        pairing.spans.end_all(owner, activity, tick, EndReason::Exit)?;
        pairing.locks.ends(owner, tick)
    }

    /// An LWP ends.
    pub(in crate::machine) fn pair_lwp_end(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        self.end_early_waking(lwp)?;
        let owner = Owner::Lwp(lwp);
        let activity = self.activity(owner, tick);
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        // The LWP has already left its CPU.
        let on_cpu = Some(entry.on_cpu).filter(|_| matches!(entry.place, Place::Off(_)));
        let pairing = &mut self.intervals.pairing;
        if let Some(wakeup) = entry.wakeup.take() {
            pairing.wakeups.write(&wakeup, None)?;
        }
        pairing.counters.moves(entry.counted_in.take(), None, tick)?;
        pairing.spans.end_all(owner, activity, tick, EndReason::Exit)?;
        pairing.locks.ends(owner, tick)?;
        pairing.locks.kernel_waits_end(KernelWaiter::Lwp(lwp), tick, EndReason::Exit)?;
        self.end_call(lwp, CallEnd { at: tick, ret: None, on_cpu, reason: EndReason::Exit })
    }

    /// The place of an LWP changes now.
    #[inline]
    pub(in crate::machine) fn pair_place(
        &mut self,
        lwp: Lwp,
        (before, place): (Place, Place),
        reason: EndReason,
        tick: Ticks,
    ) -> Result<(), Error> {
        if matches!(place, Place::On(..) | Place::Lost) {
            self.end_early_waking(lwp)?;
        }
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        match place {
            Place::On(..) => {
                entry.is_waking = false;
                if let Some(wakeup) = entry.wakeup.take() {
                    let is_first = matches!(before, Place::Off(_)) && !wakeup.in_gap;
                    self.intervals.pairing.wakeups.write(&wakeup, Some(tick).filter(|_| is_first))?;
                }
            }
            Place::Lost => {
                entry.doubts += 1;
                entry.is_waking = false;
                entry.call.lose_cpu();
                if let Some(wakeup) = entry.wakeup.take() {
                    self.intervals.pairing.wakeups.write(&wakeup, None)?;
                }
                if reason != EndReason::Resync {
                    self.lose_in_kernel(lwp, tick)?;
                }
            }
            // It leaves a CPU on which it was not known to be. So it was awake when it was woken.
            Place::Off(_) if reason != EndReason::Woken => {
                if let Some(wakeup) = entry.wakeup.take() {
                    self.intervals.pairing.wakeups.write(&wakeup, None)?;
                }
            }
            Place::Off(_) | Place::Unknown => {}
        }
        self.count_runnable(lwp, tick)
    }

    /// Counts an LWP in the run queue that it waits in, if it is runnable.
    pub(in crate::machine) fn count_runnable(&mut self, lwp: Lwp, tick: Ticks) -> Result<(), Error> {
        let Some(entry) = self.lwps.get_mut(lwp) else { return Ok(()) };
        let is_runnable = entry.place == Place::Off(LwpState::Runnable);
        let queue = entry.queue.filter(|_| is_runnable).map(Queue::Run);
        let before = std::mem::replace(&mut entry.counted_in, queue);
        self.intervals.pairing.counters.moves(before, queue, tick)
    }

    /// Ends the open intervals. Called when the trace ends.
    pub(in crate::machine) fn end_pairs(&mut self, tick: Ticks) -> Result<(), Error> {
        self.intervals.pairing.interrupts.end_trace(tick)?;
        let mut lwps: Vec<Lwp> = self.lwps.iter_mut().map(|entry| entry.lwp).collect();
        lwps.sort_unstable();
        for lwp in lwps {
            self.end_early_waking(lwp)?;
            let Some(entry) = self.lwps.get_mut(lwp) else { continue };
            let on_cpu = time_on_cpu(entry, tick).or_else(|| off_cpu_time(entry));
            if let Some(wakeup) = entry.wakeup.take() {
                self.intervals.pairing.wakeups.write(&wakeup, None)?;
            }
            self.end_call(lwp, CallEnd { at: tick, ret: None, on_cpu, reason: EndReason::TraceEnd })?;
        }
        let mut threads: Vec<Thread> = self.threads.iter_mut().map(|entry| entry.thread).collect();
        threads.sort_unstable();
        for thread in threads {
            if let Some(wakeup) = self.threads.get_mut(thread).and_then(|entry| entry.wakeup.take()) {
                self.intervals.pairing.wakeups.write(&wakeup, None)?;
            }
        }
        for owner in self.intervals.pairing.spans.owners() {
            let activity = self.activity(owner, tick);
            self.intervals.pairing.spans.end_all(owner, activity, tick, EndReason::TraceEnd)?;
        }
        self.intervals.pairing.locks.end_trace(tick)
    }
}

/// The LWP's time on CPUs, if it is on one.
#[inline]
fn time_on_cpu(entry: &LwpEntry, tick: Ticks) -> Option<u64> {
    matches!(entry.place, Place::On(..)).then(|| entry.on_cpu_until(tick))
}

/// The LWP's time on CPUs, if it is known to be on none.
fn off_cpu_time(entry: &LwpEntry) -> Option<u64> {
    matches!(entry.place, Place::Off(_)).then_some(entry.on_cpu)
}

/// The user thread, or the LWP if it carries none.
fn owner_of(placed: &Placed) -> Option<Owner> {
    placed.thread.map(Owner::Thread).or(placed.lwp.map(Owner::Lwp))
}
