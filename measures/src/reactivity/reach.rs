//! Finds the TO events that a thread or LWP leads to through wakeups and unparks, backward in time.
//!
//! An event or a wakeup makes a thread or LWP a **member** from its tick on. A member stops being one when its next
//! wait begins. It reaches each TO event that it makes until then, and those at that tick. It also reaches what the
//! threads reach that it wakes. Backward in time, this needs little memory: for each thread and LWP, only what it would
//! reach if it were a member now, and of that only the earliest events.

use super::membership::{At, leaves_between, leaves_in};
use crate::{Actor, History, Interval, Searches, Wakeup, map::Map};

/// TO events as numbers: twice the place, counted from the end of the trace, plus 1 for the target of the event. The
/// earliest event comes first.
pub(super) type Reached = Vec<u32>;

/// For each thread and LWP, what it reaches if it is a member at the tick of the search.
#[derive(Default)]
pub(super) struct Reach {
    futures: Map<Actor, Future>,
}

/// What a member reaches from a tick on. It has no event between the tick of the search and that tick.
struct Future {
    tick: i64,
    reached: Reached,
}

/// What is reached from one tick.
pub(super) struct Step {
    actors: Vec<(Actor, At, Reached)>,
}

impl Step {
    /// What an actor reaches if it is woken at the tick.
    pub(super) fn entering(&self, actor: Actor) -> &[u32] {
        self.find(actor).map_or(&[], |(_, _, reached)| reached)
    }

    /// Whether an actor that is woken at the tick, or makes an event then, is a member afterwards.
    pub(super) fn enters(&self, actor: Actor) -> bool {
        self.find(actor).is_some_and(|(_, at, _)| at.enters)
    }

    fn find(&self, actor: Actor) -> Option<&(Actor, At, Reached)> {
        self.actors.iter().find(|(other, _, _)| *other == actor)
    }
}

/// The actor of an event: the mounted user thread; without one, the LWP.
pub(super) fn actor(thread: Option<u64>, lwp: Option<u32>) -> Option<Actor> {
    thread.map(Actor::Thread).or(lwp.filter(|lwp| *lwp != 0).map(Actor::Lwp))
}

/// The actors that a wakeup makes members: the user thread, or the LWP and the user thread that it carries.
pub(super) fn woken(searches: &mut Searches<'_>, wakeup: &Wakeup) -> [Option<Actor>; 2] {
    if wakeup.is_unpark {
        return [wakeup.thread.map(Actor::Thread), None];
    }
    let Some(lwp) = wakeup.lwp else { return [None, None] };
    let mut mounted = || searches.mounted.of(lwp.into()).at(wakeup.tick).map(|(_, thread)| *thread);
    let carried = wakeup.thread.or_else(&mut mounted);
    [Some(Actor::Lwp(lwp)), carried.map(Actor::Thread)]
}

impl Reach {
    /// Whether no actor reaches anything.
    pub(super) fn is_empty(&self) -> bool {
        self.futures.is_empty()
    }

    /// Whether an actor reaches something at a later tick, if it is a member until then.
    pub(super) fn has(&self, actor: Actor) -> bool {
        self.futures.contains_key(&actor)
    }

