//! Finds the actor that has a number at an instant. Numbers are reused: it is the last actor created up to the instant.

use std::collections::HashMap;

use sigmund_model::{Cpu, Lwp, Thread, Ticks};

use crate::timeline::{Actors, CpuId, LwpId, ThreadId};

/// The actors by number.
pub(super) struct ActorIds {
    cpus: IdsByBirth,
    lwps: IdsByBirth,
    threads: IdsByBirth,
}

/// The actors that had each number, sorted by birth.
type IdsByBirth = HashMap<u64, Vec<(Ticks, u32)>, foldhash::fast::FixedState>;

impl ActorIds {
    pub(super) fn of(actors: &Actors) -> ActorIds {
        let lwps = actors.lwps.iter().map(|lwp| (lwp.lwp.0.into(), lwp.born));
        ActorIds {
            cpus: ids_by_birth(actors.cpus.iter().map(|cpu| (cpu.0.into(), Ticks(0)))),
            lwps: ids_by_birth(lwps),
            threads: ids_by_birth(actors.threads.iter().map(|thread| (thread.thread.0, thread.born))),
        }
    }

    pub(super) fn cpu(&self, cpu: Cpu) -> Option<CpuId> {
        id_at(&self.cpus, cpu.0.into(), Ticks(0)).map(CpuId)
    }

    pub(super) fn lwp(&self, lwp: Lwp, at: Ticks) -> Option<LwpId> {
        id_at(&self.lwps, lwp.0.into(), at).map(LwpId)
    }

    pub(super) fn thread(&self, thread: Thread, at: Ticks) -> Option<ThreadId> {
        id_at(&self.threads, thread.0, at).map(ThreadId)
    }
}

fn ids_by_birth(numbers: impl Iterator<Item = (u64, Ticks)>) -> IdsByBirth {
    let mut ids_by_birth = IdsByBirth::default();
    for (id, (number, born)) in numbers.enumerate() {
        ids_by_birth.entry(number).or_default().push((born, id as u32));
    }
    for ids_by_birth in ids_by_birth.values_mut() {
        ids_by_birth.sort_unstable();
    }
    ids_by_birth
}

/// The last actor created up to the instant; if there is none, the first of this number.
fn id_at(ids_by_birth: &IdsByBirth, number: u64, at: Ticks) -> Option<u32> {
    let ids_by_birth = ids_by_birth.get(&number)?;
    let born_after = ids_by_birth.partition_point(|(born, _)| *born <= at);
    let (_, id) = ids_by_birth.get(born_after.saturating_sub(1))?;
    Some(*id)
}
