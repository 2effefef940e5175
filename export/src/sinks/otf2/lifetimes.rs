//! Creations and ends of user threads, who waits for an end, and teams. All but the waits are told by the cast, and come in
//! between the changes.
//!
//! ```text
//! main     ──ThreadCreate──────── blocked (join) ─ ready ─┬─ active     ThreadWait: it goes on, and the other has ended
//! left/9        ThreadBegin ───── active ──── ThreadEnd ──┘             in whichever order these two are told
//!
//! main     ──ThreadFork TeamBegin ───────── blocked (scope) ─ ready ─── TeamEnd ThreadJoin
//! part 1          ThreadBegin TeamBegin ─── active ──── TeamEnd ThreadEnd
//! ```
//!
//! A thread that ends first makes ready who waits for that, and is gone then: so the other may be seen to go on before. Whom
//! a team has joined has left it by then, even if its end comes later.

use std::{cmp::Ordering, collections::HashMap, io};

use foldhash::fast::RandomState;
use otf2_writer::{Archive, CommId, Event, ThreadNumber};
use sigmund_model::{Thread, ThreadState, Ticks};

use super::{
    comms::{TEAMS, contingents, team_comms},
    locations::Locations,
};
use crate::timeline::{Actors, DetailedState, ThreadId, Track};

/// Those that are to be told, in the order of time.
#[derive(Debug)]
pub(super) struct ThreadLifetimes {
    all: Vec<LifetimeEvent>,
    next: usize,
    /// Of threads that are blocked until another ends: which.
    waits_for: HashMap<ThreadId, ThreadId, RandomState>,
    /// Of threads whose end another waits for: who, and what has happened of the two.
    waits: HashMap<ThreadId, Wait, RandomState>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    by: ThreadId,
    continues: bool,
    /// The end was told, in this contingent.
    ended: Option<CommId>,
}

#[derive(Clone, Copy, Debug)]
struct LifetimeEvent {
    tick: Ticks,
    thread: ThreadId,
    /// The contingent or the team.
    comm: CommId,
    what: LifetimeChange,
}

#[derive(Clone, Copy, Debug)]
enum LifetimeChange {
    /// Before all that the thread does.
    CreatedBy(ThreadId),
    /// It works in the team from now on.
    TeamBegin,
    /// It forks the team, of so many threads.
    Fork(u32),
    /// It goes on without the team.
    Join,
    /// After all that it does in the team.
    TeamEnd,
    /// After all that it does.
    End,
}

impl LifetimeChange {
    /// The order of those of one tick.
    fn rank(self) -> u8 {
        match self {
            LifetimeChange::CreatedBy(_) => 0,
            LifetimeChange::TeamBegin => 1,
            LifetimeChange::Fork(_) => 2,
            LifetimeChange::Join => 3,
            LifetimeChange::TeamEnd => 4,
            LifetimeChange::End => 5,
        }
    }

    /// Whether it comes behind what changes at its tick.
    fn is_end(self) -> bool {
        matches!(self, LifetimeChange::TeamEnd | LifetimeChange::End)
    }
}

impl ThreadLifetimes {
    /// What the cast tells.
    pub(super) fn new(
        archive: &mut Archive,
        actors: &Actors,
        locations: &Locations,
    ) -> io::Result<ThreadLifetimes> {
        let mut all = creations(archive, actors, locations)?;
        all.extend(teams(archive, actors, locations)?);
        // Stable: creations of one tick stay in the order of the cast, which is that of births.
        all.sort_by_key(|event_of_life| (event_of_life.tick, event_of_life.what.rank()));
        Ok(ThreadLifetimes { all, next: 0, waits_for: HashMap::default(), waits: HashMap::default() })
    }

    /// Tells what begins up to this tick, and ends before it.
    #[inline]
    pub(super) fn write_until(
        &mut self,
        tick: Ticks,
        archive: &mut Archive,
        locations: &Locations,
    ) -> io::Result<()> {
        while let Some(event_of_life) = self.all.get(self.next) {
            let due = match event_of_life.tick.cmp(&tick) {
                Ordering::Less => true,
                Ordering::Equal => !event_of_life.what.is_end(),
                Ordering::Greater => false,
            };
            if !due {
                break;
            }
            let event_of_life = *event_of_life;
            self.tell(event_of_life, archive, locations)?;
            self.next += 1;
        }
        Ok(())
    }

