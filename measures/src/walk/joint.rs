//! Many walks, computed on all CPUs, slice by slice. Walks that meet continue as one.
//!
//! From an actor and a tick on, a walk does not depend on how it got there. Millions of requests that wait for one LWP
//! or one lock share most of their walks. So each piece is found once, and counts for all walks that contain it.

use std::{
    collections::{BinaryHeap, hash_map::Entry},
    mem::take,
};

use super::{Actor, Many, Origin, Paused, Piece, Walks, What, members::Members, paused::Place};
use crate::{History, Interval, Slice, map::Map, parallel};

/// The smallest number of walks for a separate task.
const CHUNK: usize = 1024;

/// Walks that have reached the beginning of a slice.
#[derive(Default)]
pub(crate) struct Joint {
    open: Vec<Group>,
    /// Whether a walk ends where it comes to an unknown state.
    ends_at_unknown: bool,
    /// Whether walks that meet stay separate until they jump to the same actor for the same wait. Then each piece has
    /// the wait that led to its actor.
    tells_waits: bool,
}

/// Walks at the same place.
struct Group {
    at: Paused,
    members: Members,
}

/// A walk that waits until the others have reached its tick.
enum Waiting {
    /// A walk that begins: the place of its instance.
    Begins(u32),
    Open(Box<Group>),
}

/// The result of one task in a slice.
struct Found<T> {
    sum: T,
    open: Vec<Group>,
    unknown: Vec<u32>,
}

impl Joint {
    /// Walks that end where they come to an unknown state.
    pub(crate) fn to_the_unknown() -> Joint {
        Joint { ends_at_unknown: true, ..Joint::default() }
    }

    /// Makes the [link](Piece::link) of each piece valid for all walks that contain the piece.
    pub(crate) fn telling_waits(self) -> Joint {
        Joint { tells_waits: true, ..self }
    }

    /// Continues, in a slice, the walks that have not ended and those that begin in it. `start` gives the origin, actor
    /// and interval of an instance. Each task has its own sum, and `add` adds each piece to it, with the walks that
    /// contain the piece. `add` also learns whether the piece continues the piece before it (see [`Walks::go_on`]). The
    /// sums are returned in no order. Also returns the places of the walks that have come to an unknown state, if walks
    /// end there.
    pub(crate) fn add_slice<I: Sync, T: Send>(
        &mut self,
        history: &History,
        slice: Slice,
        instances: &[I],
        start: impl Fn(&I) -> (Origin, Actor, Interval) + Sync,
        new: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, Many, &Piece, bool) + Sync,
    ) -> (Vec<T>, Vec<u32>) {
        let (begin, ends_at_unknown) = (slice.interval.from, self.ends_at_unknown);
        let (here, later) =
            take(&mut self.open).into_iter().partition(|group: &Group| group.at.is_in_slice(begin));
        self.open = later;
        let mut waiting: Vec<(i64, Waiting)> =
            here.into_iter().map(|group| (group.at.tick, Waiting::Open(Box::new(group)))).collect();
        waiting.extend((0..).zip(instances).map(|(place, instance)| {
            let (_, _, interval) = start(instance);
            (interval.to, Waiting::Begins(place))
        }));
        // Walks near each other in time are likely to meet. Usually they are already sorted.
        waiting.sort_by_key(|(tick, _)| *tick);
        let chunks = waiting.len().div_ceil(CHUNK).min(rayon::current_num_threads());
        let length = waiting.len().div_ceil(chunks.max(1)).max(1);
        let mut parts: Vec<Vec<(i64, Waiting)>> = Vec::new();
        while waiting.len() > length {
            parts.push(waiting.split_off(waiting.len() - length));
        }
        parts.push(waiting);
        let walk = |waiting: Vec<(i64, Waiting)>| {
            let found = Found { sum: new(), open: Vec::new(), unknown: Vec::new() };
            let heads = Heads { tells_waits: self.tells_waits, ..Heads::default() };
            let task = Task { walks: Walks::new(history), begin, ends_at_unknown, waiting, heads, found };
            task.run(|place| Group::new(start(&instances[place as usize])), &add)
        };
        let found: Vec<Found<T>> = parallel::map(parts, walk);
        let (mut sums, mut unknown) = (Vec::new(), Vec::new());
        for mut found in found {
            sums.push(found.sum);
            self.open.append(&mut found.open);
            unknown.append(&mut found.unknown);
        }
        (sums, unknown)
    }
}

