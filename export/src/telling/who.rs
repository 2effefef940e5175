//! Who has a number at an instant. The system reuses its numbers: the last who was born before has it.

use std::collections::HashMap;

use sigmund_model::{Cpu, Lwp, Thread, Ticks};

use crate::timeline::{Cast, CpuId, LwpId, ThreadId};

/// The cast, by numbers.
pub(super) struct Who {
    cpus: Holders,
    lwps: Holders,
    threads: Holders,
}

/// Those who had each number, by their births.
type Holders = HashMap<u64, Vec<(Ticks, u32)>, foldhash::fast::FixedState>;

impl Who {
    pub(super) fn of(cast: &Cast) -> Who {
        let lwps = cast.lwps.iter().map(|lwp| (lwp.lwp.0.into(), lwp.born));
        Who {
            cpus: holders(cast.cpus.iter().map(|cpu| (cpu.0.into(), Ticks(0)))),
            lwps: holders(lwps),
            threads: holders(cast.threads.iter().map(|thread| (thread.thread.0, thread.born))),
        }
    }

    pub(super) fn cpu(&self, cpu: Cpu) -> Option<CpuId> {
        holder(&self.cpus, cpu.0.into(), Ticks(0)).map(CpuId)
    }

    pub(super) fn lwp(&self, lwp: Lwp, at: Ticks) -> Option<LwpId> {
        holder(&self.lwps, lwp.0.into(), at).map(LwpId)
    }

    pub(super) fn thread(&self, thread: Thread, at: Ticks) -> Option<ThreadId> {
        holder(&self.threads, thread.0, at).map(ThreadId)
    }
}

fn holders(numbers: impl Iterator<Item = (u64, Ticks)>) -> Holders {
    let mut holders = Holders::default();
    for (id, (number, born)) in numbers.enumerate() {
        holders.entry(number).or_default().push((born, id as u32));
    }
    for holders in holders.values_mut() {
        holders.sort_unstable();
    }
    holders
}

/// The last who was born before, or the first of all if the instant is before their births.
fn holder(holders: &Holders, number: u64, at: Ticks) -> Option<u32> {
    let holders = holders.get(&number)?;
    let born_after = holders.partition_point(|(born, _)| *born <= at);
    let (_, id) = holders.get(born_after.saturating_sub(1))?;
    Some(*id)
}
