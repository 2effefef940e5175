//! Sequences of states without holes: of an LWP, of a user thread, and the occupants of a CPU or an LWP.

use std::collections::HashMap;

use sigmund_model::{LwpState, Ticks};

use super::pending_changes::{PendingChange, PendingChanges};
use super::{Buckets, Numbers};
use crate::timeline::{Actors, Change, CpuId, DetailedState, LwpId, ThreadId};

/// Which sequence of states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneId {
    CpuLwp(CpuId),
    CpuThread(CpuId),
    LwpThread(LwpId),
    Lwp(LwpId),
    Thread(ThreadId),
}

/// A state, or an occupant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// 0 is none; otherwise 1 + the index of the detailed state or of the occupant. Totals are kept
    /// by this number.
    key: u32,
    lwp: Option<LwpId>,
    cpu: Option<CpuId>,
    blocked_on: Option<i64>,
}

/// A state that begins at an instant, by the change of this number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) value: Value,
    pub(super) from: Ticks,
    pub(super) number: u64,
}

/// The state in a change, if it is a change of state.
#[inline]
pub(super) fn state(change: &Change<'_>) -> Option<(LaneId, Value)> {
    let who = |index: Option<u32>| Value {
        key: index.map_or(0, |index| index + 1),
        lwp: None,
        cpu: None,
        blocked_on: None,
    };
    Some(match *change {
        Change::CpuLwp(cpu, lwp) => (LaneId::CpuLwp(cpu), who(lwp.map(|lwp| lwp.0))),
        Change::CpuThread(cpu, thread) => (LaneId::CpuThread(cpu), who(thread.map(|thread| thread.0))),
        Change::LwpThread(lwp, thread) => (LaneId::LwpThread(lwp), who(thread.map(|thread| thread.0))),
        Change::Lwp { lwp, state, cpu } => {
            (LaneId::Lwp(lwp), Value { cpu, ..who(state.map(|state| state as u32)) })
        }
        Change::Thread { thread, state, lwp, cpu, blocked_on, blocked_for } => {
            let doing = who(state.map(|state| DetailedState::new(state, blocked_for).index() as u32));
            (LaneId::Thread(thread), Value { lwp, cpu, blocked_on, ..doing })
        }
        _ => return None,
    })
}

impl LaneId {
    /// The change for a state.
    pub(super) fn change(self, value: Value) -> Change<'static> {
        let Value { key, lwp, cpu, blocked_on } = value;
        let index = key.checked_sub(1);
        match self {
            LaneId::CpuLwp(of) => Change::CpuLwp(of, index.map(LwpId)),
            LaneId::CpuThread(of) => Change::CpuThread(of, index.map(ThreadId)),
            LaneId::LwpThread(of) => Change::LwpThread(of, index.map(ThreadId)),
            LaneId::Lwp(lwp) => Change::Lwp { lwp, state: index.map(|i| LwpState::ALL[i as usize]), cpu },
            LaneId::Thread(thread) => {
                let doing = index.map(|i| DetailedState::at(i as usize));
                let (state, blocked_for) =
                    (doing.map(DetailedState::state), doing.and_then(DetailedState::blocked_for));
                Change::Thread { thread, state, lwp, cpu, blocked_on, blocked_for }
            }
        }
    }
}

/// All sequences.
#[derive(Debug)]
pub(super) struct Lanes {
    numbers: Numbers,
    lanes: Vec<Lane>,
    /// Lanes whose open state is not yet known to be short or long.
    pending: Vec<LaneId>,
}

impl Lanes {
    pub(super) fn new(actors: &Actors) -> Lanes {
        let numbers = Numbers::of(actors);
        let mut lanes = Vec::new();
        lanes.resize_with(2 * (numbers.cpus + numbers.lwps) + actors.threads.len(), Lane::default);
        Lanes { numbers, lanes, pending: Vec::new() }
    }

    fn index(numbers: Numbers, lane: LaneId) -> usize {
        let Numbers { cpus, lwps } = numbers;
        match lane {
            LaneId::CpuLwp(cpu) => cpu.index(),
            LaneId::CpuThread(cpu) => cpus + cpu.index(),
            LaneId::LwpThread(lwp) => 2 * cpus + lwp.index(),
            LaneId::Lwp(lwp) => 2 * cpus + lwps + lwp.index(),
            LaneId::Thread(thread) => 2 * (cpus + lwps) + thread.index(),
        }
    }

    /// Begins another state; returns whether the one before was short.
    #[inline]
    pub(super) fn change(
        &mut self,
        id: LaneId,
        received: Stretch,
        buckets: Buckets,
        pending_changes: &mut PendingChanges,
    ) -> bool {
        let lane = &mut self.lanes[Lanes::index(self.numbers, id)];
        let was_short = lane.end(id, received.from, buckets, pending_changes);
        lane.open = Some(received);
        if !lane.is_pending {
            lane.is_pending = true;
            self.pending.push(id);
        }
        was_short
    }

    /// States that began a bucket ago are long.
    pub(super) fn settle(&mut self, now: Ticks, buckets: Buckets, pending_changes: &mut PendingChanges) {
        let (lanes, numbers) = (&mut self.lanes, self.numbers);
        self.pending.retain(|id| {
            let lane = &mut lanes[Lanes::index(numbers, *id)];
            let is_long = lane.open.is_some_and(|open| buckets.is_long(open.from, now));
            if is_long {
                lane.tell_open(*id, pending_changes);
            }
            lane.is_pending = !is_long;
            lane.is_pending
        });
    }

