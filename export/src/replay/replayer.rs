//! Converts rows in the order of time into changes.

use std::{collections::HashMap, sync::Arc};

use sigmund_model::{Cpu, Level, Lwp, LwpState, Pid, Thread, ThreadState, Ticks, WaitKind};
use sigmund_query::Filter;

use super::{
    Replayed,
    actor_ids::ActorIds,
    current_values::{CurrentValues, Slot},
    handed_over::Changes,
    open_intervals::{End, OpenIntervals},
    rows::{ActorNumber, CounterRow, HoldRow, QueueNumber, SliceRow, SliceTrack, StateRow, WakeupRow},
};
use crate::timeline::{Actors, Change, Counter, CpuId, Hold, LwpId, ProcessId, Slice, ThreadId, Track};

/// Not an LWP: there are fewer.
const NO_LWP: LwpId = LwpId(u32::MAX);

/// Converts rows in the order of time into changes.
pub(super) struct Replayer<'a> {
    actors: &'a Actors,
    ids: Arc<ActorIds>,
    processes: HashMap<Option<Pid>, ProcessId, foldhash::fast::FixedState>,
    current: CurrentValues,
    open: OpenIntervals,
    /// Numbers of locks, by process and address.
    locks: HashMap<(ProcessId, i64), u32, foldhash::fast::RandomState>,
    /// The last CPU of each LWP.
    last_cpus: Vec<Option<CpuId>>,
    /// The last LWP of each user thread, or [`NO_LWP`]: this takes half the size of an option.
    last_lwps: Vec<LwpId>,
    /// Whether the LWPs on CPUs are derived from states of user threads, because states of LWPs are not selected.
    only_threads: bool,
    replayed: Replayed,
    changes: Changes,
}

/// Whether LWPs on CPUs are derived from states of user threads: states of LWPs are not selected.
pub(super) fn has_only_threads(filter: &Filter) -> bool {
    !filter.threads.is_empty() || filter.level == Some(Level::User)
}

