//! Turns rows into changes: occupants, states, slices, wakeups, locks, counters, and corrections.

use sigmund_model::{Context, Cpu, Level, Lwp, LwpState, Params, Thread, ThreadState, Ticks, WaitKind};
use sigmund_query::{EventRow, Filter};
use sigmund_sql::SuperTrace;

use super::{
    Replayed,
    actor_ids::ActorIds,
    current_values::{CurrentValues, Slot},
    declarations::Declarations,
    event_roles::{EventRole, EventRoles},
    open_holds::OpenHolds,
    open_slices::OpenSlices,
    queue_lengths::{Counts, QueueLengths},
    state_intervals::StateInterval,
};
use crate::{
    Error,
    timeline::{
        Actors, Change, CpuId, EventTypeId, LwpId, ProcessId, RecordedEvent, Sink, Slice, SliceKind,
        ThreadId, Track,
    },
};

/// Turns rows, which come in the order of time, into changes.
pub(super) struct Replayer<'a> {
    actors: &'a Actors,
    ids: ActorIds,
    declarations: Declarations<'a>,
    roles: EventRoles,
    current: CurrentValues,
    slices: OpenSlices,
    locks: OpenHolds,
    queues: QueueLengths,
    /// The last place of each: CPUs of LWPs, LWPs of user threads.
    lwp_was_on: Vec<Option<CpuId>>,
    thread_was_on: Vec<Option<LwpId>>,
    /// LWPs on CPUs are derived from states of user threads, because states of LWPs are not selected.
    only_threads: bool,
    replayed: Replayed,
    /// The tick of the last change.
    reached: i64,
    params: Params,
    name: String,
    sink: &'a mut dyn Sink,
}

