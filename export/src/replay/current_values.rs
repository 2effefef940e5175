//! The values at the current instant (the occupant of each CPU and LWP, the state of each track), and their ends.
//!
//! A state ends where the next one on its track begins, or, if none follows, at its own end.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::timeline::{Actors, CpuId, LwpId, ThreadId};

/// What a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The LWP on a CPU.
    CpuLwp(CpuId),
    /// The user thread that a CPU executes.
    CpuThread(CpuId),
    /// The user thread that is mounted on an LWP.
    LwpThread(LwpId),
    /// The state of an LWP.
    Lwp(LwpId),
    /// The state of a user thread.
    Thread(ThreadId),
}

/// All current values.
pub(super) struct CurrentValues {
    cpus: u32,
    lwps: u32,
    /// By the index of the slot.
    values: Vec<Option<CurrentValue>>,
    /// Ends, including those of values that were replaced.
    ends: BinaryHeap<Reverse<(i64, u32)>>,
}

#[derive(Clone, Copy)]
struct CurrentValue {
    value: u32,
    to: i64,
}

impl CurrentValues {
    pub(super) fn new(actors: &Actors) -> CurrentValues {
        let (cpus, lwps) = (actors.cpus.len() as u32, actors.lwps.len() as u32);
        let slots = 2 * actors.cpus.len() + 2 * actors.lwps.len() + actors.threads.len();
        CurrentValues { cpus, lwps, values: vec![None; slots], ends: BinaryHeap::new() }
    }

    /// Sets the value of a slot until `to`. Returns the previous value.
    pub(super) fn set(&mut self, slot: Slot, value: u32, to: i64) -> Option<u32> {
        let index = self.index(slot);
        self.ends.push(Reverse((to, index)));
        self.values[index as usize].replace(CurrentValue { value, to }).map(|replaced| replaced.value)
    }

    /// Removes the value of a slot. Returns whether it had one.
    pub(super) fn clear(&mut self, slot: Slot) -> bool {
        let index = self.index(slot);
        self.values[index as usize].take().is_some()
    }

    /// Removes the next value that ended before this tick. Returns its end and its slot.
    pub(super) fn ended_before(&mut self, tick: i64) -> Option<(i64, Slot)> {
        while let Some(Reverse((to, index))) = self.ends.peek().copied() {
            if to >= tick {
                return None;
            }
            self.ends.pop();
            let current = &mut self.values[index as usize];
            if current.is_some_and(|current| current.to == to) {
                *current = None;
                return Some((to, self.slot(index)));
            }
        }
        None
    }

    fn index(&self, slot: Slot) -> u32 {
        let (cpus, lwps) = (self.cpus, self.lwps);
        match slot {
            Slot::CpuLwp(CpuId(cpu)) => cpu,
            Slot::CpuThread(CpuId(cpu)) => cpus + cpu,
            Slot::LwpThread(LwpId(lwp)) => 2 * cpus + lwp,
            Slot::Lwp(LwpId(lwp)) => 2 * cpus + lwps + lwp,
            Slot::Thread(ThreadId(thread)) => 2 * cpus + 2 * lwps + thread,
        }
    }

    fn slot(&self, index: u32) -> Slot {
        let (cpus, lwps) = (self.cpus, self.lwps);
        match index {
            _ if index < cpus => Slot::CpuLwp(CpuId(index)),
            _ if index < 2 * cpus => Slot::CpuThread(CpuId(index - cpus)),
            _ if index < 2 * cpus + lwps => Slot::LwpThread(LwpId(index - 2 * cpus)),
            _ if index < 2 * (cpus + lwps) => Slot::Lwp(LwpId(index - 2 * cpus - lwps)),
            _ => Slot::Thread(ThreadId(index - 2 * (cpus + lwps))),
        }
    }
}
