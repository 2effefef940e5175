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
use sigmund_model::{Thread, ThreadState, Ticks};

use super::{
    actors::Actors,
    comms::{TEAMS, contingents, team_comms},
};
use crate::{
    otf2::{Archive, CommId, Event, ThreadNumber},
    timeline::{Cast, Doing, ThreadId, Track},
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
    /// The contingent or the team.
    comm: CommId,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
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

impl What {
    /// The order of those of one tick.
    fn rank(self) -> u8 {
        match self {
            What::CreatedBy(_) => 0,
            What::TeamBegin => 1,
            What::Fork(_) => 2,
            What::Join => 3,
            What::TeamEnd => 4,
            What::End => 5,
        }
    }

    /// Whether it comes behind what changes at its tick.
    fn is_end(self) -> bool {
        matches!(self, What::TeamEnd | What::End)
    }
}

impl Births {
    /// What the cast tells.
    pub(super) fn new(archive: &mut Archive, cast: &Cast, actors: &Actors) -> io::Result<Births> {
        let mut all = creations(archive, cast, actors)?;
        all.extend(teams(archive, cast, actors)?);
        // Stable: creations of one tick stay in the order of the cast, which is that of births.
        all.sort_by_key(|birth| (birth.tick, birth.what.rank()));
        Ok(Births { all, next: 0, waits_for: HashMap::default(), waits: HashMap::default() })
    }

    /// Tells what begins up to this tick, and ends before it.
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
                Ordering::Equal => !birth.what.is_end(),
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
        let Birth { tick, thread, comm, what } = birth;
        let number = number_of(thread);
        let mut tell = |thread, event| tell(archive, actors, thread, tick, event);
        match what {
            What::CreatedBy(by) => {
                tell(by, Event::ThreadCreate(comm, number))?;
                tell(thread, Event::ThreadBegin(comm, number))
            }
            What::Fork(threads) => {
                tell(thread, Event::ThreadFork(TEAMS, threads))?;
                tell(thread, Event::ThreadTeamBegin(comm))
            }
            What::Join => {
                tell(thread, Event::ThreadTeamEnd(comm))?;
                tell(thread, Event::ThreadJoin(TEAMS))
            }
            What::TeamBegin => tell(thread, Event::ThreadTeamBegin(comm)),
            What::TeamEnd => tell(thread, Event::ThreadTeamEnd(comm)),
            What::End => {
                let waits = self.waits.get_mut(&thread);
                let awaited = waits.is_some().then_some(number);
                tell(thread, Event::ThreadEnd(comm, awaited))?;
                let Some(wait) = waits else { return Ok(()) };
                wait.ended = Some(comm);
                let (by, true) = (wait.by, wait.goes_on) else { return Ok(()) };
                self.waits.remove(&thread);
                tell(by, Event::ThreadWait(comm, number))
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

/// Creations whose creators are known, and the ends of these threads. The threads of a process that has some become a
/// contingent.
fn creations(archive: &mut Archive, cast: &Cast, actors: &Actors) -> io::Result<Vec<Birth>> {
    let created = |id: ThreadId| {
        let thread = &cast[id];
        let by = thread.created_by.filter(|by| cast[*by].process == thread.process)?;
        (cast.clock.first <= thread.born && thread.born <= cast.clock.last).then_some((id, by))
    };
    let created: Vec<(ThreadId, ThreadId)> = cast.thread_ids().filter_map(created).collect();
    let contingents = contingents(archive, cast, actors, created.iter().map(|(id, _)| cast[*id].process))?;
    let mut all = Vec::new();
    for (thread, by) in created {
        let Some(comm) = contingents[cast[thread].process.index()] else { continue };
        let actor = &cast[thread];
        all.push(Birth { tick: actor.born, thread, comm, what: What::CreatedBy(by) });
        if let Some(tick) = actor.died.filter(|died| actor.born <= *died && *died <= cast.clock.last) {
            all.push(Birth { tick, thread, comm, what: What::End });
        }
    }
    Ok(all)
}

/// Forks and joins, and when members are at work in between.
fn teams(archive: &mut Archive, cast: &Cast, actors: &Actors) -> io::Result<Vec<Birth>> {
    let mut all = Vec::new();
    for (team, comm) in cast.teams.iter().zip(team_comms(archive, cast, actors)?) {
        let size = team.members.len() as u32 + 1;
        let mut add = |tick, thread, what| all.push(Birth { tick, thread, comm, what });
        add(team.forked, team.by, What::Fork(size));
        add(team.joined, team.by, What::Join);
        for &member in &team.members {
            let actor = &cast[member];
            let begin = actor.born.clamp(team.forked, team.joined);
            let end = actor.died.map_or(team.joined, |died| died.clamp(begin, team.joined));
            add(begin, member, What::TeamBegin);
            add(end, member, What::TeamEnd);
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