impl Group {
    /// A group of one walk; `None` if the walk has no length.
    fn new((of, actor, interval): (Origin, Actor, Interval)) -> Option<Group> {
        let at = Paused::new(actor, interval);
        (!at.is_over()).then(|| Group { at, members: Members::one(of, interval.from) })
    }

    fn append(&mut self, other: Group) {
        self.at.go_on_until(other.at);
        self.members.append(other.members);
    }
}

/// The groups that are still walking. Groups that meet are joined. Each group keeps its place in memory. There are only
/// as many as are open at one tick.
#[derive(Default)]
struct Heads {
    groups: Vec<Option<Group>>,
    free: Vec<usize>,
    /// By tick, the latest on top.
    by_tick: BinaryHeap<(i64, usize)>,
    by_place: Map<Place, usize>,
    tells_waits: bool,
}

impl Heads {
    fn push(&mut self, group: Group) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.groups.push(None);
            self.groups.len() - 1
        });
        self.groups[number] = Some(group);
        self.enter(number);
    }

    /// Adds a group at its current place. If another group is at the same place, the two are joined.
    fn enter(&mut self, number: usize) {
        let Some(Group { at, .. }) = &self.groups[number] else { return };
        let tick = at.tick;
        if let Some(place) = at.place(self.tells_waits) {
            match self.by_place.entry(place) {
                Entry::Occupied(known) => {
                    let known = *known.get();
                    if let (Some(group), Some(other)) = (self.take(number), &mut self.groups[known]) {
                        other.append(group);
                    }
                    return;
                }
                Entry::Vacant(vacant) => {
                    vacant.insert(number);
                }
            }
        }
        self.by_tick.push((tick, number));
    }

    /// The latest tick of the groups.
    fn latest(&self) -> Option<i64> {
        self.by_tick.peek().map(|(tick, _)| *tick)
    }

    /// Removes the group at the latest tick from the order, and returns its number. No other group can meet it before
    /// it moves. Afterwards it has to enter again.
    fn next(&mut self) -> Option<usize> {
        let (_, number) = self.by_tick.pop()?;
        let group = self.groups[number].as_ref();
        if let Some(place) = group.and_then(|group| group.at.place(self.tells_waits)) {
            self.by_place.remove(&place);
        }
        Some(number)
    }

    /// Removes a group that has not entered.
    fn take(&mut self, number: usize) -> Option<Group> {
        self.free.push(number);
        self.groups[number].take()
    }
}

struct Task<'h, T> {
    walks: Walks<'h>,
    begin: i64,
    ends_at_unknown: bool,
    /// Sorted by their ticks.
    waiting: Vec<(i64, Waiting)>,
    heads: Heads,
    found: Found<T>,
}

impl<T> Task<'_, T> {
    /// `new` makes the walk of the instance at a place, if it has a length.
    fn run(
        mut self,
        new: impl Fn(u32) -> Option<Group>,
        add: &impl Fn(&mut T, Many, &Piece, bool),
    ) -> Found<T> {
        loop {
            // Before a group moves, all walks that it may meet have been added.
            let latest = self.heads.latest();
            if let Some((_, waiting)) =
                self.waiting.pop_if(|(tick, _)| latest.is_none_or(|latest| *tick >= latest))
            {
                let group = match waiting {
                    Waiting::Begins(place) => new(place),
                    Waiting::Open(group) => Some(*group),
                };
                group.into_iter().for_each(|group| self.heads.push(group));
                continue;
            }
            let Some(number) = self.heads.next() else { return self.found };
            let Task { walks, begin, ends_at_unknown, heads, found, .. } = &mut self;
            let Some(Group { at, members }) = &mut heads.groups[number] else { continue };
            *at = walks.step(*at, *begin, |piece, goes_on| {
                if *ends_at_unknown && piece.what == What::Unknown {
                    members.end_all(|of| found.unknown.push(of.place));
                    return;
                }
                members.end_from(piece.interval.from.saturating_add(1), |of, until| {
                    let part = Piece { interval: Interval { from: until, ..piece.interval }, ..*piece };
                    let is_own = of.actor == Some(piece.actor);
                    add(&mut found.sum, Many { part: of.part, is_own, count: 1 }, &part, goes_on);
                });
                members.each(piece.actor, |many| add(&mut found.sum, many, piece, goes_on));
                members.end_from(piece.interval.from, |_, _| {});
            });
            let (is_over, is_in_slice) = (members.is_empty(), at.is_in_slice(*begin));
            match (is_over, is_in_slice) {
                (true, _) => drop(heads.take(number)),
                (false, true) => heads.enter(number),
                (false, false) => found.open.extend(heads.take(number)),
            }
        }
    }
}