    /// Goes back to an earlier tick. `wakeups` and `events` are those at the tick; `events` also has the actors of FROM
    /// events. For each actor, keeps the earliest `keep` events that it reaches, and those at the tick.
    pub(super) fn step(
        &mut self,
        searches: &mut Searches<'_>,
        tick: i64,
        wakeups: &[Wakeup],
        events: &[(Actor, Option<u32>)],
        keep: usize,
    ) -> Step {
        let mut actors: Vec<(Actor, At, Reached)> = Vec::new();
        let mut place_of = |reach: &Reach, searches: &mut Searches<'_>, actor: Actor| {
            if let Some(place) = actors.iter().position(|(other, _, _)| *other == actor) {
                return place;
            }
            let at = At::new(searches, actor, tick);
            let reached = if at.enters { reach.after(searches, actor, tick) } else { Vec::new() };
            actors.push((actor, at, reached));
            actors.len() - 1
        };
        let mut edges: Vec<(usize, usize)> = Vec::new();
        for wakeup in wakeups {
            let waker =
                actor(wakeup.waker_thread, wakeup.waker_lwp).filter(|_| !wakeup.context.is_interrupt());
            for woken in woken(searches, wakeup).into_iter().flatten() {
                let to = place_of(self, searches, woken);
                if let Some(waker) = waker {
                    edges.push((place_of(self, searches, waker), to));
                }
            }
        }
        let mut own: Vec<(usize, u32)> = Vec::new();
        for (actor, event) in events {
            let place = place_of(self, searches, *actor);
            own.extend(event.map(|event| (place, event)));
        }
        let most = keep + own.len();
        for (place, event) in &own {
            let (_, at, reached) = &mut actors[*place];
            if at.enters {
                merge(reached, &[*event], most);
            }
        }
        // Actors that wake each other at the same tick reach the same events.
        let mut changes = true;
        while std::mem::take(&mut changes) {
            for (from, to) in edges.iter().filter(|(from, to)| from != to) {
                if actors[*from].1.enters && !actors[*to].2.is_empty() {
                    let reached = actors[*to].2.clone();
                    changes |= merge(&mut actors[*from].2, &reached, most);
                }
            }
        }
        for (place, (actor, at, reached)) in actors.iter().enumerate() {
            let reached: Reached = if at.leaves {
                let mut events: Reached =
                    own.iter().filter(|(other, _)| *other == place).map(|(_, event)| *event).collect();
                events.sort_unstable_by(|a, b| b.cmp(a));
                events.truncate(keep);
                events
            } else {
                reached.iter().copied().take(keep).collect()
            };
            if reached.is_empty() {
                self.futures.remove(actor);
            } else {
                self.futures.insert(*actor, Future { tick, reached });
            }
        }
        Step { actors }
    }

    /// [`step`](Self::step) to a tick at which there is only this TO event of this actor.
    pub(super) fn step_to(
        &mut self,
        searches: &mut Searches<'_>,
        tick: i64,
        (actor, event): (Actor, u32),
        keep: usize,
    ) {
        let at = At::new(searches, actor, tick);
        if !at.enters && !at.leaves {
            self.futures.remove(&actor);
            return;
        }
        let future = self.futures.entry(actor).or_insert_with(|| Future { tick, reached: Vec::new() });
        if at.leaves || leaves_between(searches, actor, Interval::new(tick, future.tick)) {
            future.reached.clear();
        }
        future.tick = tick;
        merge(&mut future.reached, &[event], keep + 1);
        future.reached.truncate(keep);
    }

    /// What an actor reaches after a tick, if it is a member at the tick.
    fn after(&self, searches: &mut Searches<'_>, actor: Actor, tick: i64) -> Reached {
        let Some(future) = self.futures.get(&actor) else { return Vec::new() };
        let between = Interval::new(tick, future.tick);
        if leaves_between(searches, actor, between) { Vec::new() } else { future.reached.clone() }
    }

    /// Removes what no member from before a slice can reach.
    pub(super) fn end_slice(&mut self, history: &History, slice: Interval) {
        // Nothing wakes a user thread before it is created. There may be millions.
        let is_later = |actor: Actor| match actor {
            Actor::Thread(thread) => {
                history.names.threads.begin(thread).is_some_and(|begin| begin > slice.from)
            }
            Actor::Lwp(_) => false,
        };
        self.futures
            .retain(|actor, future| !is_later(*actor) && !leaves_in(history, *actor, slice, future.tick));
    }
}

/// Adds events to those that are reached, and keeps the earliest `most`. Returns whether any are new.
fn merge(reached: &mut Reached, other: &[u32], most: usize) -> bool {
    let mut is_new = false;
    for event in other {
        // The later one has the smaller place.
        let place = reached.partition_point(|known| known > event);
        if place < most && reached.get(place) != Some(event) {
            reached.insert(place, *event);
            reached.truncate(most);
            is_new = true;
        }
    }
    is_new
}
