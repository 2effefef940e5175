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

/// All current values: twelve bytes for each track, since there may be millions.
pub(super) struct CurrentValues {
    cpus: u32,
    lwps: u32,
    /// The end of each value, by the index of the slot, or [`NONE`].
    to: Vec<i64>,
    /// The occupants, by the index of the slot; states have none.
    occupants: Vec<u32>,
    /// Ends, including those of values that were replaced.
    ends: BinaryHeap<Reverse<(i64, u32)>>,
}

/// The end of no value: ticks are not negative.
const NONE: i64 = i64::MIN;

impl CurrentValues {
    pub(super) fn new(actors: &Actors) -> CurrentValues {
        let (cpus, lwps) = (actors.cpus.len() as u32, actors.lwps.len() as u32);
        let with_occupants = 2 * actors.cpus.len() + actors.lwps.len();
        let slots = with_occupants + actors.lwps.len() + actors.threads.len();
        let (to, occupants) = (vec![NONE; slots], vec![0; with_occupants]);
        CurrentValues { cpus, lwps, to, occupants, ends: BinaryHeap::new() }
    }

    /// Begins a state that lasts until `to`.
    pub(super) fn set_state(&mut self, slot: Slot, to: i64) {
        let index = self.index(slot);
        self.begin(index, to);
    }

    /// Sets the occupant of a CPU or an LWP until `to`. Returns whether it is another one than before.
    pub(super) fn set_occupant(&mut self, slot: Slot, occupant: u32, to: i64) -> bool {
        let index = self.index(slot);
        let had_one = self.begin(index, to);
        std::mem::replace(&mut self.occupants[index as usize], occupant) != occupant || !had_one
    }

    /// Returns whether there was a value before.
    fn begin(&mut self, index: u32, to: i64) -> bool {
        self.ends.push(Reverse((to, index)));
        std::mem::replace(&mut self.to[index as usize], to) != NONE
    }

    /// Removes the value of a slot. Returns whether it had one.
    pub(super) fn clear(&mut self, slot: Slot) -> bool {
        let index = self.index(slot);
        std::mem::replace(&mut self.to[index as usize], NONE) != NONE
    }

    /// No value ends before this tick.
    #[inline]
    pub(super) fn next_end(&self) -> Option<i64> {
        self.ends.peek().map(|Reverse((to, _))| *to)
    }

    /// Removes the next value that ended before this tick. Returns its end and its slot.
    pub(super) fn ended_before(&mut self, tick: i64) -> Option<(i64, Slot)> {
        while let Some(Reverse((to, index))) = self.ends.peek().copied() {
            if to >= tick {
                return None;
            }
            self.ends.pop();
            let current = &mut self.to[index as usize];
            if *current == to {
                *current = NONE;
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
