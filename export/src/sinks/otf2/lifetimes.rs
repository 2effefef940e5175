//! Creations and ends of user threads, waits for an end, and teams. All except the waits are known from the actors
//! before the first change. They are written at their times, between the changes.
//!
//! ```text
//! main     ──ThreadCreate──────── blocked (join) ─ ready ─┬─ active     ThreadWait: it continues, and the other has ended,
//! left/9        ThreadBegin ───── active ──── ThreadEnd ──┘             in either order
//!
//! main     ──ThreadFork TeamBegin ───────── blocked (scope) ─ ready ─── TeamEnd ThreadJoin
//! part 1          ThreadBegin TeamBegin ─── active ──── TeamEnd ThreadEnd
//! ```
//!
//! A thread first makes the thread that waits for its end ready, and then ends. So the waiting thread may continue
//! before that end. A member leaves its team at the join at the latest, even if the member ends later.

use std::{cmp::Ordering, collections::HashMap, io};

use foldhash::fast::RandomState;
use otf2_writer::{Archive, CommId, Event, ThreadNumber};
use sigmund_model::{Thread, ThreadState, Ticks};

use super::{
    comms::{TEAMS, process_comms, team_comms},
    locations::Locations,
};
use crate::timeline::{Actors, DetailedState, ThreadId, Track};

/// The lifetime events of all threads, in the order of time.
#[derive(Debug)]
pub(super) struct ThreadLifetimes {
    all: Vec<LifetimeEvent>,
    next: usize,
    /// For each thread that is blocked until another ends: the other thread.
    waits_for: HashMap<ThreadId, ThreadId, RandomState>,
    /// For each thread for whose end another thread waits: the state of this wait.
    waits: HashMap<ThreadId, Wait, RandomState>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    by: ThreadId,
    continues: bool,
    /// The communicator of the ThreadEnd, after that is written.
    ended: Option<CommId>,
}

#[derive(Clone, Copy, Debug)]
struct LifetimeEvent {
    tick: Ticks,
    thread: ThreadId,
    /// The communicator of the process or the team.
    comm: CommId,
    what: LifetimeChange,
}

#[derive(Clone, Copy, Debug)]
enum LifetimeChange {
    /// Created by this thread; precedes all other events of the thread.
    CreatedBy(ThreadId),
    /// Begins its work in the team.
    TeamBegin,
    /// Forks the team, which has this many threads.
    Fork(u32),
    /// Joins the team.
    Join,
    /// Ends its work in the team; follows all its events in the team.
    TeamEnd,
    /// Ends; follows all its other events.
    End,
}

impl LifetimeChange {
    /// The order within one tick.
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

    /// Whether it is written after the changes of its tick.
    fn is_end(self) -> bool {
        matches!(self, LifetimeChange::TeamEnd | LifetimeChange::End)
    }
}

impl ThreadLifetimes {
    /// Collects creations, ends and teams.
    pub(super) fn new(
        archive: &mut Archive,
        actors: &Actors,
        locations: &Locations,
    ) -> io::Result<ThreadLifetimes> {
        let mut all = creations(archive, actors, locations)?;
        all.extend(teams(archive, actors, locations)?);
        // Stable: creations of one tick stay in the order of the actors.
        all.sort_by_key(|event| (event.tick, event.what.rank()));
        Ok(ThreadLifetimes { all, next: 0, waits_for: HashMap::default(), waits: HashMap::default() })
    }

