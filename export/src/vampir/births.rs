//! Creations and ends of user threads. They are told by the cast, and come in between the changes.

use std::{cmp::Ordering, io};

use sigmund_model::Ticks;

use super::actors::{Actors, Lane};
use crate::{
    otf2::{Archive, CommId, Event, GroupType, Paradigm, ParadigmClass, StringId, ThreadNumber},
    timeline::{Cast, ProcessId, ThreadId, Track},
};

/// Those that are to be told, in the order of time.
#[derive(Debug)]
pub(super) struct Births {
    all: Vec<Birth>,
    next: usize,
}

#[derive(Clone, Copy, Debug)]
struct Birth {
    tick: Ticks,
    thread: ThreadId,
    contingent: CommId,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Before all that the thread does.
    CreatedBy(ThreadId),
    /// After all that it does.
    End,
}

impl Births {
    /// Creations whose creators are known. The threads of a process that has some become a contingent.
    pub(super) fn new(archive: &mut Archive, cast: &Cast, actors: &Actors) -> io::Result<Births> {
        let created = |id: ThreadId| {
            let thread = &cast[id];
            let by = thread.created_by.filter(|by| cast[*by].process == thread.process)?;
            (cast.clock.first <= thread.born && thread.born <= cast.clock.last).then_some((id, by))
        };
        let created: Vec<(ThreadId, ThreadId)> = cast.thread_ids().filter_map(created).collect();
        let contingents =
            contingents(archive, cast, actors, created.iter().map(|(id, _)| cast[*id].process))?;
        let mut all = Vec::new();
        for (thread, by) in created {
            let Some(contingent) = contingents[cast[thread].process.index()] else { continue };
            let actor = &cast[thread];
            all.push(Birth { tick: actor.born, thread, contingent, what: What::CreatedBy(by) });
            if let Some(tick) = actor.died.filter(|died| actor.born <= *died && *died <= cast.clock.last) {
                all.push(Birth { tick, thread, contingent, what: What::End });
            }
        }
        // Stable: those of one tick stay in the order of the cast, which is that of births.
        all.sort_by_key(|birth| (birth.tick, birth.what == What::End));
        Ok(Births { all, next: 0 })
    }

    /// Tells creations up to this tick, and ends before it.
    #[inline]
    pub(super) fn tell_until(
        &mut self,
        tick: Ticks,
        archive: &mut Archive,
        actors: &Actors,
    ) -> io::Result<()> {
        while let Some(birth) = self.all.get(self.next) {
            let due = match birth.tick.cmp(&tick) {
                Ordering::Less => true,
                Ordering::Equal => birth.what != What::End,
                Ordering::Greater => false,
            };
            if !due {
                break;
            }
            birth.tell(archive, actors)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Tells what is left.
    pub(super) fn tell_all(&mut self, archive: &mut Archive, actors: &Actors) -> io::Result<()> {
        let left = &self.all[self.next..];
        self.next = self.all.len();
        left.iter().try_for_each(|birth| birth.tell(archive, actors))
    }
}

impl Birth {
    fn tell(&self, archive: &mut Archive, actors: &Actors) -> io::Result<()> {
        let number = ThreadNumber(self.thread.0.into());
        let mut tell = |thread, event| match actors.own(Track::Thread(thread)) {
            Some(location) => archive.write(location, self.tick.0, event, &[]),
            None => Ok(()),
        };
        match self.what {
            What::CreatedBy(by) => {
                tell(by, Event::ThreadCreate(self.contingent, number))?;
                tell(self.thread, Event::ThreadBegin(self.contingent, number))
            }
            // Nobody is known to wait for it.
            What::End => tell(self.thread, Event::ThreadEnd(self.contingent, None)),
        }
    }
}

/// The contingent of each of these processes: its user threads, by their places among those of all processes.
fn contingents(
    archive: &mut Archive,
    cast: &Cast,
    actors: &Actors,
    processes: impl Iterator<Item = ProcessId>,
) -> io::Result<Vec<Option<CommId>>> {
    let mut members: Vec<Option<Vec<u64>>> = vec![None; cast.processes.len()];
    for process in processes {
        members[process.index()].get_or_insert_default();
    }
    if members.iter().all(Option::is_none) {
        return Ok(vec![None; members.len()]);
    }
    for (place, thread) in cast.threads.iter().enumerate() {
        if let Some(members) = &mut members[thread.process.index()] {
            members.push(place as u64);
        }
    }
    let definitions = archive.definitions();
    let name = definitions.string("user threads")?;
    let (paradigm, class) = (Paradigm::Pthread, ParadigmClass::ThreadCreateWait);
    definitions.paradigm(paradigm, name, class)?;
    let all: Vec<u64> =
        cast.thread_ids().map(|id| actors.location_id(Track::Thread(id), Lane::Own).0).collect();
    definitions.group(StringId::EMPTY, GroupType::CommLocations, paradigm, &all)?;
    let mut contingent = |members: Vec<u64>| {
        let group = definitions.group(name, GroupType::CommGroup, paradigm, &members)?;
        definitions.comm(name, group)
    };
    members.into_iter().map(|members| members.map(&mut contingent).transpose()).collect()
}