    /// Nothing follows. What is open is emitted; by the rules of a timeline it is `None`.
    pub(super) fn finish(&mut self, pending_changes: &mut PendingChanges) {
        for id in self.pending.drain(..) {
            let lane = &mut self.lanes[Lanes::index(self.numbers, id)];
            lane.is_pending = false;
            lane.tell_open(id, pending_changes);
        }
    }
}

/// The states of one track.
#[derive(Debug, Default)]
struct Lane {
    /// The open state; `None` before the first, and when it has been emitted as a long one.
    open: Option<Stretch>,
    /// The short states before it, back to the beginning of its bucket or to a long one.
    sums: Sums,
    /// The last emitted state, and whether it was short.
    emitted: Option<(Value, bool)>,
    is_pending: bool,
}

impl Lane {
    /// Ends the open state; returns whether it was short.
    fn end(&mut self, id: LaneId, to: Ticks, buckets: Buckets, pending_changes: &mut PendingChanges) -> bool {
        let Some(open) = self.open else { return false };
        if buckets.is_long(open.from, to) {
            self.tell_open(id, pending_changes);
            return false;
        }
        self.add(id, open, to, buckets, pending_changes);
        true
    }

    /// Adds a short state to its bucket, and the part in the next bucket to that one.
    fn add(
        &mut self,
        id: LaneId,
        short: Stretch,
        to: Ticks,
        buckets: Buckets,
        pending_changes: &mut PendingChanges,
    ) {
        let end = Ticks(buckets.end(short.from));
        self.sums.add(short, to.min(end));
        if to >= end {
            self.tell_sums(id, pending_changes);
        }
        if to > end {
            self.sums.add(Stretch { from: end, ..short }, to);
        }
    }

    /// The open state is long, so the short ones before it are complete.
    fn tell_open(&mut self, id: LaneId, pending_changes: &mut PendingChanges) {
        self.tell_sums(id, pending_changes);
        if let Some(open) = self.open.take() {
            self.emit(id, open, false, pending_changes);
        }
    }

    fn tell_sums(&mut self, id: LaneId, pending_changes: &mut PendingChanges) {
        let mut from = self.sums.from;
        let mut sums = std::mem::take(&mut self.sums);
        for sum in &sums.of_values {
            self.emit(id, Stretch { from, ..sum.first }, true, pending_changes);
            from = Ticks(from.0 + sum.ticks);
        }
        sums.clear();
        self.sums = sums;
    }

    fn emit(&mut self, id: LaneId, stretch: Stretch, is_short: bool, pending_changes: &mut PendingChanges) {
        let Stretch { value, from, number } = stretch;
        match &mut self.emitted {
            // The same value continues.
            Some((emitted, was_short)) if *emitted == value && (is_short || *was_short) => {
                *was_short = is_short
            }
            emitted => {
                *emitted = Some((value, is_short));
                pending_changes.push(from, number, PendingChange::State(id, value));
            }
        }
    }
}

/// Short states of one bucket, by value.
#[derive(Debug, Default)]
struct Sums {
    from: Ticks,
    /// In the order of their first occurrence.
    of_values: Vec<Sum>,
    /// Index of each, if there are many.
    places: HashMap<u32, usize, foldhash::fast::RandomState>,
}

#[derive(Clone, Copy, Debug)]
struct Sum {
    first: Stretch,
    ticks: u64,
}

/// Larger than the number of states.
const FEW: usize = 32;

const _: () = assert!(FEW > DetailedState::COUNT);

impl Sums {
    #[inline]
    fn add(&mut self, short: Stretch, to: Ticks) {
        let ticks = to.0 - short.from.0;
        if ticks == 0 {
            return;
        }
        if self.of_values.is_empty() {
            self.from = short.from;
        }
        match self.place(short.value.key) {
            Some(place) => self.of_values[place].add(short.value, ticks),
            None => {
                self.of_values.push(Sum { first: short, ticks });
                self.remember();
            }
        }
    }

    #[inline]
    fn place(&self, key: u32) -> Option<usize> {
        if self.of_values.len() > FEW {
            return self.places.get(&key).copied();
        }
        self.of_values.iter().position(|sum| sum.first.value.key == key)
    }

    /// Records the index of the newest; of all, once there are many.
    fn remember(&mut self) {
        let len = self.of_values.len();
        let from = if len == FEW + 1 { 0 } else { len - 1 };
        if len > FEW {
            let new = self.of_values[from..].iter().zip(from..);
            self.places.extend(new.map(|(sum, place)| (sum.first.value.key, place)));
        }
    }

    fn clear(&mut self) {
        self.of_values.clear();
        self.places.clear();
    }
}

impl Sum {
    /// Attributes that differ are left out.
    fn add(&mut self, value: Value, ticks: u64) {
        let first = &mut self.first.value;
        first.lwp = first.lwp.filter(|_| first.lwp == value.lwp);
        first.cpu = first.cpu.filter(|_| first.cpu == value.cpu);
        first.blocked_on = first.blocked_on.filter(|_| first.blocked_on == value.blocked_on);
        self.ticks += ticks;
    }
}