impl<'a> Replayer<'a> {
    pub(super) fn new(
        trace: &'a SuperTrace,
        filter: &Filter,
        actors: &'a Actors,
        sink: &'a mut dyn Sink,
    ) -> Replayer<'a> {
        Replayer {
            actors,
            ids: ActorIds::of(actors),
            declarations: Declarations::of(actors),
            roles: EventRoles::of(trace.event_types().iter().map(|event| (&event.ty, event.events))),
            current: CurrentValues::new(actors),
            slices: OpenSlices::default(),
            locks: OpenHolds::default(),
            queues: QueueLengths::new(actors),
            lwp_was_on: vec![None; actors.lwps.len()],
            thread_was_on: vec![None; actors.threads.len()],
            only_threads: !filter.threads.is_empty() || filter.level == Some(Level::User),
            replayed: Replayed::default(),
            reached: actors.clock.first.0 as i64,
            params: Params::default(),
            name: String::new(),
            sink,
        }
    }

    pub(super) fn replayed(&self) -> &Replayed {
        &self.replayed
    }

    pub(super) fn reached(&self) -> Ticks {
        Ticks(self.reached as u64)
    }

    /// An LWP begins a state.
    pub(super) fn lwp_state(&mut self, row: &StateInterval) -> Result<(), Error> {
        self.advance(row.from)?;
        let state = LwpState::ALL[usize::from(row.state)];
        let Some(lwp) = self.ids.lwp(Lwp(row.actor as u32), Ticks(row.from as u64)) else {
            // Those that ended before the window are not among the actors.
            self.replayed.unknown_actors += u64::from(state != LwpState::Exited);
            return Ok(());
        };
        self.replayed.states += 1;
        let cpu = self.cpu(row.cpu);
        if state == LwpState::Exited {
            return self.exited(row.from, Slot::Lwp(lwp), Track::Lwp(lwp));
        }
        self.current.hold(Slot::Lwp(lwp), row.state.into(), row.to);
        self.change(row.from, &Change::Lwp { lwp, state: Some(state), cpu })?;
        let queue = cpu.filter(|_| state == LwpState::Runnable);
        let counts = self.queues.lwp_waits(lwp, queue);
        self.count(row.from, counts)?;
        if let Some(cpu) = cpu.filter(|_| state == LwpState::Running) {
            self.lwp_on_cpu(row.from, cpu, lwp, row.to)?;
        }
        Ok(())
    }

    /// A user thread begins a state.
    pub(super) fn thread_state(&mut self, row: &StateInterval) -> Result<(), Error> {
        self.advance(row.from)?;
        let at = Ticks(row.from as u64);
        let state = ThreadState::ALL[usize::from(row.state)];
        let Some(thread) = self.ids.thread(Thread(row.actor as u64), at) else {
            self.replayed.unknown_actors += u64::from(state != ThreadState::Exited);
            return Ok(());
        };
        self.replayed.states += 1;
        let cpu = self.cpu(row.cpu);
        let lwp = u32::try_from(row.lwp).ok().and_then(|lwp| self.ids.lwp(Lwp(lwp), at));
        if state == ThreadState::Exited {
            return self.exited(row.from, Slot::Thread(thread), Track::Thread(thread));
        }
        self.current.hold(Slot::Thread(thread), row.state.into(), row.to);
        let (blocked_on, blocked_for) = (row.blocked_on, WaitKind::from_number(row.blocked_for.into()));
        let change = Change::Thread { thread, state: Some(state), lwp, cpu, blocked_on, blocked_for };
        self.change(row.from, &change)?;
        let waits = matches!(state, ThreadState::New | ThreadState::Ready);
        let counts = self.queues.thread_waits(thread, waits.then_some(self.actors[thread].process));
        self.count(row.from, counts)?;
        if let Some(lwp) = lwp {
            self.thread_on_lwp(row.from, lwp, thread, row.to)?;
        }
        if let Some(cpu) = cpu.filter(|_| state == ThreadState::Active) {
            if let Some(lwp) = lwp.filter(|_| self.only_threads) {
                self.lwp_on_cpu(row.from, cpu, lwp, row.to)?;
            }
            if self.current.hold(Slot::CpuThread(cpu), thread.0, row.to) != Some(thread.0) {
                self.change(row.from, &Change::CpuThread(cpu, Some(thread)))?;
            }
        }
        Ok(())
    }

    /// Replays an event.
    pub(super) fn event(&mut self, row: &EventRow<'_>) -> Result<(), Error> {
        let tick = row.tick.0 as i64;
        self.advance(tick)?;
        let Some(kind) = self.declarations.of_row(row) else {
            self.replayed.unknown_actors += 1;
            return Ok(());
        };
        self.replayed.events += 1;
        self.params.clear();
        for param in row.params() {
            match (param.number, param.text) {
                (Some(number), Some(name)) => self.params.push_named(number, name),
                (Some(number), None) => self.params.push_number(number),
                (None, Some(text)) => self.params.push_text(text),
                (None, None) => self.params.push_unknown(),
            }
        }
        // Taken out while it is borrowed.
        let params = std::mem::take(&mut self.params);
        let context = row.context.and_then(|word| Context::ALL.iter().copied().find(|c| c.name() == word));
        let recorded = RecordedEvent {
            kind: EventTypeId(kind as u32),
            cpu: row.cpu.and_then(|cpu| self.ids.cpu(cpu)),
            lwp: row.lwp.and_then(|lwp| self.ids.lwp(lwp, row.tick)),
            thread: row.thread.and_then(|thread| self.ids.thread(thread, row.tick)),
            context,
            cpu_seen: row.cpu_seen,
            params: &params,
        };
        let result = self.event_by_role(tick, row, &recorded);
        self.params = params;
        result
    }

    fn event_by_role(
        &mut self,
        tick: i64,
        row: &EventRow<'_>,
        event: &RecordedEvent<'_>,
    ) -> Result<(), Error> {
        let role = self.roles.role(event.kind.index());
        if let (Some(cpu), Some(Context::Task | Context::Idle)) = (event.cpu, event.context) {
            // A CPU in a task has left every interrupt; in some sources the exit itself has that context.
            let track = Track::Cpu(cpu);
            let exits = matches!(role, EventRole::Ends(SliceKind::Irq | SliceKind::Softirq));
            if !self.slices.is_empty(track) && !exits {
                self.leave_all(tick, track)?;
            }
        }
        match role {
            EventRole::Begins(kind) => {
                self.change(tick, &Change::Event(event))?;
                self.enter(tick, kind, event)
            }
            EventRole::Ends(kind) => {
                self.leave(tick, kind, event)?;
                self.change(tick, &Change::Event(event))
            }
            EventRole::Takes(fields) => {
                self.change(tick, &Change::Event(event))?;
                self.lock(tick, event, fields.read(event.params))
            }
            EventRole::GivesBack(fields) => {
                self.unlock(tick, event, fields.read(event.params))?;
                self.change(tick, &Change::Event(event))
            }
            EventRole::WakesLwp | EventRole::WakesThread | EventRole::Event => {
                self.change(tick, &Change::Event(event))?;
                let lwp = row.target_lwp.filter(|_| role == EventRole::WakesLwp);
                let thread = row.target_thread.filter(|_| role == EventRole::WakesThread);
                let of_lwp = lwp.and_then(|lwp| self.ids.lwp(lwp, row.tick)).map(Track::Lwp);
                let of_thread =
                    thread.and_then(|thread| self.ids.thread(thread, row.tick)).map(Track::Thread);
                match of_lwp.or(of_thread) {
                    Some(of) => self.change(tick, &Change::Wakeup { by: event.track(), of }),
                    None => Ok(()),
                }
            }
        }
    }

    fn enter(&mut self, tick: i64, kind: SliceKind, event: &RecordedEvent<'_>) -> Result<(), Error> {
        let Some(track) = slice_track(kind, event) else { return Ok(()) };
        // An LWP is in one system call at a time: the exit of the one before is missing.
        if kind == SliceKind::Syscall {
            let missing = self.slices.leave_any(track, kind);
            self.replayed.begins_without_end += missing.len() as u64;
            for kind in missing {
                self.change(tick, &Change::Leave(track, kind))?;
            }
        }
        let key = self.roles.key(event.kind.index(), event.params).unwrap_or_default();
        self.slices.enter(track, kind, key);
        let mut name = std::mem::take(&mut self.name);
        self.roles.name(event.kind.index(), event.params, &mut name);
        let entered = self.change(tick, &Change::Enter(track, Slice { kind, name: &name }));
        self.name = name;
        entered
    }

    fn leave(&mut self, tick: i64, kind: SliceKind, event: &RecordedEvent<'_>) -> Result<(), Error> {
        let Some(track) = slice_track(kind, event) else { return Ok(()) };
        let ends = match self.roles.key(event.kind.index(), event.params) {
            Some(key) => self.slices.leave(track, kind, key),
            None => self.slices.leave_any(track, kind),
        };
        match ends.len() {
            0 => self.replayed.ends_without_begin += 1,
            ends => self.replayed.begins_without_end += ends as u64 - 1,
        }
        ends.into_iter().try_for_each(|kind| self.change(tick, &Change::Leave(track, kind)))
    }

    fn lock(
        &mut self,
        tick: i64,
        event: &RecordedEvent<'_>,
        lock: Option<(u64, WaitKind)>,
    ) -> Result<(), Error> {
        let (Some((by, process)), Some(lock)) = (self.lock_owner(event), lock) else { return Ok(()) };
        let (hold, before) = self.locks.take(process, by, lock);
        if let Some((by, hold)) = before {
            self.replayed.broken_holds += 1;
            self.change(tick, &Change::Unlocked { by, hold })?;
        }
        self.change(tick, &Change::Locked { by, hold })
    }

    fn unlock(
        &mut self,
        tick: i64,
        event: &RecordedEvent<'_>,
        lock: Option<(u64, WaitKind)>,
    ) -> Result<(), Error> {
        let (Some((by, process)), Some(lock)) = (self.lock_owner(event), lock) else { return Ok(()) };
        match self.locks.give_back(process, by, lock) {
            Some((by, hold)) => self.change(tick, &Change::Unlocked { by, hold }),
            None => {
                self.replayed.broken_holds += 1;
                Ok(())
            }
        }
    }

    /// The actor that acquires or releases a lock, and the process of the lock.
    fn lock_owner(&self, event: &RecordedEvent<'_>) -> Option<(Track, ProcessId)> {
        match (event.thread, event.lwp) {
            (Some(thread), _) => Some((Track::Thread(thread), self.actors[thread].process)),
            (None, Some(lwp)) => Some((Track::Lwp(lwp), self.actors[lwp].process)),
            (None, None) => None,
        }
    }

    /// Ends every open slice of a track, because no other end is known.
    fn leave_all(&mut self, tick: i64, track: Track) -> Result<(), Error> {
        let ends = self.slices.leave_all(track);
        self.replayed.begins_without_end += ends.len() as u64;
        ends.into_iter().try_for_each(|kind| self.change(tick, &Change::Leave(track, kind)))
    }

    fn lwp_on_cpu(&mut self, tick: i64, cpu: CpuId, lwp: LwpId, to: i64) -> Result<(), Error> {
        if let Some(from) = self.lwp_was_on[lwp.index()].replace(cpu).filter(|from| *from != cpu) {
            let (from, to) = (Track::Cpu(from), Track::Cpu(cpu));
            self.change(tick, &Change::Migration { of: Track::Lwp(lwp), from, to })?;
        }
        if self.current.hold(Slot::CpuLwp(cpu), lwp.0, to) != Some(lwp.0) {
            self.change(tick, &Change::CpuLwp(cpu, Some(lwp)))?;
        }
        Ok(())
    }

    fn thread_on_lwp(&mut self, tick: i64, lwp: LwpId, thread: ThreadId, to: i64) -> Result<(), Error> {
        if let Some(from) = self.thread_was_on[thread.index()].replace(lwp).filter(|from| *from != lwp) {
            let (from, to) = (Track::Lwp(from), Track::Lwp(lwp));
            self.change(tick, &Change::Migration { of: Track::Thread(thread), from, to })?;
        }
        if self.current.hold(Slot::LwpThread(lwp), thread.0, to) != Some(thread.0) {
            self.change(tick, &Change::LwpThread(lwp, Some(thread)))?;
        }
        Ok(())
    }

    /// An LWP or a user thread has exited.
    fn exited(&mut self, tick: i64, slot: Slot, track: Track) -> Result<(), Error> {
        self.leave_all(tick, track)?;
        if self.current.release(slot) { self.ends(tick, slot) } else { Ok(()) }
    }

    /// Advances to this tick: ends what ended before.
    fn advance(&mut self, tick: i64) -> Result<(), Error> {
        while let Some((ended, slot)) = self.current.ended_before(tick) {
            self.ends(ended, slot)?;
        }
        Ok(())
    }

    /// The value of a slot ends.
    fn ends(&mut self, tick: i64, slot: Slot) -> Result<(), Error> {
        let counts = match slot {
            Slot::Lwp(lwp) => self.queues.lwp_waits(lwp, None),
            Slot::Thread(thread) => self.queues.thread_waits(thread, None),
            Slot::CpuLwp(_) | Slot::CpuThread(_) | Slot::LwpThread(_) => [None, None],
        };
        self.change(
            tick,
            &match slot {
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
        )?;
        self.count(tick, counts)
    }

    fn count(&mut self, tick: i64, counts: Counts) -> Result<(), Error> {
        counts
            .into_iter()
            .flatten()
            .try_for_each(|(counter, n)| self.change(tick, &Change::Count(counter, n)))
    }

    /// Ends the replay.
    pub(super) fn finish(mut self) -> Result<Replayed, Error> {
        let last = self.actors.clock.last.0 as i64;
        for track in self.slices.tracks() {
            self.leave_all(last, track)?;
        }
        for (by, hold) in self.locks.give_all_back() {
            self.replayed.broken_holds += 1;
            self.change(last, &Change::Unlocked { by, hold })?;
        }
        // Intervals are cut to the window, so all have ended by then.
        self.advance(i64::MAX)?;
        self.sink.finish()?;
        Ok(self.replayed)
    }

    fn cpu(&self, cpu: i32) -> Option<CpuId> {
        u32::try_from(cpu).ok().and_then(|cpu| self.ids.cpu(Cpu(cpu)))
    }

    fn change(&mut self, tick: i64, change: &Change<'_>) -> Result<(), Error> {
        self.reached = tick.max(self.reached).min(self.actors.clock.last.0 as i64);
        self.replayed.changes += 1;
        Ok(self.sink.change(Ticks(self.reached as u64), change)?)
    }
}

/// The track of a slice.
fn slice_track(kind: SliceKind, event: &RecordedEvent<'_>) -> Option<Track> {
    match kind {
        SliceKind::Span | SliceKind::Function => {
            event.thread.map(Track::Thread).or(event.lwp.map(Track::Lwp))
        }
        SliceKind::Syscall => event.lwp.map(Track::Lwp),
        SliceKind::Irq | SliceKind::Softirq => event.cpu.map(Track::Cpu),
    }
}
