//! Creations and ends of user threads, and who waits for an end. The first two are told by the cast, and come in between
//! the changes.
//!
//! ```text
//! main     ──ThreadCreate──────── blocked (join) ─ ready ─┬─ active     ThreadWait: it goes on, and the other has ended
//! left/9        ThreadBegin ───── active ──── ThreadEnd ──┘             in whichever order these two are told
//! ```
//!
//! A thread that ends first makes ready who waits for that, and is gone then: so the other may be seen to go on before.

use std::{cmp::Ordering, collections::HashMap, io};

use foldhash::fast::RandomState;
use sigmund_model::{Thread, ThreadState, Ticks};

use super::actors::{Actors, Lane};
use crate::{
    otf2::{Archive, CommId, Event, GroupType, Paradigm, ParadigmClass, StringId, ThreadNumber},
    timeline::{Cast, Doing, ProcessId, ThreadId, Track},
};

/// Those that are to be told, in the order of time.
#[derive(Debug)]
pub(super) struct Births {
    all: Vec<Birth>,
    next: usize,
    /// Of threads that are blocked until another ends: which.
    waits_for: HashMap<ThreadId, ThreadId, RandomState>,
    /// Of threads whose end another waits for: who, and what has happened of the two.
    waits: HashMap<ThreadId, Wait, RandomState>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    by: ThreadId,
    goes_on: bool,
    /// The end was told, in this contingent.
    ended: Option<CommId>,
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
        Ok(Births { all, next: 0, waits_for: HashMap::default(), waits: HashMap::default() })
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
            let birth = *birth;
            self.tell(birth, archive, actors)?;
            self.next += 1;
        }
        Ok(())
    }

    /// A user thread does something else from now on; `joins` is the number of the thread whose end it waits for.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "three of them are what every event needs")]
    pub(super) fn does(
        &mut self,
        thread: ThreadId,
        doing: Option<Doing>,
        joins: Option<i64>,
        tick: Ticks,
        archive: &mut Archive,
        actors: &Actors,
        cast: &Cast,
    ) -> io::Result<()> {
        match (doing.map(Doing::state), joins) {
            (Some(ThreadState::Blocked), Some(number)) => {
                if let Some(other) = with_number(cast, Thread(number as u64), tick) {
                    self.waits_for.insert(thread, other);
                    self.waits.insert(other, Wait { by: thread, goes_on: false, ended: None });
                }
                Ok(())
            }
            // On its way.
            (Some(ThreadState::Ready), _) => Ok(()),
            (Some(ThreadState::Unknown | ThreadState::Unmounted) | None, _) => {
                if let Some(other) = self.waits_for.remove(&thread) {
                    self.waits.remove(&other);
                }
                Ok(())
            }
            _ => match self.waits_for.remove(&thread) {
                Some(other) => self.goes_on(other, tick, archive, actors),
                None => Ok(()),
            },
        }
    }

    /// Whoever has waited for the end of this thread goes on.
    #[cold]
    fn goes_on(
        &mut self,
        other: ThreadId,
        tick: Ticks,
        archive: &mut Archive,
        actors: &Actors,
    ) -> io::Result<()> {
        let Some(wait) = self.waits.get_mut(&other) else { return Ok(()) };
        wait.goes_on = true;
        let (by, Some(contingent)) = (wait.by, wait.ended) else { return Ok(()) };
        self.waits.remove(&other);
        tell(archive, actors, by, tick, Event::ThreadWait(contingent, number_of(other)))
    }

    fn tell(&mut self, birth: Birth, archive: &mut Archive, actors: &Actors) -> io::Result<()> {
        let Birth { tick, thread, contingent, what } = birth;
        let number = number_of(thread);
        match what {
            What::CreatedBy(by) => {
                tell(archive, actors, by, tick, Event::ThreadCreate(contingent, number))?;
                tell(archive, actors, thread, tick, Event::ThreadBegin(contingent, number))
            }
            What::End => {
                let waits = self.waits.get_mut(&thread);
                let awaited = waits.is_some().then_some(number);
                tell(archive, actors, thread, tick, Event::ThreadEnd(contingent, awaited))?;
                let Some(wait) = waits else { return Ok(()) };
                wait.ended = Some(contingent);
                let (by, true) = (wait.by, wait.goes_on) else { return Ok(()) };
                self.waits.remove(&thread);
                tell(archive, actors, by, tick, Event::ThreadWait(contingent, number))
            }
        }
    }

    /// Tells what is left.
    pub(super) fn tell_all(&mut self, archive: &mut Archive, actors: &Actors) -> io::Result<()> {
        for at in std::mem::replace(&mut self.next, self.all.len())..self.all.len() {
            self.tell(self.all[at], archive, actors)?;
        }
        Ok(())
    }
}

fn number_of(thread: ThreadId) -> ThreadNumber {
    ThreadNumber(thread.0.into())
}

/// Something happens to a user thread.
fn tell(
    archive: &mut Archive,
    actors: &Actors,
    thread: ThreadId,
    tick: Ticks,
    event: Event<'_>,
) -> io::Result<()> {
    match actors.own(Track::Thread(thread)) {
        Some(location) => archive.write(location, tick.0, event, &[]),
        None => Ok(()),
    }
}

/// The thread that has this number at an instant: the last that was born before.
fn with_number(cast: &Cast, number: Thread, at: Ticks) -> Option<ThreadId> {
    let behind = cast.threads.partition_point(|thread| (thread.thread, thread.born) <= (number, at));
    let last = behind.checked_sub(1)?;
    (cast.threads[last].thread == number).then_some(ThreadId(last as u32))
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
