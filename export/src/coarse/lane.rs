//! Lanes: sequences of states without gaps, of an LWP or a user thread; and the occupants of a CPU or an LWP.

use std::collections::HashMap;

use sigmund_model::{LwpState, Ticks};

use super::pending_changes::{PendingChange, PendingChanges};
use super::{Buckets, TrackIndices};
use crate::living::Living;
use crate::timeline::{Actors, Change, CpuId, DetailedState, LwpId, ThreadId};

/// Identifies a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneId {
    CpuLwp(CpuId),
    CpuThread(CpuId),
    LwpThread(LwpId),
    Lwp(LwpId),
    Thread(ThreadId),
}

/// A state, or an occupant, with its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneValue {
    /// 0 for none; otherwise 1 + the index of the detailed state or of the occupant. Totals are computed per key.
    key: u32,
    lwp: Option<LwpId>,
    cpu: Option<CpuId>,
    blocked_on: Option<i64>,
}

/// A value that begins at an instant, with the number of the change that began it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenState {
    pub(super) value: LaneValue,
    pub(super) from: Ticks,
    pub(super) number: u64,
}

/// The state in a change, if it is a change of state.
#[inline]
pub(super) fn state(change: &Change<'_>) -> Option<(LaneId, LaneValue)> {
    let with_key = |index: Option<u32>| LaneValue {
        key: index.map_or(0, |index| index + 1),
        lwp: None,
        cpu: None,
        blocked_on: None,
    };
    Some(match *change {
        Change::CpuLwp(cpu, lwp) => (LaneId::CpuLwp(cpu), with_key(lwp.map(|lwp| lwp.0))),
        Change::CpuThread(cpu, thread) => (LaneId::CpuThread(cpu), with_key(thread.map(|thread| thread.0))),
        Change::LwpThread(lwp, thread) => (LaneId::LwpThread(lwp), with_key(thread.map(|thread| thread.0))),
        Change::Lwp { lwp, state, cpu } => {
            (LaneId::Lwp(lwp), LaneValue { cpu, ..with_key(state.map(|state| state as u32)) })
        }
        Change::Thread { thread, state, lwp, cpu, blocked_on, blocked_for } => {
            let state_value =
                with_key(state.map(|state| DetailedState::new(state, blocked_for).index() as u32));
            (LaneId::Thread(thread), LaneValue { lwp, cpu, blocked_on, ..state_value })
        }
        _ => return None,
    })
}

impl LaneId {
    /// The change for a state.
    pub(super) fn change(self, value: LaneValue) -> Change<'static> {
        let LaneValue { key, lwp, cpu, blocked_on } = value;
        let index = key.checked_sub(1);
        match self {
            LaneId::CpuLwp(of) => Change::CpuLwp(of, index.map(LwpId)),
            LaneId::CpuThread(of) => Change::CpuThread(of, index.map(ThreadId)),
            LaneId::LwpThread(of) => Change::LwpThread(of, index.map(ThreadId)),
            LaneId::Lwp(lwp) => Change::Lwp { lwp, state: index.map(|i| LwpState::ALL[i as usize]), cpu },
            LaneId::Thread(thread) => {
                let detailed = index.map(|i| DetailedState::at(i as usize));
                let (state, blocked_for) =
                    (detailed.map(DetailedState::state), detailed.and_then(DetailedState::blocked_for));
                Change::Thread { thread, state, lwp, cpu, blocked_on, blocked_for }
            }
        }
    }
}

/// All lanes.
#[derive(Debug)]
pub(super) struct Lanes {
    indices: TrackIndices,
    lanes: Living<Lane>,
    /// Lanes whose open state is not yet known to be short or long.
    pending: Vec<LaneId>,
}

impl Lanes {
    pub(super) fn new(actors: &Actors) -> Lanes {
        let indices = TrackIndices::of(actors);
        let lanes = 2 * (indices.cpus + indices.lwps) + actors.threads.len();
        Lanes { indices, lanes: Living::new(lanes), pending: Vec::new() }
    }

    fn index(indices: TrackIndices, lane: LaneId) -> usize {
        let TrackIndices { cpus, lwps } = indices;
        match lane {
            LaneId::CpuLwp(cpu) => cpu.index(),
            LaneId::CpuThread(cpu) => cpus + cpu.index(),
            LaneId::LwpThread(lwp) => 2 * cpus + lwp.index(),
            LaneId::Lwp(lwp) => 2 * cpus + lwps + lwp.index(),
            LaneId::Thread(thread) => 2 * (cpus + lwps) + thread.index(),
        }
    }

    /// Begins a state. Returns whether the previous one was short.
    #[inline]
    pub(super) fn change(
        &mut self,
        id: LaneId,
        received: OpenState,
        buckets: Buckets,
        pending_changes: &mut PendingChanges,
    ) -> bool {
        let lane = self.lanes.get_or_insert_with(Lanes::index(self.indices, id), Lane::default);
        let was_short = lane.end(id, received.from, buckets, pending_changes);
        lane.open = Some(received);
        if !lane.is_pending {
            lane.is_pending = true;
            self.pending.push(id);
        }
        was_short
    }

    /// Emits the states that began a bucket ago: they are long.
    pub(super) fn settle(&mut self, now: Ticks, buckets: Buckets, pending_changes: &mut PendingChanges) {
        let (lanes, indices) = (&mut self.lanes, self.indices);
        self.pending.retain(|id| {
            let index = Lanes::index(indices, *id);
            let Some(lane) = lanes.get_mut(index) else { return false };
            let is_long = lane.open.is_some_and(|open| buckets.is_long(open.from, now));
            if is_long {
                lane.emit_open(*id, pending_changes);
            }
            lane.is_pending = !is_long;
            let is_pending = lane.is_pending;
            if !is_pending && lane.has_ended() {
                lanes.remove(index);
            }
            is_pending
        });
    }

