//! Intervals that end become rows of `active`, `thread_states`, `lwp_states`, `threads` and `lwps`.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{
    EndReason, Lwp, LwpState, TaskState, Thread, ThreadState, Ticks, Wait, WaitKind,
    tables::{ACTIVE, LWP_STATES, LWPS, PROCESSES, THREAD_STATES, THREADS},
};

use super::{
    lwp::{LwpEntry, Place, Stretch},
    roster::Roster,
    thread::ThreadEntry,
};
use crate::{
    error::Error,
    pairing::{Owner, Pairing, Queue},
    tables::{Directory, OptionalTable, TableWriter},
};

/// The writers of the tables of intervals, and the names of the LWPs and threads in them.
pub(crate) struct Intervals {
    active: TableWriter,
    thread_states: TableWriter,
    lwp_states: TableWriter,
    threads: TableWriter,
    lwps: TableWriter,
    pub(super) processes: OptionalTable,
    /// Intervals that are paired from events.
    pub(super) pairing: Pairing,
    pub(super) lwp_names: HashMap<Lwp, Box<str>, RandomState>,
    pub(super) thread_names: HashMap<Thread, Box<str>, RandomState>,
    /// Number of user events that each LWP could not record.
    pub(crate) lost: HashMap<Lwp, u64>,
    /// Number of rows of `threads` so far.
    pub(crate) threads_written: u64,
    /// Number of rows of `lwps` so far for LWPs that carry threads.
    pub(crate) carriers_written: u64,
}

impl Intervals {
    pub(crate) fn create(directory: &Directory, left_out: &[String]) -> Result<Intervals, Error> {
        Ok(Intervals {
            active: directory.table(&ACTIVE)?,
            thread_states: directory.table(&THREAD_STATES)?,
            lwp_states: directory.table(&LWP_STATES)?,
            threads: directory.table(&THREADS)?,
            lwps: directory.table(&LWPS)?,
            processes: OptionalTable::create(directory, &PROCESSES, left_out)?,
            pairing: Pairing::create(directory, left_out)?,
            lwp_names: HashMap::default(),
            thread_names: HashMap::default(),
            lost: HashMap::new(),
            threads_written: 0,
            carriers_written: 0,
        })
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        let Intervals { active, thread_states, lwp_states, threads, lwps, processes, pairing, .. } = self;
        processes.finish()?;
        pairing.finish()?;
        [active, thread_states, lwp_states, threads, lwps].into_iter().try_for_each(TableWriter::finish)
    }

    /// Ends what the LWP does with its CPU. Active time and unmounted time are counted here. Time on CPUs is counted in
    /// [`close_place`](Self::close_place). So there are three independent sums, which the check compares.
    pub(super) fn close_stretch(
        &mut self,
        entry: &mut LwpEntry,
        threads: &mut Roster<Thread, ThreadEntry>,
        tick: Ticks,
        reason: EndReason,
    ) -> Result<(), Error> {
        match std::mem::replace(&mut entry.stretch, Stretch::OffCpu) {
            Stretch::OffCpu => Ok(()),
            Stretch::Unmounted { since } => {
                entry.unmounted += tick.0 - since.0;
                Ok(())
            }
            Stretch::Active { thread, cpu, since } => {
                let length = tick.0 - since.0;
                entry.active += length;
                if let Some(thread) = threads.get_mut(thread) {
                    thread.active += length;
                }
                let lwp = entry.lwp;
                self.active.row(|mut row| {
                    row.count(since.0)
                        .count(length)
                        .count(thread.0)
                        .int(lwp.0)
                        .int(cpu.0)
                        .text(reason.name());
                })
            }
        }
    }

    /// Begins what the LWP does with its CPU, if it is on one.
    pub(super) fn open_stretch(&self, entry: &mut LwpEntry, tick: Ticks) {
        entry.stretch = match (entry.place, entry.mounted.thread()) {
            (Place::On(cpu, _), Some(thread)) => Stretch::Active { thread, cpu, since: tick },
            (Place::On(..), None) => Stretch::Unmounted { since: tick },
            (Place::Unknown | Place::Off(_) | Place::Lost, _) => Stretch::OffCpu,
        };
    }

    /// Ends the state of an LWP.
    pub(super) fn close_place(
        &mut self,
        entry: &mut LwpEntry,
        tick: Ticks,
        reason: EndReason,
    ) -> Result<(), Error> {
        let Some(state) = entry.state() else { return Ok(()) };
        let length = tick.0 - entry.place_since.0;
        if let Place::On(..) = entry.place {
            entry.on_cpu += length;
        }
        let gone = state == LwpState::Exited;
        // This is stored for the following wait for a CPU, too.
        let left_in = match state {
            LwpState::Running => entry.left_in,
            _ => entry.left_in.take().filter(|_| state == LwpState::Runnable),
        };
        let cpu = match entry.place {
            Place::Off(LwpState::Runnable) => entry.waits_in,
            Place::Lost => None,
            Place::Unknown | Place::On(..) | Place::Off(_) => entry.last_cpu,
        };
        let (since, lwp) = (entry.place_since, entry.lwp);
        let letters = left_in.map(TaskState::letters);
        self.lwp_states.row(|mut row| {
            row.count(since.0).maybe_count((!gone).then_some(length)).int(lwp.0).text(state.name());
            row.maybe_int(cpu.map(|c| c.0.into())).maybe_text((!gone).then_some(reason.name()));
            row.maybe_text(letters.as_deref());
        })
    }