    /// Writes the begins up to and including this tick, and the ends before it.
    #[inline]
    pub(super) fn write_until(
        &mut self,
        tick: Ticks,
        archive: &mut Archive,
        locations: &Locations,
    ) -> io::Result<()> {
        while let Some(event) = self.all.get(self.next) {
            let due = match event.tick.cmp(&tick) {
                Ordering::Less => true,
                Ordering::Equal => !event.what.is_end(),
                Ordering::Greater => false,
            };
            if !due {
                break;
            }
            let event = *event;
            self.write_event(event, archive, locations)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Handles a state change of a user thread. `joins` is the number of the thread whose end it waits for.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "three of them are what every event needs")]
    pub(super) fn changes_state(
        &mut self,
        thread: ThreadId,
        detailed: Option<DetailedState>,
        joins: Option<i64>,
        tick: Ticks,
        archive: &mut Archive,
        locations: &Locations,
        actors: &Actors,
    ) -> io::Result<()> {
        match (detailed.map(DetailedState::state), joins) {
            (Some(ThreadState::Blocked), Some(number)) => {
                if let Some(other) = with_number(actors, Thread(number as u64), tick) {
                    self.waits_for.insert(thread, other);
                    self.waits.insert(other, Wait { by: thread, continues: false, ended: None });
                }
                Ok(())
            }
            // It is ready; it continues when it is dispatched.
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

    /// Handles the continuation of the thread that waited for the end of this one.
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
        let (by, Some(comm)) = (wait.by, wait.ended) else { return Ok(()) };
        self.waits.remove(&other);
        write_thread_event(archive, locations, by, tick, Event::ThreadWait(comm, number_of(other)))
    }

    fn write_event(
        &mut self,
        event: LifetimeEvent,
        archive: &mut Archive,
        locations: &Locations,
    ) -> io::Result<()> {
        let LifetimeEvent { tick, thread, comm, what } = event;
        let number = number_of(thread);
        let mut write = |thread, event| write_thread_event(archive, locations, thread, tick, event);
        match what {
            LifetimeChange::CreatedBy(by) => {
                write(by, Event::ThreadCreate(comm, number))?;
                write(thread, Event::ThreadBegin(comm, number))
            }
            LifetimeChange::Fork(threads) => {
                write(thread, Event::ThreadFork(TEAMS, threads))?;
                write(thread, Event::ThreadTeamBegin(comm))
            }
            LifetimeChange::Join => {
                write(thread, Event::ThreadTeamEnd(comm))?;
                write(thread, Event::ThreadJoin(TEAMS))
            }
            LifetimeChange::TeamBegin => write(thread, Event::ThreadTeamBegin(comm)),
            LifetimeChange::TeamEnd => write(thread, Event::ThreadTeamEnd(comm)),
            LifetimeChange::End => {
                let waits = self.waits.get_mut(&thread);
                let awaited = waits.is_some().then_some(number);
                write(thread, Event::ThreadEnd(comm, awaited))?;
                let Some(wait) = waits else { return Ok(()) };
                wait.ended = Some(comm);
                let (by, true) = (wait.by, wait.continues) else { return Ok(()) };
                self.waits.remove(&thread);
                write(by, Event::ThreadWait(comm, number))
            }
        }
    }

    /// Writes the remaining events.
    pub(super) fn write_rest(&mut self, archive: &mut Archive, locations: &Locations) -> io::Result<()> {
        for at in std::mem::replace(&mut self.next, self.all.len())..self.all.len() {
            self.write_event(self.all[at], archive, locations)?;
        }
        Ok(())
    }
}

/// Creations by known threads, and the ends of the created threads. Defines a communicator for each process with such
/// threads.
fn creations(
    archive: &mut Archive,
    actors: &Actors,
    locations: &Locations,
) -> io::Result<Vec<LifetimeEvent>> {
    let created = |id: ThreadId| {
        let thread = &actors[id];
        let by = actors.creator(id).filter(|by| actors[*by].process == thread.process)?;
        (actors.clock.first <= thread.born && thread.born <= actors.clock.last).then_some((id, by))
    };
    let created: Vec<(ThreadId, ThreadId)> = actors.thread_ids().filter_map(created).collect();
    let process_comms =
        process_comms(archive, actors, locations, created.iter().map(|(id, _)| actors[*id].process))?;
    let mut all = Vec::new();
    for (thread, by) in created {
        let Some(comm) = process_comms[actors[thread].process.index()] else { continue };
        let actor = &actors[thread];
        all.push(LifetimeEvent { tick: actor.born, thread, comm, what: LifetimeChange::CreatedBy(by) });
        if let Some(tick) = actor.died.filter(|died| actor.born <= *died && *died <= actors.clock.last) {
            all.push(LifetimeEvent { tick, thread, comm, what: LifetimeChange::End });
        }
    }
    Ok(all)
}

/// Forks and joins, and the begin and end of each member's work.
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

/// Writes an event of a user thread.
fn write_thread_event(
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

/// The thread that has this number at an instant: the last one created up to the instant.
fn with_number(actors: &Actors, number: Thread, at: Ticks) -> Option<ThreadId> {
    let behind = actors.threads.partition_point(|thread| (thread.thread, thread.born) <= (number, at));
    let last = behind.checked_sub(1)?;
    (actors.threads[last].thread == number).then_some(ThreadId(last as u32))
}