impl<'a> Replayer<'a> {
    /// `only_threads`: see [`has_only_threads`].
    pub(super) fn new(actors: &'a Actors, ids: Arc<ActorIds>, only_threads: bool) -> Replayer<'a> {
        Replayer {
            actors,
            ids,
            processes: actors.process_ids().map(|id| (actors[id].pid, id)).collect(),
            current: CurrentValues::new(actors),
            open: OpenIntervals::default(),
            locks: HashMap::default(),
            last_cpus: vec![None; actors.lwps.len()],
            last_lwps: vec![NO_LWP; actors.threads.len()],
            only_threads,
            replayed: Replayed::default(),
            changes: Changes::default(),
        }
    }

    /// The changes that have not been taken yet.
    pub(super) fn changes(&mut self) -> &mut Changes {
        &mut self.changes
    }

    /// Takes the changes.
    pub(super) fn take(&mut self) -> Changes {
        let mut taken = std::mem::take(&mut self.changes);
        taken.replayed = self.replayed;
        taken
    }

    /// Nothing ends before this tick.
    pub(super) fn next_end(&self) -> i64 {
        let interval = self.open.next_end().unwrap_or(i64::MAX);
        // A value still has its last tick, so it ends one tick later.
        let value = self.current.next_end().map_or(i64::MAX, |end| end.saturating_add(1));
        interval.min(value)
    }

    /// An LWP begins a state.
    pub(super) fn lwp_state(&mut self, row: &StateRow) {
        self.advance(row.from);
        let state = LwpState::ALL[usize::from(row.state)];
        let Some(lwp) = self.ids.lwp(self.actors, Lwp(row.actor as u32), Ticks(row.from as u64)) else {
            // LWPs that ended before the window are not actors.
            self.replayed.unknown_actors += u64::from(state != LwpState::Exited);
            return;
        };
        self.replayed.states += 1;
        let cpu = self.cpu(row.cpu.into());
        if state == LwpState::Exited {
            return self.exited(row.from, Slot::Lwp(lwp));
        }
        self.current.set_state(Slot::Lwp(lwp), row.to);
        self.changes.push(row.from, Change::Lwp { lwp, state: Some(state), cpu });
        if let Some(cpu) = cpu.filter(|_| state == LwpState::Running) {
            self.lwp_on_cpu(row.from, cpu, lwp, row.to);
        }
    }

    /// A user thread begins a state.
    pub(super) fn thread_state(&mut self, row: &StateRow) {
        self.advance(row.from);
        let at = Ticks(row.from as u64);
        let state = ThreadState::ALL[usize::from(row.state)];
        let Some(thread) = self.ids.thread(self.actors, Thread(row.actor as u64), at) else {
            self.replayed.unknown_actors += u64::from(state != ThreadState::Exited);
            return;
        };
        self.replayed.states += 1;
        let cpu = self.cpu(row.cpu.into());
        let lwp = u32::try_from(row.lwp).ok().and_then(|lwp| self.ids.lwp(self.actors, Lwp(lwp), at));
        if state == ThreadState::Exited {
            return self.exited(row.from, Slot::Thread(thread));
        }
        self.current.set_state(Slot::Thread(thread), row.to);
        let blocked_for = WaitKind::from_number(row.blocked_for.into());
        // For a sleep, the value is its length, not an object.
        let blocked_on = row.blocked_on.filter(|_| blocked_for != Some(WaitKind::Sleep));
        let change = Change::Thread { thread, state: Some(state), lwp, cpu, blocked_on, blocked_for };
        self.changes.push(row.from, change);
        if let Some(lwp) = lwp {
            self.thread_on_lwp(row.from, lwp, thread, row.to);
        }
        if let Some(cpu) = cpu.filter(|_| state == ThreadState::Active) {
            if let Some(lwp) = lwp.filter(|_| self.only_threads) {
                self.lwp_on_cpu(row.from, cpu, lwp, row.to);
            }
            if self.current.set_occupant(Slot::CpuThread(cpu), thread.0, row.to) {
                self.changes.push(row.from, Change::CpuThread(cpu, Some(thread)));
            }
        }
    }

    /// A system call, an interrupt, a span or a function begins.
    pub(super) fn slice(&mut self, row: &SliceRow) {
        self.advance(row.from);
        let track = match row.track {
            SliceTrack::Cpu(cpu) => self.cpu(cpu).map(Track::Cpu),
            SliceTrack::Actor(actor) => self.track(actor, row.from),
        };
        let Some(track) = track else { return };
        self.replayed.slices += 1;
        self.replayed.slices_without_end += u64::from(!row.is_complete);
        self.replayed.cut_slices += u64::from(self.open.begin_slice(track, row.kind, row.to));
        self.changes.enter(row.from, track, Slice { kind: row.kind, name: &row.name });
    }

    /// A hold of a lock begins.
    pub(super) fn hold(&mut self, row: &HoldRow) {
        self.advance(row.from);
        let Some(kind) = WaitKind::from_number(row.kind.into()) else { return };
        let Some(by) = self.track(row.owner, row.from) else { return };
        let process = match by {
            Track::Thread(thread) => self.actors[thread].process,
            Track::Lwp(lwp) => self.actors[lwp].process,
            Track::Cpu(_) => return,
        };
        let next = self.locks.len() as u32;
        let lock = *self.locks.entry((process, row.object)).or_insert(next);
        self.replayed.holds += 1;
        self.replayed.holds_without_end += u64::from(!row.is_complete);
        let hold = Hold { number: self.replayed.holds, lock, address: row.object as u64, kind };
        self.open.begin_hold(by, hold, row.to);
        self.changes.push(row.from, Change::Locked { by, hold })
    }

    /// An LWP or a user thread is woken.
    pub(super) fn wakeup(&mut self, row: &WakeupRow) {
        self.advance(row.at);
        let Some(of) = self.track(row.woken, row.at) else { return };
        self.replayed.wakeups += 1;
        let cpu = row.cpu.and_then(|cpu| self.cpu(cpu)).map(Track::Cpu);
        let actor = |number: Option<ActorNumber>| number.and_then(|number| self.track(number, row.at));
        let by = match cpu {
            Some(cpu) if row.in_interrupt => Some(cpu),
            cpu => actor(row.waker_thread.map(ActorNumber::Thread))
                .or_else(|| actor(row.waker_lwp.map(ActorNumber::Lwp)))
                .or(cpu),
        };
        self.changes.push(row.at, Change::Wakeup { by, of })
    }

    /// A counter gets a new value.
    pub(super) fn counter(&mut self, row: &CounterRow) {
        self.advance(row.at);
        let counter = match row.queue {
            QueueNumber::Run(cpu) => self.cpu(cpu).map(Counter::RunQueue),
            QueueNumber::Ready(pid) => {
                let pid = pid.and_then(|pid| u32::try_from(pid).ok()).map(Pid);
                self.processes.get(&pid).copied().map(Counter::ReadyQueue)
            }
        };
        if let Some(counter) = counter {
            self.changes.push(row.at, Change::Count(counter, row.value.max(0) as u64));
        }
    }

    /// The track of an LWP or a user thread.
    fn track(&self, number: ActorNumber, at: i64) -> Option<Track> {
        let at = Ticks(at as u64);
        match number {
            ActorNumber::Thread(thread) => {
                self.ids.thread(self.actors, Thread(thread as u64), at).map(Track::Thread)
            }
            ActorNumber::Lwp(lwp) => {
                let lwp = u32::try_from(lwp).ok()?;
                self.ids.lwp(self.actors, Lwp(lwp), at).map(Track::Lwp)
            }
        }
    }

    fn lwp_on_cpu(&mut self, tick: i64, cpu: CpuId, lwp: LwpId, to: i64) {
        if let Some(from) = self.last_cpus[lwp.index()].replace(cpu).filter(|from| *from != cpu) {
            let (from, to) = (Track::Cpu(from), Track::Cpu(cpu));
            self.changes.push(tick, Change::Migration { of: Track::Lwp(lwp), from, to });
        }
        if self.current.set_occupant(Slot::CpuLwp(cpu), lwp.0, to) {
            self.changes.push(tick, Change::CpuLwp(cpu, Some(lwp)));
        }
    }

    fn thread_on_lwp(&mut self, tick: i64, lwp: LwpId, thread: ThreadId, to: i64) {
        let from = std::mem::replace(&mut self.last_lwps[thread.index()], lwp);
        if from != lwp && from != NO_LWP {
            let (from, to) = (Track::Lwp(from), Track::Lwp(lwp));
            self.changes.push(tick, Change::Migration { of: Track::Thread(thread), from, to });
        }
        if self.current.set_occupant(Slot::LwpThread(lwp), thread.0, to) {
            self.changes.push(tick, Change::LwpThread(lwp, Some(thread)));
        }
    }

    /// An LWP or a user thread has exited.
    fn exited(&mut self, tick: i64, slot: Slot) {
        if self.current.clear(slot) {
            self.value_ends(tick, slot);
        }
    }

    /// Advances to this tick: ends values that ended before it, and slices and holds that end at or before it.
    pub(super) fn advance(&mut self, tick: i64) {
        while let Some(at) = self.open.next_end().filter(|end| *end <= tick) {
            self.end_values_before(at);
            match self.open.end_next() {
                Some(End::Slice(track, kind)) => self.changes.push(at, Change::Leave(track, kind)),
                Some(End::Hold(by, hold)) => self.changes.push(at, Change::Unlocked { by, hold }),
                None => {}
            }
        }
        self.end_values_before(tick)
    }

    fn end_values_before(&mut self, tick: i64) {
        while let Some((ended, slot)) = self.current.ended_before(tick) {
            self.value_ends(ended, slot);
        }
    }

    fn value_ends(&mut self, tick: i64, slot: Slot) {
        self.changes.push(
            tick,
            match slot {
                Slot::CpuLwp(cpu) => Change::CpuLwp(cpu, None),
                Slot::CpuThread(cpu) => Change::CpuThread(cpu, None),
                Slot::LwpThread(lwp) => Change::LwpThread(lwp, None),
                Slot::Lwp(lwp) => Change::Lwp { lwp, state: None, cpu: None },
                Slot::Thread(thread) => Change::Thread {
                    thread,
                    state: None,
                    lwp: None,
                    cpu: None,
                    blocked_on: None,
                    blocked_for: None,
                },
            },
        )
    }

    /// Ends the replay. Intervals are cut to the window, so all have ended by then.
    pub(super) fn finish(&mut self) {
        self.advance(i64::MAX);
    }

    fn cpu(&self, cpu: i64) -> Option<CpuId> {
        u32::try_from(cpu).ok().and_then(|cpu| self.ids.cpu(self.actors, Cpu(cpu)))
    }
}
