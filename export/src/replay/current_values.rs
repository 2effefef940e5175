//! The values at the current instant: the occupant of each CPU and LWP, and the state of each track; and their ends.
//!
//! A state ends where the next one on its track begins, or, where none follows, at its own end.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::timeline::{Actors, CpuId, LwpId, ThreadId};

/// A place for a value.
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
    held: Vec<Option<CurrentValue>>,
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
        CurrentValues { cpus, lwps, held: vec![None; slots], ends: BinaryHeap::new() }
    }

    /// Sets the value of a slot until `to`. Returns the previous value.
    pub(super) fn hold(&mut self, slot: Slot, value: u32, to: i64) -> Option<u32> {
        let at = self.at(slot);
        self.ends.push(Reverse((to, at)));
        self.held[at as usize].replace(CurrentValue { value, to }).map(|held| held.value)
    }

    /// Removes the value of a slot; whether there was one.
    pub(super) fn release(&mut self, slot: Slot) -> bool {
        let at = self.at(slot);
        self.held[at as usize].take().is_some()
    }

    /// Removes the next value that ended before this tick; returns the end and the slot.
    pub(super) fn ended_before(&mut self, tick: i64) -> Option<(i64, Slot)> {
        while let Some(Reverse((to, at))) = self.ends.peek().copied() {
            if to >= tick {
                return None;
            }
            self.ends.pop();
            let held = &mut self.held[at as usize];
            if held.is_some_and(|held| held.to == to) {
                *held = None;
                return Some((to, self.slot(at)));
            }
        }
        None
    }

    fn at(&self, slot: Slot) -> u32 {
        let (cpus, lwps) = (self.cpus, self.lwps);
        match slot {
            Slot::CpuLwp(CpuId(cpu)) => cpu,
            Slot::CpuThread(CpuId(cpu)) => cpus + cpu,
            Slot::LwpThread(LwpId(lwp)) => 2 * cpus + lwp,
            Slot::Lwp(LwpId(lwp)) => 2 * cpus + lwps + lwp,
            Slot::Thread(ThreadId(thread)) => 2 * cpus + 2 * lwps + thread,
        }
    }

    fn slot(&self, at: u32) -> Slot {
        let (cpus, lwps) = (self.cpus, self.lwps);
        match at {
            _ if at < cpus => Slot::CpuLwp(CpuId(at)),
            _ if at < 2 * cpus => Slot::CpuThread(CpuId(at - cpus)),
            _ if at < 2 * cpus + lwps => Slot::LwpThread(LwpId(at - 2 * cpus)),
            _ if at < 2 * (cpus + lwps) => Slot::Lwp(LwpId(at - 2 * cpus - lwps)),
            _ => Slot::Thread(ThreadId(at - 2 * (cpus + lwps))),
        }
    }
}