    /// Ends the state of a user thread, and begins another.
    pub(super) fn enter_thread_state(
        &mut self,
        entry: &mut ThreadEntry,
        state: ThreadState,
        carrier: Option<&LwpEntry>,
        tick: Ticks,
        reason: EndReason,
    ) -> Result<(), Error> {
        let is_new = entry.state_since == tick && entry.first == tick && entry.state == state;
        if !is_new {
            self.close_thread_state(entry, tick, reason)?;
        }
        entry.state = state;
        entry.state_since = tick;
        entry.doubts += u32::from(matches!(state, ThreadState::Unknown | ThreadState::Mounted));
        entry.may_request |= state == ThreadState::Unknown;
        self.count_ready(entry, tick)?;
        entry.wait = Wait::default();
        entry.lwp = carrier.map(|c| c.lwp);
        entry.cpu = match carrier.map(|c| c.place) {
            Some(Place::On(cpu, _)) => Some(cpu),
            _ => None,
        };
        Ok(())
    }

    /// The state of a user thread becomes unknown.
    pub(super) fn lose_thread(&mut self, entry: &mut ThreadEntry, tick: Ticks) -> Result<(), Error> {
        entry.unparked = false;
        self.pairing.lose_thread(Owner::Thread(entry.thread), entry.wakeup.take(), tick)?;
        self.enter_thread_state(entry, ThreadState::Unknown, None, tick, EndReason::Lost)
    }

    /// Counts a user thread in the ready queue of its process, if it is ready.
    pub(super) fn count_ready(&mut self, entry: &mut ThreadEntry, tick: Ticks) -> Result<(), Error> {
        let is_ready = matches!(entry.state, ThreadState::New | ThreadState::Ready);
        let queue = is_ready.then_some(Queue::Ready(entry.pid));
        let before = std::mem::replace(&mut entry.queue, queue);
        self.pairing.counters.moves(before, queue, tick)
    }

    /// Writes the state of a user thread, which ends now.
    pub(super) fn close_thread_state(
        &mut self,
        entry: &mut ThreadEntry,
        tick: Ticks,
        reason: EndReason,
    ) -> Result<(), Error> {
        let gone = entry.state == ThreadState::Exited;
        let length = tick.0 - entry.state_since.0;
        self.thread_states.row(|mut row| {
            row.count(entry.state_since.0).maybe_count((!gone).then_some(length)).count(entry.thread.0);
            row.text(entry.state.name()).maybe_int(entry.lwp.map(|l| l.0.into()));
            row.maybe_int(entry.cpu.map(|c| c.0.into())).maybe_count(entry.wait.on);
            row.maybe_text(entry.wait.kind.map(WaitKind::name)).maybe_text((!gone).then_some(reason.name()));
        })
    }

    /// An LWP has this command name from now on.
    pub(super) fn name_lwp(&mut self, lwp: Lwp, name: &str) {
        if self.lwp_names.get(&lwp).is_none_or(|known| **known != *name) {
            self.lwp_names.insert(lwp, name.into());
        }
    }

    pub(super) fn name_of(&self, lwp: Lwp) -> Option<&str> {
        self.lwp_names.get(&lwp).map(|name| &**name)
    }

    /// Writes the row of a user thread, which ended at `end`, or has not ended.
    pub(super) fn thread(&mut self, entry: &ThreadEntry, end: Option<Ticks>) -> Result<(), Error> {
        let name = self.thread_names.remove(&entry.thread);
        self.threads_written += 1;
        let pid = entry.pid.or(entry.carrier_pid);
        self.threads.row(|mut row| {
            row.count(entry.thread.0).maybe_text(name.as_deref()).maybe_int(pid.map(|pid| pid.0.into()));
            row.count(entry.first.0).maybe_count(end.map(|end| end.0 - entry.first.0));
            row.maybe_count(entry.created_by.map(|t| t.0)).count(entry.active);
            row.count(entry.dispatches).count(entry.migrations).maybe_count(entry.stalls);
            row.count(entry.recorded.events).count(entry.recorded.words);
        })
    }

    /// Writes the row of an LWP, which ended at `end`, or has not ended.
    pub(super) fn lwp(&mut self, entry: &LwpEntry, end: Option<Ticks>) -> Result<(), Error> {
        let name = self.lwp_names.get(&entry.lwp).cloned();
        self.carriers_written += u64::from(entry.carries_threads);
        let lost = self.lost.get(&entry.lwp).copied().unwrap_or(0);
        self.lwps.row(|mut row| {
            row.int(entry.lwp.0).maybe_text(name.as_deref()).maybe_int(entry.pid.map(|p| p.0.into()));
            row.count(entry.first.0)
                .maybe_count(end.map(|end| end.0 - entry.first.0))
                .bool(entry.carries_threads);
            row.count(entry.on_cpu).count(entry.active).count(entry.unmounted);
            row.maybe_count(entry.cpu_time_ns).maybe_count(entry.attached_on_cpu).count(entry.events);
            row.count(entry.witness_agree).count(entry.witness_disagree).count(lost);
            row.count(entry.recorded.events).count(entry.recorded.words);
        })
    }
}