    /// A user thread does something else from now on; `joins` is the number of the thread whose end it waits for.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "three of them are what every event needs")]
    pub(super) fn changes_state(
        &mut self,
        thread: ThreadId,
        doing: Option<DetailedState>,
        joins: Option<i64>,
        tick: Ticks,
        archive: &mut Archive,
        locations: &Locations,
        actors: &Actors,
    ) -> io::Result<()> {
        match (doing.map(DetailedState::state), joins) {
            (Some(ThreadState::Blocked), Some(number)) => {
                if let Some(other) = with_number(actors, Thread(number as u64), tick) {
                    self.waits_for.insert(thread, other);
                    self.waits.insert(other, Wait { by: thread, continues: false, ended: None });
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
                Some(other) => self.continues(other, tick, archive, locations),
                None => Ok(()),
            },
        }
    }

    /// Whoever has waited for the end of this thread goes on.
    #[cold]
    fn continues(
        &mut self,
        other: ThreadId,
        tick: Ticks,
        archive: &mut Archive,
        locations: &Locations,
    ) -> io::Result<()> {
        let Some(wait) = self.waits.get_mut(&other) else { return Ok(()) };
        wait.continues = true;
        let (by, Some(contingent)) = (wait.by, wait.ended) else { return Ok(()) };
        self.waits.remove(&other);
        tell(archive, locations, by, tick, Event::ThreadWait(contingent, number_of(other)))
    }

    fn tell(
        &mut self,
        event_of_life: LifetimeEvent,
        archive: &mut Archive,
        locations: &Locations,
    ) -> io::Result<()> {
        let LifetimeEvent { tick, thread, comm, what } = event_of_life;
        let number = number_of(thread);
        let mut tell = |thread, event| tell(archive, locations, thread, tick, event);
        match what {
            LifetimeChange::CreatedBy(by) => {
                tell(by, Event::ThreadCreate(comm, number))?;
                tell(thread, Event::ThreadBegin(comm, number))
            }
            LifetimeChange::Fork(threads) => {
                tell(thread, Event::ThreadFork(TEAMS, threads))?;
                tell(thread, Event::ThreadTeamBegin(comm))
            }
            LifetimeChange::Join => {
                tell(thread, Event::ThreadTeamEnd(comm))?;
                tell(thread, Event::ThreadJoin(TEAMS))
            }
            LifetimeChange::TeamBegin => tell(thread, Event::ThreadTeamBegin(comm)),
            LifetimeChange::TeamEnd => tell(thread, Event::ThreadTeamEnd(comm)),
            LifetimeChange::End => {
                let waits = self.waits.get_mut(&thread);
                let awaited = waits.is_some().then_some(number);
                tell(thread, Event::ThreadEnd(comm, awaited))?;
                let Some(wait) = waits else { return Ok(()) };
                wait.ended = Some(comm);
                let (by, true) = (wait.by, wait.continues) else { return Ok(()) };
                self.waits.remove(&thread);
                tell(by, Event::ThreadWait(comm, number))
            }
        }
    }

    /// Tells what is left.
    pub(super) fn write_rest(&mut self, archive: &mut Archive, locations: &Locations) -> io::Result<()> {
        for at in std::mem::replace(&mut self.next, self.all.len())..self.all.len() {
            self.tell(self.all[at], archive, locations)?;
        }
        Ok(())
    }
}

/// Creations whose creators are known, and the ends of these threads. The threads of a process that has some become a
/// contingent.
fn creations(
    archive: &mut Archive,
    actors: &Actors,
    locations: &Locations,
) -> io::Result<Vec<LifetimeEvent>> {
    let created = |id: ThreadId| {
        let thread = &actors[id];
        let by = thread.created_by.filter(|by| actors[*by].process == thread.process)?;
        (actors.clock.first <= thread.born && thread.born <= actors.clock.last).then_some((id, by))
    };
    let created: Vec<(ThreadId, ThreadId)> = actors.thread_ids().filter_map(created).collect();
    let contingents =
        contingents(archive, actors, locations, created.iter().map(|(id, _)| actors[*id].process))?;
    let mut all = Vec::new();
    for (thread, by) in created {
        let Some(comm) = contingents[actors[thread].process.index()] else { continue };
        let actor = &actors[thread];
        all.push(LifetimeEvent { tick: actor.born, thread, comm, what: LifetimeChange::CreatedBy(by) });
        if let Some(tick) = actor.died.filter(|died| actor.born <= *died && *died <= actors.clock.last) {
            all.push(LifetimeEvent { tick, thread, comm, what: LifetimeChange::End });
        }
    }
    Ok(all)
}

/// Forks and joins, and when members are at work in between.
fn teams(archive: &mut Archive, actors: &Actors, locations: &Locations) -> io::Result<Vec<LifetimeEvent>> {
    let mut all = Vec::new();
    for (team, comm) in actors.teams.iter().zip(team_comms(archive, actors, locations)?) {
        let size = team.members.len() as u32 + 1;
        let mut add = |tick, thread, what| all.push(LifetimeEvent { tick, thread, comm, what });
        add(team.forked, team.by, LifetimeChange::Fork(size));
        add(team.joined, team.by, LifetimeChange::Join);
        for &member in &team.members {
            let actor = &actors[member];
            let begin = actor.born.clamp(team.forked, team.joined);
            let end = actor.died.map_or(team.joined, |died| died.clamp(begin, team.joined));
            add(begin, member, LifetimeChange::TeamBegin);
            add(end, member, LifetimeChange::TeamEnd);
        }
    }
    Ok(all)
}

fn number_of(thread: ThreadId) -> ThreadNumber {
    ThreadNumber(thread.0.into())
}

/// Something happens to a user thread.
fn tell(
    archive: &mut Archive,
    locations: &Locations,
    thread: ThreadId,
    tick: Ticks,
    event: Event<'_>,
) -> io::Result<()> {
    match locations.own(Track::Thread(thread)) {
        Some(location) => archive.write(location, tick.0, event, &[]),
        None => Ok(()),
    }
}

/// The thread that has this number at an instant: the last that was born before.
fn with_number(actors: &Actors, number: Thread, at: Ticks) -> Option<ThreadId> {
    let behind = actors.threads.partition_point(|thread| (thread.thread, thread.born) <= (number, at));
    let last = behind.checked_sub(1)?;
    (actors.threads[last].thread == number).then_some(ThreadId(last as u32))
}