    /// Emits the open states at the end of the timeline; by its rules they are `None`.
    pub(super) fn finish(&mut self, pending_changes: &mut PendingChanges) {
        for id in self.pending.drain(..) {
            if let Some(lane) = self.lanes.get_mut(Lanes::index(self.indices, id)) {
                lane.is_pending = false;
                lane.emit_open(id, pending_changes);
            }
        }
    }
}

/// The states of one lane.
#[derive(Debug, Default)]
struct Lane {
    /// The open state; `None` before the first, and after it was emitted as a long one.
    open: Option<OpenState>,
    /// The short states before it, since the beginning of its bucket or the last long one.
    sums: Sums,
    /// The last emitted state, and whether it was short.
    emitted: Option<(LaneValue, bool)>,
    is_pending: bool,
}

impl Lane {
    /// Whether the last emitted state is none, and no other state follows yet: the actor has ended, or has not yet
    /// begun again.
    fn has_ended(&self) -> bool {
        self.open.is_none() && self.emitted.is_some_and(|(value, _)| value.key == 0)
    }

    /// Ends the open state. Returns whether it was short.
    fn end(&mut self, id: LaneId, to: Ticks, buckets: Buckets, pending_changes: &mut PendingChanges) -> bool {
        let Some(open) = self.open else { return false };
        if buckets.is_long(open.from, to) {
            self.emit_open(id, pending_changes);
            return false;
        }
        self.add(id, open, to, buckets, pending_changes);
        true
    }

    /// Adds a short state to the sums of its bucket. A part that is in the next bucket is added to the next bucket's
    /// sums.
    fn add(
        &mut self,
        id: LaneId,
        short: OpenState,
        to: Ticks,
        buckets: Buckets,
        pending_changes: &mut PendingChanges,
    ) {
        let end = Ticks(buckets.end(short.from));
        self.sums.add(short, to.min(end));
        if to >= end {
            self.emit_sums(id, pending_changes);
        }
        if to > end {
            self.sums.add(OpenState { from: end, ..short }, to);
        }
    }

    /// Emits the open state, which is long, after the short states before it.
    fn emit_open(&mut self, id: LaneId, pending_changes: &mut PendingChanges) {
        self.emit_sums(id, pending_changes);
        if let Some(open) = self.open.take() {
            self.emit(id, open, false, pending_changes);
        }
    }

    fn emit_sums(&mut self, id: LaneId, pending_changes: &mut PendingChanges) {
        let mut from = self.sums.from;
        let mut sums = std::mem::take(&mut self.sums);
        for sum in &sums.of_values {
            self.emit(id, OpenState { from, ..sum.first }, true, pending_changes);
            from = Ticks(from.0 + sum.ticks);
        }
        sums.clear();
        self.sums = sums;
    }

    fn emit(&mut self, id: LaneId, state: OpenState, is_short: bool, pending_changes: &mut PendingChanges) {
        let OpenState { value, from, number } = state;
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
    /// In the order of first occurrence.
    of_values: Vec<Sum>,
    /// Index in `of_values` by key, if there are more than [`MAX_SEARCHED`].
    indices_by_key: HashMap<u32, usize, foldhash::fast::RandomState>,
}

#[derive(Clone, Copy, Debug)]
struct Sum {
    first: OpenState,
    ticks: u64,
}

/// Up to this number of values, a value is found by a linear search. It is larger than the number of states.
const MAX_SEARCHED: usize = 32;

const _: () = assert!(MAX_SEARCHED > DetailedState::COUNT);

impl Sums {
    #[inline]
    fn add(&mut self, short: OpenState, to: Ticks) {
        let ticks = to.0 - short.from.0;
        if ticks == 0 {
            return;
        }
        if self.of_values.is_empty() {
            self.from = short.from;
        }
        match self.index_of(short.value.key) {
            Some(index) => self.of_values[index].add(short.value, ticks),
            None => {
                self.of_values.push(Sum { first: short, ticks });
                self.index_newest();
            }
        }
    }

    #[inline]
    fn index_of(&self, key: u32) -> Option<usize> {
        if self.of_values.len() > MAX_SEARCHED {
            return self.indices_by_key.get(&key).copied();
        }
        self.of_values.iter().position(|sum| sum.first.value.key == key)
    }

    /// Adds the newest value to the map of indices; all values, when a linear search no longer suffices.
    fn index_newest(&mut self) {
        let len = self.of_values.len();
        let from = if len == MAX_SEARCHED + 1 { 0 } else { len - 1 };
        if len > MAX_SEARCHED {
            let new = self.of_values[from..].iter().zip(from..);
            self.indices_by_key.extend(new.map(|(sum, index)| (sum.first.value.key, index)));
        }
    }

    fn clear(&mut self) {
        self.of_values.clear();
        self.indices_by_key.clear();
    }
}

impl Sum {
    /// Adds ticks. An attribute that is not the same in all states of the sum is left out.
    fn add(&mut self, value: LaneValue, ticks: u64) {
        let first = &mut self.first.value;
        first.lwp = first.lwp.filter(|_| first.lwp == value.lwp);
        first.cpu = first.cpu.filter(|_| first.cpu == value.cpu);
        first.blocked_on = first.blocked_on.filter(|_| first.blocked_on == value.blocked_on);
        self.ticks += ticks;
    }
}
